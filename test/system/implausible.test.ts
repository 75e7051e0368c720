/** Well-formed but implausible answers: reported once, they leave no trace; reported twice, they are believed. */
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import type { ChunkJob } from '../../src/ingest/queue/chunk-job.ts';
import { startBackfill } from '../../src/store/backfill/backfill.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import { until } from '../support/until.ts';

const COIN = 'btc-bitcoin';
const OLDER = { coins: [COIN], from: TODAY - 120 * DAY, to: TODAY - 60 * DAY } as const;
const NEWER = { coins: [COIN], from: TODAY - 60 * DAY, to: TODAY - 3 * DAY } as const;
const PRICES = ['open', 'high', 'low', 'close', 'volume', 'market_cap'] as const;

type Row = Record<(typeof PRICES)[number], number | null> & { time_open: string; time_close: string };
const each = (change: (value: number | null) => number | null) => (rows: Row[]) =>
  rows.map((row) => ({ ...row, ...Object.fromEntries(PRICES.map((name) => [name, change(row[name])])) }));

const LIES: Readonly<Record<string, (rows: Row[]) => Row[]>> = {
  'all null': each(() => null),
  'all zero': each(() => 0),
  constant: (rows) => rows.map(({ time_open, time_close }) => ({ ...rows[3]!, time_open, time_close })),
  'a million times as much': each((value) => value && value * 1e6),
  'a thousandth': each((value) => value && value / 1_000),
  'every second one missing': (rows) => rows.filter((_, i) => i % 2 === 0),
};

let made: ScriptedWorld;
afterEach(() => made?.world.close());

async function changed(answer: Response, lie: (rows: Row[]) => Row[]): Promise<Response> {
  const headers = new Headers(answer.headers);
  headers.delete('content-length');
  return Response.json(lie((await answer.json()) as Row[]), { headers });
}

/** `lie` changes the first `times` answers about candles. */
async function open(lie: (rows: Row[]) => Row[], times: number, speed = 300) {
  made = await createScriptedWorld({ speed });
  const chandler = await made.world.open();
  await chandler.backfill(NEWER);
  let told = 0;
  made.upstream.script = async (request, simulated) => {
    const answer = await simulated(request);
    if (!request.url.includes('/ohlcv') || ++told > times) return answer;
    return changed(answer, lie);
  };
  made.upstream.forget();
  return chandler;
}
const candles = () => made.world.database.sql`select * from market.candle order by open_time`;

/** What is stored when the upstream tells no lies. */
let truth: Awaited<ReturnType<typeof candles>>;
beforeAll(async () => {
  const chandler = await open((rows) => rows, 0);
  await chandler.backfill(OLDER);
  truth = await candles();
  await made.world.close();
});

describe.each(Object.entries(LIES))('an implausible answer: %s', (_, lie) => {
  test('is not stored after one answer, and is requested again in the same run after 75 seconds', async () => {
    const other = await open(lie, 1);
    expect(await other.backfill(OLDER)).toMatchObject({ end: { kind: 'done' }, failed: [] });
    expect(await candles()).toEqual(truth);
    const [first, second] = made.upstream.ohlcv();
    expect(second!.at - first!.at).toBeGreaterThanOrEqual(75_000);
    expect(made.upstream.ohlcv()).toHaveLength(2);
    expect(await made.world.database.sql`select from market.gaps`).toHaveLength(0);
    expect(await made.world.database.sql`select from market.revision`).toHaveLength(0);
  });
});

test.each(['a thousandth', 'constant'])(
  'an implausible answer (%s) replaces nothing after a repair of the whole series',
  async (name) => {
    const chandler = await open(LIES[name]!, 1);
    const { sql } = made.world.database;
    const before = await candles();
    await sql`select ops.uncover(id) from market.series`;
    expect(await chandler.backfill(NEWER)).toMatchObject({ end: { kind: 'done' }, failed: [] });
    expect(await candles()).toEqual(before);
    expect(made.upstream.ohlcv()).toHaveLength(2);
    expect(await sql`select from market.gaps`).toHaveLength(0);
  },
);

test('is believed after two answers, because markets do crash', async () => {
  const chandler = await open(LIES['a thousandth']!, 9);
  expect(await chandler.backfill(OLDER)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  expect(made.upstream.ohlcv()).toHaveLength(2);
  expect(await candles()).toHaveLength(117);
});

test('has its slots in market.gaps with the reason implausible while it waits', async () => {
  // The wait for the second answer lasts until the test has seen it, however busy the machine.
  const chandler = await open(LIES['all zero']!, 1, 1);
  const stop = new AbortController();
  const run = chandler.backfill({ ...OLDER, signal: stop.signal });
  const gaps = () => made.world.database.sql`select reason, detail, slots::int as slots from market.gaps`;
  const expected = [{ reason: 'implausible', detail: '60 of 60 candles have prices of zero', slots: 60 }];
  // Seen while the run waits for the second answer.
  await until(async () => (await gaps())[0]?.reason === 'implausible');
  stop.abort();
  await run;
  expect(await gaps()).toEqual(expected);
});

test.each(['all zero', 'all null', 'a thousandth'])(
  'an implausible answer (%s) changes nothing when another run has filled its slots meanwhile',
  async (name) => {
    // One request waits for the other. A slow machine must reach the second before the first times out.
    await open((rows) => rows, 0, 10);
    const [chandler, other] = [await made.world.open(), await made.world.open()];
    let asked = 0;
    let askedByBoth: () => void;
    const both = new Promise<void>((resolve) => {
      askedByBoth = resolve;
    });
    let isStored: () => void;
    const stored = new Promise<void>((resolve) => {
      isStored = resolve;
    });
    // The first gets the truth once the second is in flight. The second gets a lie once the first is stored.
    made.upstream.script = async (request, simulated) => {
      if (!request.url.includes('/ohlcv')) return simulated(request);
      const isSecond = ++asked === 2;
      if (isSecond) askedByBoth();
      await (isSecond ? stored : both);
      const answer = await simulated(request);
      return isSecond ? changed(answer, LIES[name]!) : answer;
    };
    const job = await chunkOf(OLDER);
    const outcomes = [chandler, other].map(({ session }) => session.ingestChunk(job));
    expect(await Promise.race(outcomes)).toMatchObject({ kind: 'stored', stored: 60 });
    const truth = await candles();
    isStored!();
    await Promise.all(outcomes);
    expect(asked).toBe(2);
    expect(await candles()).toEqual(truth);
    expect(await made.world.database.sql`select from market.revision`).toHaveLength(0);
    expect(await made.world.database.sql`select message from ops.fetch where outcome = 'implausible'`).toHaveLength(1);
  },
);

/** The chunk of a backfill of these days. */
async function chunkOf({ coins: [coinId], from, to }: typeof OLDER): Promise<ChunkJob> {
  const { sql } = made.world.database;
  const span = { from, to };
  const [seriesId] = await wantSeries(sql, { coinIds: [coinId], quote: 'usd', interval: '24h', span, priority: 0 });
  const startedAt = made.world.clock.now();
  const backfillId = await startBackfill(sql, {
    spec: {},
    span,
    interval: '24h',
    quote: 'usd',
    plannedRequests: 1,
    owner: 'here:1',
    requestedAt: startedAt,
    startedAt,
  });
  const slot = { coinId, quote: 'usd', interval: '24h', from, to } as const;
  return { kind: 'backfill', backfillId, seriesId: seriesId!, askedSince: startedAt, ...slot };
}
