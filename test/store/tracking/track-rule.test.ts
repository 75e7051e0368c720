import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CoinSummary } from '../../../src/contract/record/records.ts';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { readGaps } from '../../../src/store/candle/gaps.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { recordCoins, recordTickers } from '../../../src/store/snapshot/coin.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import {
  addTracks,
  readTracks,
  removeTracks,
  type TrackedCoins,
  type TrackRule,
} from '../../../src/store/tracking/track-rule.ts';
import { recordRefreshes } from '../../../src/store/tracking/tracked-series.ts';
import { readTiers } from '../../../src/store/tracking/tracked-tier.ts';
import { recordRenames } from '../../../src/store/upkeep/rename.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { readSeries } from '../../support/series.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(() => database.sql`truncate market.coin, ops.track, ops.tier, ops.tracked, market.coin_rename cascade`);

const MONDAY = Date.UTC(2024, 0, 1);
const day = (n: number) => MONDAY + n * DAY;
const SINCE = day(-30);

const coin = (id: string, rank: number, rest: Partial<CoinSummary> = {}): CoinSummary => ({
  id,
  name: id.split('-').slice(1).join(' '),
  symbol: id.split('-')[0]!.toUpperCase(),
  rank,
  is_new: false,
  is_active: true,
  type: 'coin',
  ...rest,
});
const rule = (coins: TrackedCoins, rest: Partial<TrackRule> = {}): TrackRule =>
  ({ ...coins, interval: '24h', quote: 'usd', since: SINCE, priority: 0, targetAgeMs: DAY, ...rest }) as TrackRule;
const named = (coinId: string, rest: Partial<TrackRule> = {}) =>
  rule({ tier: 'list', coinId }, { priority: 20, ...rest });
const top = (n: number, rest: Partial<TrackRule> = {}) => rule({ tier: 'top', top: n }, { priority: 10, ...rest });
const all = (rest: Partial<TrackRule> = {}) => rule({ tier: 'all' }, rest);

const add = (...rules: TrackRule[]) => addTracks(database.sql, rules, MONDAY);
const apply = (now: number) => applyTracks(database.sql, now);
/** Each tracked series as `coin interval tier priority wanted`; `…` is an open end. */
const tracked = async () =>
  (
    await database.sql<{ text: string }[]>`
      select s.coin_id || ' ' || s.interval || ' ' || k.tier || ' ' || s.priority || ' '
        || coalesce(to_char(lower(s.wanted), 'YYYY-MM-DD'), '') || '…' || coalesce(to_char(upper(s.wanted), 'YYYY-MM-DD'), '')
        || case when tr.ends_at is null then '' else ' ends' end as text
      from ops.tracked tr join market.series s on s.id = tr.series_id join ops.tier k on k.id = tr.tier_id
      order by s.coin_id, s.interval`
  ).map((row) => row.text);
const seriesOf = async (coinId: string) => {
  const [row] = await database.sql<{ id: number }[]>`select id from market.series where coin_id = ${coinId}`;
  return row!.id;
};
const asked = async (coinId: string, at: number) =>
  recordRefreshes(database.sql, [{ seriesId: await seriesOf(coinId), askedAt: at, refreshAt: at, isQueued: false }]);
const cover = async (coinId: string, from: number, to: number) =>
  database.sql`update market.series set covered = ${[{ from, to }]}::tstzmultirange where coin_id = ${coinId}`;

describe('rules', () => {
  test('are stored once for the same coins, interval and quote; the last given tier holds', async () => {
    await recordCoins(database.sql, [coin('btc-bitcoin', 1)], MONDAY);
    await add(
      named('btc-bitcoin'),
      named('btc-bitcoin', { priority: 5 }),
      top(10),
      top(20),
      all(),
      all({ interval: '1h' }),
    );
    await add(named('btc-bitcoin', { targetAgeMs: 36 * HOUR, since: day(-3) }), top(10, { targetAgeMs: 2 * DAY }));
    expect(await readTracks(database.sql)).toMatchObject([
      { tier: 'list', coinId: 'btc-bitcoin', top: null, since: day(-3), priority: 20, targetAgeMs: 36 * HOUR },
      { tier: 'top', coinId: null, top: 10, targetAgeMs: 2 * DAY, createdAt: MONDAY },
      { tier: 'top', top: 20, targetAgeMs: DAY },
      { tier: 'all', interval: '24h', quote: 'usd' },
      { tier: 'all', interval: '1h' },
    ]);
  });

  test('are removed by coins, interval and quote', async () => {
    await recordCoins(database.sql, [coin('a-a', 1), coin('b-b', 2)], MONDAY);
    await add(named('a-a'), named('a-a', { interval: '1h' }), named('b-b'), top(5), top(5, { quote: 'btc' }), all());
    const gone = async (filter: Parameters<typeof removeTracks>[1]) =>
      (await removeTracks(database.sql, filter)).length;
    expect(await gone({ coins: [{ tier: 'list', coinId: 'a-a' }], intervals: ['1h', '5m'] })).toBe(1);
    expect(await gone({ coins: [{ tier: 'top', top: 5 }], quote: 'btc' })).toBe(1);
    expect(await gone({ coins: [{ tier: 'top', top: 6 }] })).toBe(0);
    expect(await gone({ coins: [{ tier: 'all' }, { tier: 'list', coinId: 'b-b' }] })).toBe(2);
    expect((await readTracks(database.sql)).map((r) => r.coinId ?? r.top)).toEqual(['a-a', 5]);
  });
});

