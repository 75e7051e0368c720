/** A turn that is only taken for what is still worth a request, found out in the same statement. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import type { Span } from '../../src/core/span.ts';
import { giveBackUnsent, takeAhead } from '../../src/quota/ahead.ts';
import { createQuota, type QuotaOptions } from '../../src/quota/ledger.ts';
import type { Limits, Quota, Spender, Stretch } from '../../src/quota/quota.ts';
import { recordRefusal } from '../../src/store/candle/refusal.ts';
import { toMultirange, toRange } from '../../src/store/connection/multirange.ts';
import { finishBackfill, startBackfill } from '../../src/store/work/backfill.ts';
import { makeSeriesOf } from '../bench/prepared.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { countLedgerWrites } from '../support/ledger-writes.ts';
import { createManualClock, type ManualClock } from './manual-clock.ts';

const NOON = Date.parse('2024-03-10T12:00:00Z');
const FROM = Date.parse('2023-01-01T00:00:00Z');
const span = (fromDay: number, toDay: number): Span => ({ from: FROM + fromDay * DAY, to: FROM + toDay * DAY });
const COINS = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin', 'xrp-xrp'] as const;

let database: TestDatabase;
let clock: ManualClock;
let quota: Quota;
let spender: Spender;
let backfillId: number;
let series: number[];

beforeEach(async () => {
  database = await createTestDatabase();
  clock = createManualClock(NOON);
  series = await makeSeriesOf(database.sql, COINS, '24h', span(0, 300));
  backfillId = await startBackfill(database.sql, {
    requestedAt: NOON,
    startedAt: NOON,
    spec: {},
    span: span(0, 300),
    interval: '24h',
    quote: 'usd',
    plannedRequests: 4,
    owner: 'here:1',
  });
  spender = { class: 'backfill', name: `backfill ${backfillId}` };
  quota = open({});
});
afterEach(() => database.drop());

function open(limits: Partial<Limits>, change: Partial<QuotaOptions> = {}): Quota {
  return createQuota({
    sql: database.sql,
    accountId: 'one',
    limits: { perMonth: null, perDay: null, perSecond: null, ...limits },
    setAside: () => ({ day: 0, month: 0 }),
    useDatabaseClock: false,
    random: () => 0,
    clock,
    ...change,
  });
}

function stretch(coin: number, change: Partial<Stretch> = {}): Stretch {
  return {
    backfillId,
    seriesId: series[coin]!,
    coinId: COINS[coin]!,
    quote: 'usd',
    interval: '24h',
    span: span(0, 300),
    askedSince: NOON,
    plan: 'free',
    ...change,
  };
}

const cover = (coin: number, spans: readonly Span[]) =>
  database.sql`update market.series set covered = ${toMultirange(spans)}::tstzmultirange where id = ${series[coin]!}`;
const spent = async () => (await quota.state()).month.spent;

describe('a turn for a stretch', () => {
  it('comes with what of it is worth the request', async () => {
    await cover(0, [span(0, 100), span(150, 200)]);
    await database.sql`insert into market.pending (series_id, span, reason, answers, asked_at, due_at)
      values (${series[0]!}, ${toRange(span(290, 300))}::tstzrange, 'unconfirmed', 1,
        to_timestamp(${(NOON - DAY) / 1000}), to_timestamp(${(NOON + DAY) / 1000}))`;
    await recordRefusal(database.sql, {
      plan: 'free',
      seriesId: series[0]!,
      span: span(280, 290),
      reason: 'bad request',
      message: 'no',
      refusedAt: NOON,
      fetchId: null,
    });
    const take = await quota.take(spender, stretch(0));
    expect(take).toMatchObject({ kind: 'granted', sendAt: NOON, gaps: [span(100, 150), span(200, 280)] });
    // Another plan was not refused.
    const other = await quota.take(spender, stretch(0, { plan: 'pro' }));
    expect(other).toMatchObject({ kind: 'granted', gaps: [span(100, 150), span(200, 290)] });
    expect(await spent()).toBe(2);
  });

  it.each([
    ['all of it is covered', () => cover(0, [span(0, 300)]), {}],
    ['its backfill has ended', () => finishBackfill(database.sql, backfillId, 'done', NOON), {}],
    ['nobody knows its backfill', () => Promise.resolve(), { backfillId: 4711 }],
    ['its series is of another coin', () => Promise.resolve(), { coinId: 'eth-ethereum' }],
    ['its series is of another quote', () => Promise.resolve(), { quote: 'btc' }],
    ['its series is of another interval', () => Promise.resolve(), { interval: '1h' }],
  ] as const)('is not taken when %s, and nothing is counted', async (_, happens, change) => {
    await happens();
    expect(await quota.take(spender, stretch(0, change))).toEqual({ kind: 'unwanted' });
    expect(await spent()).toBe(0);
  });

  it('is not denied either when nobody wants it any more', async () => {
    const tight = open({ perDay: 1 });
    await tight.take(spender);
    await cover(0, [span(0, 300)]);
    expect(await tight.take(spender, stretch(0))).toEqual({ kind: 'unwanted' });
    expect(await tight.take(spender, stretch(1))).toMatchObject({ kind: 'denied', reason: 'day' });
  });

  it('taken by many at once is given to those who still want it, as far as it goes', async () => {
    const tight = open({ perDay: 3 });
    await cover(1, [span(0, 300)]);
    await cover(3, [span(0, 299)]);
    // The first is under way by itself; the others are served together.
    const takes = await Promise.all([
      tight.take(spender),
      tight.take(spender, stretch(1)),
      tight.take(spender, stretch(0)),
      tight.take(spender, stretch(3)),
      tight.take(spender, stretch(2)),
    ]);
    expect(takes.map(({ kind }) => kind)).toEqual(['granted', 'unwanted', 'granted', 'granted', 'denied']);
    expect(takes[2]).toMatchObject({ gaps: [span(0, 300)] });
    expect(takes[3]).toMatchObject({ gaps: [span(299, 300)] });
    expect(takes[4]).toMatchObject({ reason: 'day' });
    expect(await spent()).toBe(3);
  });
});

describe('turns that are taken ahead', () => {
  const stretches = () => [stretch(0), stretch(1), stretch(2), stretch(3)];
  const takeAll = async (from = quota) => {
    const aheads = takeAhead(from, spender, stretches());
    return { aheads, kinds: await Promise.all(aheads.map(async ({ grant }) => (await grant)?.kind ?? null)) };
  };
  const NONE = [null, null, null, null];
  const ALL = ['granted', 'granted', 'granted', 'granted'];
  const counts = async () => {
    const { month, day } = await quota.state();
    const [own] = await quota.spenders();
    return [month.spent, day.spent, own?.month, own?.day];
  };

  it('are one statement of the ledger, for those that are worth a request', async () => {
    await quota.take(spender);
    const writes = await countLedgerWrites(database.sql);
    await cover(2, [span(0, 300)]);
    await cover(3, [span(0, 299)]);
    const { aheads, kinds } = await takeAll();
    expect(kinds).toEqual(['granted', 'granted', null, 'granted']);
    expect(await aheads[3]!.grant).toMatchObject({ sendAt: NOON, gaps: [span(299, 300)] });
    expect(await writes()).toBe(1);
    expect(await counts()).toEqual([4, 4, 4, 4]);
  });

  it('go back when they were not sent, to who took them', async () => {
    await quota.take({ class: 'scheduled', name: 'coins' });
    const { aheads } = await takeAll();
    aheads[1]!.isSent = true;
    await giveBackUnsent(quota, spender, aheads);
    expect((await quota.state()).month.spent).toBe(2);
    expect(await quota.spenders()).toEqual([
      { class: 'backfill', name: spender.name, month: 1, day: 1 },
      { class: 'scheduled', name: 'coins', month: 1, day: 1 },
    ]);
    await giveBackUnsent(quota, spender, [aheads[1]!]);
    expect((await quota.state()).month.spent).toBe(2);
  });

  it('go back on the database clock as well, while others take', async () => {
    const real = open({}, { useDatabaseClock: true, clock: systemClock });
    const taking = Promise.all(Array.from({ length: 20 }, () => real.take({ class: 'scheduled', name: 'coins' })));
    for (let i = 0; i < 5; i++) await giveBackUnsent(real, spender, (await takeAll(real)).aheads);
    await taking;
    expect((await real.state()).month.spent).toBe(20);
    expect(await real.spenders()).toEqual([
      { class: 'scheduled', name: 'coins', month: 20, day: 20 },
      { class: 'backfill', name: spender.name, month: 0, day: 0 },
    ]);
  });

  it('go back to the windows they are counted in, and to no others', async () => {
    const { aheads } = await takeAll();
    clock.set(NOON + DAY);
    await quota.take(spender);
    await giveBackUnsent(quota, spender, aheads);
    expect(await counts()).toEqual([1, 1, 1, 1]);
    const others = await takeAll();
    clock.set(Date.parse('2024-04-01T00:00:00Z'));
    const later = await takeAll();
    await quota.take(spender);
    expect(await counts()).toEqual([5, 5, 5, 5]);
    await giveBackUnsent(quota, spender, others.aheads);
    await giveBackUnsent(quota, spender, later.aheads);
    expect(await counts()).toEqual([1, 1, 1, 1]);
  });

  it('do not go back once upstream has told of a limit: what it has counted is not ours to lower', async () => {
    const { aheads } = await takeAll();
    await quota.reconcile({ made: 3, left: 100 });
    await giveBackUnsent(quota, spender, aheads);
    expect((await quota.state()).month.spent).toBe(4);
  });

  it('are for accounts without any limit, by the configuration and by what upstream has told', async () => {
    for (const limits of [{ perMonth: 100 }, { perDay: 100 }, { perSecond: 1000 }]) {
      expect((await takeAll(open(limits))).kinds).toEqual(NONE);
    }
    // Told to another process: this one finds out from the ledger.
    await open({}).reconcile({ made: 0, left: 100 });
    expect((await takeAll()).kinds).toEqual(NONE);
    expect((await quota.state()).month.spent).toBe(0);
    await quota.reconcile({ made: 0, left: null });
    await quota.take(spender);
    expect((await takeAll()).kinds).toEqual(ALL);
    await quota.reconcile({ made: 0, left: 100 });
    expect((await takeAll()).kinds).toEqual(NONE);
  });

  it.each([
    ['a 429', (other: Quota) => other.limited({ sentAt: NOON, retryAfterMs: 1000, message: '' })],
    ['an outage', (other: Quota) => other.unavailable({ sentAt: NOON, retryAfterMs: 1000, message: '' })],
    ['a spent month', (other: Quota) => other.spent({ sentAt: NOON, window: 'month', message: '' })],
  ] as const)('are not taken after %s that another process was told, nor is the probe after it', async (_, happens) => {
    await happens(open({}));
    expect((await takeAll()).kinds).toEqual(NONE);
    clock.set(NOON + 60 * DAY);
    // Of a process that has not met it: the ledger says so.
    expect((await takeAll(open({}))).kinds).toEqual(NONE);
    // It is still there for who needs it.
    expect(await quota.take(spender, stretch(0))).toMatchObject({ kind: 'granted' });
    await quota.answered({ sentAt: clock.now() });
    expect((await takeAll()).kinds).toEqual(ALL);
  });

  it('that the database does not answer are none, and who takes for itself is told', async () => {
    await database.sql`alter table ops.quota rename to elsewhere`;
    expect((await takeAll()).kinds).toEqual(NONE);
    await expect(quota.take(spender)).rejects.toThrow('ops.quota');
  });
});
