/** What processes learn about the history limits of a plan, and share. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { planOf } from '../../../src/contract/plan/plans.ts';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { type LearnedLimits, readLearnedLimits } from '../../../src/ingest/limits/learned-limits.ts';
import { createLimitOpinions } from '../../../src/ingest/limits/limit-opinions.ts';
import { createPaymentOpinions } from '../../../src/ingest/limits/payment-opinions.ts';
import type { ChunkJob } from '../../../src/ingest/queue/chunk-job.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const NOON = Date.UTC(2026, 10, 1, 12);
const SECOND = 1_000;
const plan = planOf('enterprise');
const FOUND = { depthMs: 30 * DAY, skewMs: 0, message: 'not allowed in this plan', fetchId: null };

let database: TestDatabase;
let now: number;
const clock = { now: () => now, sleep: () => Promise.reject(new Error('nobody sleeps here')) };
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  now = NOON;
  await database.sql`truncate ops.second_opinion, market.refusal, ops.lifted_history_limit`;
});

/** What a process that starts now knows. */
const start = () => readLearnedLimits(database.sql, clock, plan);

describe('a learned history limit', () => {
  test('is the documented one until upstream states another', async () => {
    const limits = await start();
    expect(limits.of('24h')).toEqual({ kind: 'documented', depthMs: plan.historyDepthMs });
  });

  test('holds at once, for other processes when they reload, and after a restart', async () => {
    const [limits, other] = [await start(), await start()];
    const met = { kind: 'met', depthMs: 30 * DAY, skewMs: 0, message: FOUND.message };
    await limits.learn('1h', FOUND);
    expect(limits.of('1h')).toEqual(met);
    expect(other.of('1h')).toMatchObject({ kind: 'documented' });
    await other.reload();
    expect([other.of('1h'), (await start()).of('1h')]).toEqual([met, met]);
    expect(other.of('24h')).toMatchObject({ kind: 'documented' });
  });

  test('of several limits learned for an interval, the strictest holds', async () => {
    const limits = await start();
    await limits.learn('1h', FOUND);
    await limits.learn('1h', { ...FOUND, depthMs: 60 * DAY });
    expect(limits.of('1h')).toMatchObject({ depthMs: 30 * DAY });
    await limits.learn('1h', { ...FOUND, depthMs: 0 });
    await limits.learn('1h', { ...FOUND, depthMs: 5 * DAY });
    expect((await start()).of('1h')).toMatchObject({ kind: 'met', depthMs: 0 });
  });

  test('keeps, in the process that learned it, how far the clock of upstream is ahead', async () => {
    const limits = await start();
    await limits.learn('1h', { ...FOUND, skewMs: HOUR });
    await limits.reload();
    expect(limits.of('1h')).toMatchObject({ skewMs: HOUR });
  });

  test('becomes a forecast after a day; a candle from beyond removes it, for all processes', async () => {
    const limits = await start();
    await limits.learn('1h', FOUND);
    await limits.lift('1h');
    expect(limits.of('1h')).toMatchObject({ kind: 'met' });
    now += DAY + 1;
    await limits.reload();
    expect(limits.of('1h')).toEqual({ kind: 'documented', depthMs: 30 * DAY, refusedBefore: true });
    const other = await start();
    await limits.lift('1h');
    await other.reload();
    expect([limits.of('1h'), other.of('1h')]).toEqual([{ kind: 'open' }, { kind: 'open' }]);
    // A refusal that was learned since then counts again.
    await other.learn('1h', FOUND);
    await limits.reload();
    expect(limits.of('1h')).toMatchObject({ kind: 'met', depthMs: 30 * DAY });
  });

  test('that cannot be stored is forgotten again', async () => {
    const limits = await start();
    await database.sql`alter table market.refusal add constraint broken check (false) not valid`;
    try {
      await expect(limits.learn('1h', FOUND)).rejects.toThrow('broken');
    } finally {
      await database.sql`alter table market.refusal drop constraint broken`;
    }
    expect(limits.of('1h')).toMatchObject({ kind: 'documented' });
  });
});

