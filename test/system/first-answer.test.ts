/** The first answer of a series is false, and nothing reveals it. A later neighbouring answer does. */
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

function changed(answer: Response, rows: unknown): Response {
  const headers = new Headers(answer.headers);
  headers.delete('content-length');
  return Response.json(rows, { headers });
}

/** Changes the prices of the simulator's rows. `factor` gets the number of the answer and the time of the row. */
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
      return changed(answer, rows);
    };
  })();

/** The first answer has in each slot the values of the day `days` later. */
const shifting = (days: number): Script =>
  (() => {
    let answers = 0;
    return async (request, simulated) => {
      if (!request.url.includes('/ohlcv') || ++answers > 1) return simulated(request);
      const url = new URL(request.url);
      const moved = (text: string, by: number) =>
        new Date(Date.parse(text) + by * DAY).toISOString().replace('.000', '');
      for (const name of ['start', 'end']) url.searchParams.set(name, moved(url.searchParams.get(name)!, days));
      const answer = await simulated(new Request(url, request));
      const rows = ((await answer.json()) as { time_open: string; time_close: string }[]).map((row) => ({
        ...row,
        time_open: moved(row.time_open, -days),
        time_close: moved(row.time_close, -days),
      }));
      return changed(answer, rows);
    };
  })();

test('a false first answer is requested again when a second answer has confirmed what contradicts it', async () => {
  made = await createScriptedWorld({ speed: 300 });
  const chandler = await made.world.open();
  made.upstream.script = scaling((answer) => (answer === 1 ? 1_000 : 1));
  made.upstream.forget();
  await chandler.backfill(OLDER);
  expect(await chandler.backfill(ALL)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  await checkStored(made.world, 'mended');
  // The lie, the contradicting answer twice, and the truth in place of the lie.
  expect(made.upstream.ohlcv()).toHaveLength(4);
  const { sql } = made.world.database;
  expect(await sql`select from market.gaps`).toHaveLength(0);
  const kept = await sql`select reason, count(*)::int as candles from market.revision group by reason`;
  expect(kept).toEqual([{ reason: 'mended', candles: 60 }]);
});

test.each([1, -1])('a false first answer with values of other days is requested again (%i)', async (days) => {
  made = await createScriptedWorld({ speed: 300 });
  const chandler = await made.world.open();
  made.upstream.script = shifting(days);
  made.upstream.forget();
  const middle = { ...OLDER, from: OLDER.from + 30 * DAY };
  await chandler.backfill(middle);
  expect(await chandler.backfill(ALL)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  await checkStored(made.world, 'mended');
  expect(made.upstream.ohlcv().length).toBeLessThanOrEqual(7);
  expect(await made.world.database.sql`select from market.gaps`).toHaveLength(0);
});

test('a market that really jumped is requested again on both sides of the jump, and no more', async () => {
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

test('a market that repeats a day costs two requests, and no more', async () => {
  made = await createScriptedWorld({ speed: 300 });
  const chandler = await made.world.open();
  const { data } = made.world.simulator;
  const dayBefore = {
    coinId: COIN,
    quote: 'usd',
    interval: '24h',
    from: BORDER - DAY,
    to: BORDER - 1,
    limit: 1,
  } as const;
  const [{ open, high, low, close }] = (await data.ohlcv(dayBefore)) as unknown as [Row];
  made.upstream.script = async (request, simulated) => {
    const answer = await simulated(request);
    if (!request.url.includes('/ohlcv')) return answer;
    const rows = ((await answer.json()) as Row[]).map((row) =>
      Date.parse(row.time_open) === BORDER ? { ...row, open, high, low, close } : row,
    );
    return changed(answer, rows);
  };
  made.upstream.forget();
  await chandler.backfill(OLDER);
  // The second answer about the newer days, and one more about the older ones, which a single answer reported.
  expect(await chandler.backfill(ALL)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  expect(made.upstream.ohlcv()).toHaveLength(4);
  expect(await made.world.database.sql`select from market.gaps`).toHaveLength(0);
  await chandler.backfill(ALL);
  expect(made.upstream.ohlcv()).toHaveLength(4);
});
