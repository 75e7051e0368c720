/** A permit that is taken only for what is still worth a request. One statement decides both. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import type { Span } from '../../src/core/span.ts';
import { createQuota } from '../../src/quota/ledger.ts';
import type { Limits, Quota, Spender, Stretch } from '../../src/quota/quota.ts';
import { finishBackfill, startBackfill } from '../../src/store/backfill/backfill.ts';
import { recordRefusal } from '../../src/store/candle/refusal.ts';
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

function open(limits: Partial<Limits>): Quota {
  return createQuota({
    sql: database.sql,
    accountId: 'one',
    limits: { perMonth: null, perDay: null, perSecond: null, ...limits },
    reserved: () => ({ day: 0, month: 0 }),
    useDatabaseClock: false,
    random: () => 0,
    clock,
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
  database.sql`update market.series set covered = ${spans}::tstzmultirange where id = ${series[coin]!}`;
const spent = async () => (await quota.state()).month.spent;

describe('a permit for a stretch', () => {
  it('comes with the part of the stretch that is worth the request', async () => {
    await cover(0, [span(0, 100), span(150, 200)]);
    await database.sql`insert into ops.second_opinion (series_id, span, claim, answers, requested_at, retry_at)
      values (${series[0]!}, ${span(290, 300)}::tstzrange, 'unconfirmed', 1,
        ${NOON - DAY}, ${NOON + DAY})`;
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

  it('is not denied either when nobody wants the stretch any more', async () => {
    const tight = open({ perDay: 1 });
    await tight.take(spender);
    await cover(0, [span(0, 300)]);
    expect(await tight.take(spender, stretch(0))).toEqual({ kind: 'unwanted' });
    expect(await tight.take(spender, stretch(1))).toMatchObject({ kind: 'denied', reason: 'day' });
  });

  it('goes to those callers that still want their stretch, as far as the quota lasts', async () => {
    const tight = open({ perDay: 3 });
    await cover(1, [span(0, 300)]);
    await cover(3, [span(0, 299)]);
    const writes = await countLedgerWrites(database.sql);
    // All takes of one moment are served together.
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
    // One statement finds no ledger yet, one serves all takes, and one says until when nothing is left.
    expect(await writes()).toBe(3);
    expect(await spent()).toBe(3);
  });
});