describe('an unexpected refusal', () => {
  const DEEP = NOON - 400 * DAY;
  const job = (seriesId: number, from = DEEP): ChunkJob => ({
    kind: 'backfill',
    backfillId: 1,
    seriesId,
    coinId: `coin-${seriesId}`,
    quote: 'usd',
    interval: '24h',
    from,
    to: from + 100 * DAY,
    askedSince: NOON,
  });
  const exchangeOf = (sentAt: number, ageMs = 0) => ({
    ...{ durationMs: 1, status: 402, bytes: 1, bodySha256: null, asOf: sentAt, date: null, latest: sentAt },
    ...{ simulator: null, isByOurClock: false, noContact: null, sentAt, ageMs },
  });
  /** A 402 that names a limit of thirty days, received now. */
  const limit = (sentAt: number) =>
    ({
      kind: 'refused',
      reason: 'history limit',
      notBefore: sentAt - 30 * DAY,
      message: FOUND.message,
      exchange: exchangeOf(sentAt),
    }) as const;
  const open = (historyLimits: LearnedLimits) => {
    const limits = createLimitOpinions({ clock, plan, historyLimits });
    const payments = createPaymentOpinions(clock, historyLimits.opinions);
    const waitingFor = (chunk: ChunkJob) => payments.waitingFor(chunk) ?? limits.waitingFor(chunk);
    return { limits, payments, waitingFor };
  };
  const process = async () => open(await start());
  /** Refuses this chunk, whose request takes a second. */
  const refuse = (opinions: ReturnType<typeof open>, chunk: ChunkJob) => {
    const sentAt = now + 1;
    now = sentAt + SECOND;
    return opinions.limits.judge(chunk, chunk, limit(sentAt));
  };
  const refuseUnpaid = (opinions: ReturnType<typeof open>, chunk: ChunkJob) => {
    const sentAt = now + 1;
    now = sentAt + SECOND;
    return opinions.payments.judge(chunk, exchangeOf(sentAt));
  };

  test('is believed after a second one for another series; the chunk itself waits until caches have expired or the refusal is believed', async () => {
    const opinions = await process();
    expect(await refuse(opinions, job(1))).toBe(now + 5 * SECOND);
    expect(opinions.waitingFor(job(1))).toBe(now + 75 * SECOND);
    expect(opinions.waitingFor(job(2))).toBeNull();
    expect(await refuse(opinions, job(2))).toBe('history limit');
    expect(opinions.waitingFor(job(1))).toBeNull();
  });

  test('from another process, or from before a restart, counts as the first one', async () => {
    const [first, limits] = [await process(), await start()];
    await refuse(first, job(1));
    const other = open(limits);
    expect(other.waitingFor(job(1))).toBeNull();
    await limits.reload();
    expect(other.waitingFor(job(1))).toBe(now + 75 * SECOND);
    expect(await refuse(await process(), job(2))).toBe('history limit');
  });

  test('is forgotten after a day', async () => {
    await refuse(await process(), job(1));
    now += DAY + 2 * SECOND;
    expect(typeof (await refuse(await process(), job(2)))).toBe('number');
  });

  test('does not count as a second opinion when both requests were under way at the same time', async () => {
    const opinions = await process();
    const sentAt = now;
    now += SECOND;
    expect(typeof (await opinions.limits.judge(job(1), job(1), limit(sentAt)))).toBe('number');
    expect(typeof (await opinions.limits.judge(job(2), job(2), limit(sentAt)))).toBe('number');
    expect(await refuse(opinions, job(3))).toBe('history limit');
  });

  test('is contradicted by a candle from beyond that was requested since, and then needs four refusals', async () => {
    const opinions = await process();
    await refuse(opinions, job(1));
    await opinions.limits.answered(job(2), DEEP, exchangeOf(now - 2 * SECOND));
    expect(await database.sql`select from ops.second_opinion where claim = 'history limit'`).toHaveLength(1);
    now += SECOND;
    await opinions.limits.answered(job(2), null, exchangeOf(now));
    expect(await database.sql`select from ops.second_opinion where claim = 'history limit'`).toHaveLength(1);
    await opinions.limits.answered(job(2), DEEP, exchangeOf(now));
    expect(await database.sql`select from ops.second_opinion where claim = 'history limit'`).toHaveLength(0);
    const results = [];
    for (let seriesId = 3; seriesId < 7; seriesId++) results.push(await refuse(opinions, job(seriesId)));
    expect(results.map((result) => typeof result)).toEqual(['number', 'number', 'number', 'string']);
  });

  test('of one chunk alone, four times, is a refusal of its span', async () => {
    const opinions = await process();
    const results = [];
    for (let times = 0; times < 4; times++) {
      results.push(await refuse(opinions, job(1)));
      now += 75 * SECOND;
      // Others are answered all the while.
      await opinions.limits.answered(job(2), DEEP, exchangeOf(now));
      now += SECOND;
    }
    expect(results.map((result) => (typeof result === 'number' ? 'later' : result))).toEqual([
      ...['later', 'later', 'later', 'span'],
    ]);
  });

  test('that matches the documents needs no second one', async () => {
    const starter = planOf('starter');
    const historyLimits = await readLearnedLimits(database.sql, clock, starter);
    const limits = createLimitOpinions({ clock, plan: starter, historyLimits });
    const from = NOON - starter.historyDepthMs! - 100 * DAY;
    const answer = { ...limit(now), notBefore: NOON - starter.historyDepthMs! };
    expect(await limits.judge(job(1, from), job(1, from), answer)).toBe('history limit');
    expect(await database.sql`select from ops.second_opinion`).toHaveLength(0);
  });

  test('only one request at a time goes beyond a limit that is not believed yet', async () => {
    const opinions = await process();
    await refuse(opinions, job(1));
    const order: string[] = [];
    const work = (name: string) => async () => {
      order.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`${name} ends`);
    };
    const deep = [opinions.limits.oneAtATime(job(2), work('2')), opinions.limits.oneAtATime(job(3), work('3'))];
    await Promise.all([...deep, opinions.limits.oneAtATime(job(4, NOON - 3 * DAY), work('recent'))]);
    expect(order.filter((step) => !step.startsWith('recent'))).toEqual(['2 begins', '2 ends', '3 begins', '3 ends']);
    expect(order.indexOf('recent begins')).toBeLessThan(order.indexOf('2 ends'));
  });

  test('a 402 without a limit is believed after a second one for the same series, or for the same chunk', async () => {
    const opinions = await process();
    const dueAt = now + 1 + 76 * SECOND;
    expect(await refuseUnpaid(opinions, job(1))).toBe(dueAt);
    expect(opinions.waitingFor(job(1))).toBe(dueAt);
    expect(await refuseUnpaid(opinions, job(1, NOON - 200 * DAY))).toBeNull();
    // Another chunk of the series was answered: only the chunk itself can agree.
    expect(await refuseUnpaid(opinions, job(2))).toBe(now + 75 * SECOND);
    await opinions.payments.answered(job(2, NOON - 200 * DAY));
    now += 80 * SECOND;
    expect(await refuseUnpaid(opinions, job(2))).toBeNull();
  });

  test('while eight series wait for a second 402, the others of the interval wait, too, until one is answered', async () => {
    const opinions = await process();
    const firstHeardAt = now + 1 + SECOND;
    for (let seriesId = 1; seriesId <= 8; seriesId++) {
      expect(opinions.waitingFor(job(seriesId))).toBeNull();
      await refuseUnpaid(opinions, job(seriesId));
    }
    expect(opinions.waitingFor(job(9))).toBe(firstHeardAt + 76 * SECOND);
    expect(opinions.waitingFor({ ...job(9), interval: '1h' })).toBeNull();
    await opinions.payments.answered(job(10));
    expect(opinions.waitingFor(job(9))).toBeNull();
  });

  test('a plausible answer costs no statement', async () => {
    const opinions = await process();
    await database.sql`alter table ops.second_opinion rename to away`;
    try {
      await opinions.payments.answered(job(1));
      await opinions.limits.answered(job(1), DEEP, exchangeOf(now));
      expect(opinions.waitingFor(job(1))).toBeNull();
      expect(await opinions.limits.oneAtATime(job(1), async () => 'done')).toBe('done');
    } finally {
      await database.sql`alter table ops.away rename to second_opinion`;
    }
  });
});
