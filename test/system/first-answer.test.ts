/** The first answer of a series is false, and nothing betrays it. What comes next to it later does. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import type { Script } from '../support/scripted.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import { checkStored } from './oracle.ts';

const COIN = 'btc-bitcoin';
const BORDER = TODAY - 60 * DAY;
const OLDER = { coins: [COIN], from: TODAY - 120 * DAY, to: BORDER } as const;
const ALL = { ...OLDER, to: TODAY - 3 * DAY } as const;
const PRICES = ['open', 'high', 'low', 'close'] as const;
type Row = Record<(typeof PRICES)[number], number> & { time_open: string };

let made: ScriptedWorld;
afterEach(() => made.world.close());

/** Changes the prices of the simulator's rows: `factor` is given the number of the answer and the time of the row. */
const scaling = (factor: (answer: number, at: number) => number): Script =>
  (() => {
    let answers = 0;
    return async (request, simulated) => {
      const answer = await simulated(request);
      if (!request.url.includes('/ohlcv')) return answer;
      const number = ++answers;
      const rows = ((await answer.json()) as Row[]).map((row) => {
        const times = factor(number, Date.parse(row.time_open));
        return { ...row, ...Object.fromEntries(PRICES.map((name) => [name, row[name] * times])) };
      });
      const headers = new Headers(answer.headers);
      headers.delete('content-length');
      return Response.json(rows, { headers });
    };
  })();

test('it is asked for again when a second answer has confirmed what contradicts it', async () => {
  made = await createScriptedWorld({ speed: 300 });
  const chandler = await made.world.open();
  made.upstream.script = scaling((answer) => (answer === 1 ? 1_000 : 1));
  made.upstream.forget();
  await chandler.backfill(OLDER);
  expect(await chandler.backfill(ALL)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  await checkStored(made.world, 'mended');
  // The lie; what contradicts it, twice; the truth instead of the lie.
  expect(made.upstream.ohlcv()).toHaveLength(4);
  const { sql } = made.world.database;
  expect(await sql`select from market.gaps`).toHaveLength(0);
  const kept = await sql`select reason, count(*)::int as candles from market.revision group by reason`;
  expect(kept).toEqual([{ reason: 'mended', candles: 60 }]);
});

test('a market that did jump is asked about on both sides, and no more', async () => {
  made = await createScriptedWorld({ speed: 300 });
  const chandler = await made.world.open();
  made.upstream.script = scaling((_, at) => (at < BORDER ? 1_000 : 1));
  made.upstream.forget();
  await chandler.backfill(OLDER);
  expect(await chandler.backfill(ALL)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  expect(made.upstream.ohlcv()).toHaveLength(5);
  expect(await made.world.database.sql`select from market.gaps`).toHaveLength(0);
  await chandler.backfill(ALL);
  expect(made.upstream.ohlcv()).toHaveLength(5);
});
