/** Slots that are taken out of coverage are requested again. Their old values are kept, and a false answer does not replace them. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { Chandler } from '../support/world.ts';

const COIN = 'btc-bitcoin';
const WHOLE = { coins: [COIN], from: TODAY - 120 * DAY, to: TODAY - 3 * DAY } as const;
/** The 60 days that are taken out of coverage. */
const MENDED = { from: TODAY - 90 * DAY, to: TODAY - 30 * DAY };
const NUMBERS = ['open', 'high', 'low', 'close', 'volume', 'market_cap'] as const;

type Row = Record<(typeof NUMBERS)[number], number | null> & { time_open: string; time_close: string };

let made: ScriptedWorld;
afterEach(() => made.world.close());

/** A filled warehouse in which one stretch is to be requested again. */
async function openMended(): Promise<Chandler> {
  made = await createScriptedWorld({ speed: 300 });
  const chandler = await made.world.open();
  await chandler.backfill(WHOLE);
  const { from, to } = MENDED;
  await made.world.database.sql`select ops.uncover(id, ${from}::timestamptz, ${to}::timestamptz) from market.series`;
  made.upstream.forget();
  return chandler;
}

const candles = () => made.world.database.sql`select * from market.candle order by open_time`;
const revisions = () => made.world.database.sql`
  select reason, count(*)::int as n, count(close)::int as priced from market.revision group by 1 order by 1`;

/** Changes the first `times` answers about candles. `rowsOf`: the true answer for another coin at the same address. */
function answerChanged(
  change: (rows: Row[], rowsOf: (coin: string) => Promise<Row[]>) => Row[] | Promise<Row[]>,
  times: number,
): void {
  let told = 0;
  made.upstream.script = async (request, simulated) => {
    const answer = await simulated(request);
    if (!request.url.includes('/ohlcv') || ++told > times) return answer;
    const rowsOf = async (coin: string) =>
      (await (await simulated(new Request(request.url.replace(COIN, coin)))).json()) as Row[];
    const headers = new Headers(answer.headers);
    headers.delete('content-length');
    return Response.json(await change((await answer.json()) as Row[], rowsOf), { headers });
  };
}

const each = (change: (value: number | null) => number | null) => (rows: Row[]) =>
  rows.map((row) => ({ ...row, ...Object.fromEntries(NUMBERS.map((name) => [name, change(row[name])])) }));

test('another answer replaces the old values, and the revisions keep them with the reason', async () => {
  const chandler = await openMended();
  const { sql } = made.world.database;
  const before = await candles();
  const knownBefore = made.world.clock.now();
  expect(await revisions()).toEqual([{ reason: 'mended', n: 60, priced: 60 }]);
  // Each value a little different, and no candle for one of the days.
  answerChanged((rows) => each((value) => value && value * 1.001)(rows).filter((_, i) => i !== 30), 9);
  made.world.clock.advanceTo(knownBefore + DAY);
  expect(await chandler.backfill(WHOLE)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  expect(await candles()).toHaveLength(before.length - 1);
  expect(await revisions()).toEqual([{ reason: 'mended', n: 60, priced: 60 }]);
  const old = await sql`
    select r.close from market.revision r join market.series s on s.id = r.series_id order by r.open_time`;
  const inside = before.filter(
    ({ openTime }) => (openTime as number) >= MENDED.from && (openTime as number) < MENDED.to,
  );
  expect(old.map(({ close }) => close)).toEqual(inside.map(({ close }) => close));
});

test.each([
  ['all null', each(() => null)],
  ['all zero', each(() => 0)],
  ['a million times as much', each((value) => value && value * 1e6)],
  [
    'identical rows',
    (rows: Row[]) => rows.map((row) => ({ ...rows[3]!, time_open: row.time_open, time_close: row.time_close })),
  ],
  ['the rows of another coin', (_: Row[], rowsOf: (coin: string) => Promise<Row[]>) => rowsOf('eth-ethereum')],
  [
    'rows shifted by a day',
    (rows: Row[]) =>
      rows.map((row, i) => ({ ...(rows[i - 1] ?? row), time_open: row.time_open, time_close: row.time_close })),
  ],
  ['every second row missing', (rows: Row[]) => rows.filter((_, i) => i % 2 === 0)],
] as const)('%s, told once, replaces none of the 60 candles', async (_, lie) => {
  const chandler = await openMended();
  const before = await candles();
  answerChanged(lie, 1);
  expect(await chandler.backfill(WHOLE)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  expect(made.upstream.ohlcv()).toHaveLength(2);
  expect(await candles()).toEqual(before);
  expect(await revisions()).toEqual([{ reason: 'mended', n: 60, priced: 60 }]);
  expect(await made.world.database.sql`select from market.gaps`).toHaveLength(0);
});