describe('applying them', () => {
  test('wants each series once, without an end, with the best terms of all its rules', async () => {
    await recordCoins(
      database.sql,
      [coin('a-a', 1), coin('b-b', 2), coin('c-c', 3), coin('dead-d', 0, { is_active: false })],
      MONDAY,
    );
    await add(
      named('b-b', { since: day(-5) }),
      top(2, { targetAgeMs: 12 * HOUR }),
      all({ since: day(-10) }),
      all({ interval: '1h' }),
    );
    expect(await apply(MONDAY)).toEqual({ series: 6, added: 6, ended: 0, completed: 0, renamed: 0, moved: 0 });
    expect(await tracked()).toEqual([
      'a-a 1h all 0 2023-12-02…',
      'a-a 24h top 10 2023-12-02…',
      'b-b 1h all 0 2023-12-02…',
      'b-b 24h list 20 2023-12-02…',
      'c-c 1h all 0 2023-12-02…',
      'c-c 24h all 0 2023-12-22…',
    ]);
    expect(await readTiers(database.sql)).toMatchObject([
      { tier: 'list', targetAgeMs: 12 * HOUR, series: 1 },
      { tier: 'top', targetAgeMs: 12 * HOUR, series: 1 },
      { tier: 'all', interval: '24h', series: 1 },
      { tier: 'all', interval: '1h', series: 3 },
    ]);
    // A second run changes nothing.
    expect(await apply(MONDAY + HOUR)).toEqual({ series: 6, added: 0, ended: 0, completed: 0, renamed: 0, moved: 0 });
  });

  test('neither the future nor the time before the coin began is a gap', async () => {
    const today = Math.floor(Date.now() / DAY) * DAY;
    await recordCoins(database.sql, [coin('a-a', 1)], today);
    await recordTickers(database.sql, { coinId: ['a-a'], rank: [1], firstDataAt: [today - 3 * DAY + HOUR] }, today);
    await add(named('a-a', { since: today - 300 * DAY }));
    await apply(today);
    const [row] = await database.sql`select slots_wanted, slots_missing, wanted_from from market.coverage`;
    expect(row).toMatchObject({ slotsWanted: 4, slotsMissing: 4, wantedFrom: today - 3 * DAY });
    const gaps = await readGaps(database.sql, {
      coinIds: ['a-a'],
      quote: 'usd',
      interval: '24h',
      span: { from: today - 300 * DAY, to: today + DAY },
      now: today,
      askedSince: today,
      plan: 'free',
    });
    expect(gaps[0]?.gaps).toEqual([{ from: today - 3 * DAY, to: today + DAY }]);
  });

  test('the top follows the ranking: a coin that drops out keeps its candles and gets no new ones until it is back', async () => {
    await recordCoins(database.sql, [coin('a-a', 1), coin('b-b', 2), coin('c-c', 3)], MONDAY);
    await add(top(2));
    await apply(MONDAY);
    await asked('b-b', MONDAY);
    await cover('b-b', SINCE, MONDAY);
    await recordCoins(database.sql, [coin('a-a', 1), coin('b-b', 3), coin('c-c', 2)], day(1));
    expect(await apply(day(1) + HOUR)).toMatchObject({ series: 2, added: 1, ended: 1 });
    expect(await tracked()).toEqual([
      'a-a 24h top 10 2023-12-02…',
      'b-b 24h top 10 2023-12-02…2024-01-03 ends',
      'c-c 24h top 10 2023-12-02…',
    ]);
    // Complete up to its end, the series is no longer tracked; its candles and coverage remain.
    await cover('b-b', SINCE, day(2));
    expect(await apply(day(4))).toMatchObject({ ended: 0, completed: 1 });
    expect((await readSeries(database.sql, await seriesOf('b-b')))?.covered).toEqual([{ from: SINCE, to: day(2) }]);
    await recordCoins(database.sql, [coin('a-a', 1), coin('b-b', 2), coin('c-c', 3)], day(5));
    expect(await apply(day(5))).toMatchObject({ added: 1, ended: 1 });
    expect(await tracked()).toContain('b-b 24h top 10 2023-12-02…');
  });

  test('a new coin is tracked, a dead coin ends, and a coin that one list lacks does not end', async () => {
    await recordCoins(database.sql, [coin('a-a', 1), coin('b-b', 2)], MONDAY);
    await add(all(), named('b-b'));
    await apply(MONDAY);
    await asked('b-b', MONDAY);
    await recordCoins(database.sql, [coin('n-new', 3), coin('b-b', 0, { is_active: false })], day(1));
    expect(await apply(day(1))).toMatchObject({ series: 2, added: 1, ended: 1 });
    expect(await tracked()).toEqual([
      'a-a 24h all 0 2023-12-02…',
      'b-b 24h list 20 2023-12-02…2024-01-02 ends',
      'n-new 24h all 0 2023-12-02…',
    ]);
    // It is requested until it is complete, or for a month.
    expect(await apply(day(31))).toMatchObject({ completed: 0 });
    expect(await apply(day(33))).toMatchObject({ completed: 1 });
    await recordCoins(database.sql, [coin('n-new', 1)], day(34));
    expect(await apply(day(34))).toMatchObject({ series: 1, ended: 1 });
  });

  test('tracking a coin by mistake leaves nothing behind if nothing was requested; a backfill keeps its series', async () => {
    await recordCoins(database.sql, [coin('a-a', 1), coin('b-b', 2)], MONDAY);
    await wantSeries(database.sql, {
      coinIds: ['b-b'],
      quote: 'usd',
      interval: '24h',
      span: { from: day(-100), to: day(-90) },
      priority: 0,
    });
    await cover('b-b', day(-100), day(-95));
    await add(all());
    await apply(MONDAY);
    await removeTracks(database.sql, { coins: [{ tier: 'all' }] });
    expect(await apply(MONDAY + 5 * HOUR)).toMatchObject({ series: 0, ended: 2, completed: 1 });
    const rows = await database.sql`select coin_id, wanted::text from market.series`;
    expect([...rows]).toEqual([
      {
        coinId: 'b-b',
        wanted:
          '{["2023-09-23 00:00:00+00","2023-10-03 00:00:00+00"),["2023-12-02 00:00:00+00","2024-01-02 00:00:00+00")}',
      },
    ]);
  });

  test('any number of processes at once come to the same result', async () => {
    await recordCoins(
      database.sql,
      Array.from({ length: 300 }, (_, i) => coin(`c${i}-coin`, i + 1)),
      MONDAY,
    );
    await add(all(), top(100, { interval: '1h' }));
    const results = await Promise.all([apply(MONDAY), apply(MONDAY), apply(MONDAY)]);
    expect(results.map((r) => r.added).sort((a, b) => a - b)).toEqual([0, 0, 400]);
  });
});

