/** verify and attest compared with the cheapest read of the same candles: their count and the sum of their closes. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';
import { attest } from '../../src/views/attestation/attestation.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { verifyWarehouse } from '../../src/views/verify/warehouse.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { makeSeries, type PreparedChunk, prepareChunks, storePrepared } from './prepared.ts';
import { median, spread, table, thousands, timed, verdict } from './rounds.ts';

const ROUNDS = 5;
const SERIES = 100;
const GOAL = 500_000;
const TO = Date.UTC(2025, 0, 1);
const AS_OF = TO + 90 * DAY;
const KINDS = [
  { interval: '24h', span: { from: TO - 3_660 * DAY, to: TO } },
  { interval: '1h', span: { from: TO - 7_320 * HOUR, to: TO } },
] as const;

let database: TestDatabase;
let candles = 0;
const stored: PreparedChunk[] = [];
beforeAll(async () => {
  database = await createTestDatabase({ max: 4 });
  const { sql } = database;
  for (const { interval, span } of KINDS) {
    await ensurePartitions(sql, interval, span);
    const chunks = prepareChunks(await makeSeries(sql, interval, SERIES, interval, span), interval, span);
    for (const chunk of chunks) {
      await storePrepared(sql, chunk, AS_OF);
      stored.push(chunk);
      candles += chunk.candles.openTime.length;
    }
  }
  await sql`vacuum analyze`;
});
afterAll(() => database?.drop());

const readAll = () => timed(() => database.sql`select count(*), sum(close) from market.candle`);

async function verifyAll(): Promise<void> {
  let found = 0;
  for await (const proof of verifySeries(database.sql, {}, AS_OF)) {
    expect(proof.differences).toEqual([]);
    found += proof.candles;
  }
  expect(found).toBe(candles);
}

async function attestAll(): Promise<void> {
  const lines = attest(database.sql, { at: AS_OF, key: null });
  for (let next = await lines.next(); ; next = await lines.next()) {
    if (!next.done) continue;
    expect(next.value.series).toBe(SERIES * KINDS.length);
    return;
  }
}

const WORK = {
  'verify, of the series': verifyAll,
  'verify, beside the series': async () => expect(await verifyWarehouse(database.sql)).toEqual([]),
  attest: attestAll,
} as const;
type Name = keyof typeof WORK;
const NAMES = Object.keys(WORK) as Name[];

it('verifies and attests 500,000 candles a second or more', async () => {
  const rounds: ({ readonly read: number } & { readonly [name in Name]: number })[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const times = {} as { [name in Name]: number };
    const read = await readAll();
    // In turns, because the first one finds other caches.
    for (const name of round % 2 === 0 ? NAMES : [...NAMES].reverse()) times[name] = await timed(WORK[name]);
    // The first round warms up.
    if (round > 0) rounds.push({ read, ...times });
  }
  const perSecond = (times: readonly number[]) => (candles / median(times)) * 1000;
  const speeds = NAMES.map((name) => {
    const speed = perSecond(rounds.map((one) => one[name]));
    const ratios = spread(
      rounds.map((one) => one[name] / one.read),
      1,
    );
    return [name, `${thousands(speed)} candles/s ${verdict(speed >= GOAL)}, ${ratios} × the yardstick's time`] as const;
  });
  const whole = perSecond(rounds.map((one) => one['verify, of the series'] + one['verify, beside the series']));
  console.info(
    table(
      `${thousands(candles)} candles of ${SERIES * KINDS.length} series, median of ${ROUNDS} (goal: ${thousands(GOAL)} candles/s)`,
      [
        ['yardstick: count and sum(close)', `${thousands(perSecond(rounds.map(({ read }) => read)))} candles/s`],
        ...speeds,
        ['chandler verify, both', `${thousands(whole)} candles/s ${verdict(whole >= GOAL)}`],
      ],
    ),
  );
});

it('verifies as many revisions as candles', async () => {
  for (const { candles: was, ...chunk } of stored) {
    const close = was.close.map((value) => value! * 1.0001);
    await storePrepared(database.sql, { ...chunk, candles: { ...was, close } }, AS_OF + DAY);
  }
  await database.sql`vacuum analyze`;
  const [kept] = await database.sql<{ count: number }[]>`select count(*)::int from market.revision`;
  expect(kept!.count).toBe(candles);
  const rounds: { read: number; whole: number }[] = [];
  for (let round = 0; round < 3; round++) {
    const read = await readAll();
    const whole = await timed(async () => {
      await verifyAll();
      expect(await verifyWarehouse(database.sql)).toEqual([]);
    });
    rounds.push({ read, whole });
  }
  const ratios = spread(
    rounds.map(({ read, whole }) => whole / read),
    1,
  );
  const speed = (2 * candles * 1000) / median(rounds.map(({ whole }) => whole));
  console.info(
    table(`the same, and a revision of each candle, median of ${rounds.length}`, [
      ['chandler verify, both', `${thousands(speed)} candles and revisions/s, ${ratios} × the yardstick's time`],
    ]),
  );
});