describe('a coin that was given a new id', () => {
  const before = [coin('btc-bitcoin', 1), coin('mat-matic', 5)];
  const renamed = { name: 'matic', symbol: 'MAT' };
  const renames = () => database.sql`select old_id, new_id, source from market.coin_rename`;
  const candles = async () => {
    const id = await seriesOf('mat-matic');
    await cover('mat-matic', SINCE, MONDAY);
    await asked('mat-matic', MONDAY);
    return id;
  };
  const start = async (...rules: TrackRule[]) => {
    await recordCoins(database.sql, before, MONDAY);
    await add(...rules);
    await apply(MONDAY);
    return candles();
  };

  test.each([
    ['became inactive', [coin('mat-matic', 0, { is_active: false })]],
    ['left the list', []],
  ])('keeps one history when the old id %s', async (_, old) => {
    const id = await start(named('mat-matic'), all());
    await recordCoins(database.sql, [coin('btc-bitcoin', 1), coin('pol-polygon', 5, renamed), ...old], day(1));
    expect(await apply(day(1))).toMatchObject({ renamed: 1, moved: 1, added: 0, ended: 0, series: 2 });
    expect([...(await renames())]).toEqual([{ oldId: 'mat-matic', newId: 'pol-polygon', source: 'coins' }]);
    expect(await readSeries(database.sql, id)).toMatchObject({
      coinId: 'pol-polygon',
      covered: [{ from: SINCE, to: MONDAY }],
    });
    expect((await readTracks(database.sql)).map((r) => r.coinId)).toEqual(['pol-polygon', null]);
    expect(await apply(day(2))).toMatchObject({ renamed: 0, moved: 0 });
  });

  test.each<[string, CoinSummary[]]>([
    ['the old one is still there', [coin('mat-matic', 5), coin('pol-polygon', 6, renamed)]],
    [
      'two could be meant',
      [coin('pol-polygon', 5, renamed), coin('pol-copy', 6, renamed), coin('mat-matic', 0, { is_active: false })],
    ],
    [
      'the symbol is another',
      [coin('pol-polygon', 5, { ...renamed, symbol: 'POL' }), coin('mat-matic', 0, { is_active: false })],
    ],
  ])('is treated as another coin when %s', async (_, list) => {
    await start(named('mat-matic'));
    await recordCoins(database.sql, [coin('btc-bitcoin', 1), ...list], day(1));
    expect(await apply(day(1))).toMatchObject({ renamed: 0, moved: 0 });
  });

  test('is another coin when its data began on another day, or it appeared weeks later', async () => {
    await start(named('mat-matic'));
    await recordTickers(database.sql, { coinId: ['mat-matic'], rank: [5], firstDataAt: [day(-900)] }, MONDAY);
    const dead = coin('mat-matic', 0, { is_active: false });
    await recordCoins(database.sql, [coin('btc-bitcoin', 1), dead], day(1));
    await recordCoins(database.sql, [coin('btc-bitcoin', 1), dead, coin('new-new', 5, renamed)], day(2));
    await recordTickers(database.sql, { coinId: ['new-new'], rank: [5], firstDataAt: [day(2)] }, day(2));
    expect(await apply(day(2))).toMatchObject({ renamed: 0 });
    await database.sql`update market.coin set first_data_at = null, first_seen_at = ${day(20)} where id = 'new-new'`;
    expect(await apply(day(20))).toMatchObject({ renamed: 0 });
  });

  test('an unanswered series of the new id is replaced; two histories are not mixed', async () => {
    const id = await start(named('mat-matic'));
    await recordCoins(
      database.sql,
      [coin('btc-bitcoin', 1), coin('mat-matic', 5), coin('pol-polygon', 6, renamed)],
      day(1),
    );
    await add(named('pol-polygon', { since: day(-60) }));
    await apply(day(1));
    await recordRenames(database.sql, [{ oldId: 'mat-matic', newId: 'pol-polygon', at: day(1) }], 'changelog');
    expect(await apply(day(1))).toMatchObject({ moved: 1 });
    expect(await readSeries(database.sql, id)).toMatchObject({
      coinId: 'pol-polygon',
      wanted: [{ from: day(-60), to: Number.POSITIVE_INFINITY }],
    });
    await recordCoins(database.sql, [coin('x-x', 9)], day(1));
    await wantSeries(database.sql, {
      coinIds: ['x-x'],
      quote: 'usd',
      interval: '24h',
      span: { from: SINCE, to: MONDAY },
      priority: 0,
    });
    await cover('x-x', SINCE, MONDAY);
    await recordRenames(database.sql, [{ oldId: 'x-x', newId: 'pol-polygon', at: day(2) }], 'changelog');
    expect(await apply(day(2))).toMatchObject({ moved: 0 });
    expect(await seriesOf('x-x')).toBeDefined();
  });

  test('the changelog may be read repeatedly, and may rename a coin twice and back', async () => {
    const log = [
      { oldId: 'b', newId: 'mat-matic', at: day(-10) },
      { oldId: 'a', newId: 'b', at: day(-20) },
      { oldId: 'mat-matic', newId: 'c', at: day(-5) },
      { oldId: 'c', newId: 'mat-matic', at: day(-4) },
      { oldId: 'same', newId: 'same', at: day(-4) },
    ];
    expect(await recordRenames(database.sql, log, 'changelog')).toBe(4);
    expect(await recordRenames(database.sql, log, 'changelog')).toBe(0);
    const rows = await database.sql`select old_id, new_id from market.coin_rename order by 1`;
    expect([...rows]).toEqual([
      { oldId: 'a', newId: 'b' },
      { oldId: 'b', newId: 'mat-matic' },
      { oldId: 'c', newId: 'mat-matic' },
    ]);
    await recordCoins(database.sql, [coin('a', 0, { is_active: false }), coin('mat-matic', 1)], MONDAY);
    await wantSeries(database.sql, {
      coinIds: ['a'],
      quote: 'usd',
      interval: '24h',
      span: { from: SINCE, to: MONDAY },
      priority: 0,
    });
    expect(await apply(MONDAY)).toMatchObject({ moved: 1 });
    expect(await seriesOf('mat-matic')).toBeDefined();
  });
});
