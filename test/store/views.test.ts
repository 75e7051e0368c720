/** The views: gaps, coverage, candles and freshness. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countSlots } from '../../src/core/chunk.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { intersect, normalize, type Span, subtract, union } from '../../src/core/span.ts';
import { recordHistoryLimit, recordRefusal } from '../../src/store/candle/refusal.ts';
import { saveAccount } from '../../src/store/quota/account.ts';
import { recordTickers } from '../../src/store/snapshot/coin.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';
import { readGapTotals } from '../../src/views/operations/gaps.ts';
import { ANONYMOUS, BTC } from '../support/sample-records.ts';
import { database, day, days, JANUARY, seriesId, useSeries } from './views.ts';

useSeries();

const cover = (spans: Span[]) =>
  database.sql`update market.series set covered = ${spans}::tstzmultirange where id = ${seriesId}`;

const want = (spans: Span[]) =>
  database.sql`update market.series set wanted = ${spans}::tstzmultirange where id = ${seriesId}`;

const suspend = (span: Span, reason: string, dueAt: number, askedAt = JANUARY) => database.sql`
  insert into ops.second_opinion (series_id, span, claim, requested_at, retry_at)
  values (${seriesId}, ${span}::tstzrange, ${reason}, ${askedAt}, ${dueAt})`;

type Gap = { span: Span; slots: number; reason: string; detail: string | null; nextAskAt: number | null };

async function gaps(): Promise<Gap[]> {
  const rows = await database.sql<(Omit<Gap, 'span'> & { from: number; to: number })[]>`
    select gap_from as from, gap_to as to, slots, reason, detail, next_ask_at
    from market.gaps order by gap_from`;
  return rows.map(({ from, to, ...rest }) => ({ span: { from, to }, ...rest }));
}

async function coverage() {
  const rows = await database.sql`
    select slots_wanted, slots_covered, slots_missing, slots_unsettled, percent_complete::float8 as percent from market.coverage`;
  return rows[0];
}

describe('market.gaps', () => {
  test('has no row when everything wanted is covered', async () => {
    await cover([days(1, 11)]);
    expect(await gaps()).toEqual([]);
    expect(await coverage()).toMatchObject({ slotsWanted: 10, slotsCovered: 10, slotsMissing: 0, percent: 100 });
  });

  test('says for each span why it is missing and when it is requested again', async () => {
    await cover([days(3, 5)]);
    await suspend(days(5, 6), 'unconfirmed', day(20));
    await recordRefusal(database.sql, {
      plan: 'free',
      seriesId,
      span: days(7, 9),
      reason: 'unknown coin',
      message: 'id not found',
      refusedAt: day(12),
    });
    const open = { reason: 'not asked yet', detail: null, nextAskAt: null };
    expect(await gaps()).toEqual([
      { span: days(1, 3), slots: 2, ...open },
      { span: days(5, 6), slots: 1, reason: 'unconfirmed', detail: null, nextAskAt: day(20) },
      { span: days(6, 7), slots: 1, ...open },
      { span: days(7, 9), slots: 2, reason: 'unknown coin', detail: 'id not found', nextAskAt: day(13) },
      { span: days(9, 11), slots: 2, ...open },
    ]);
    expect(await coverage()).toMatchObject({ slotsWanted: 10, slotsCovered: 2, slotsMissing: 8, percent: 20 });
  });

  test('a history limit hides what lies behind it, moves with time, and ends with the plan', async () => {
    const refusedAt = Date.now();
    await want([{ from: day(1), to: Number.POSITIVE_INFINITY }]);
    await recordHistoryLimit(database.sql, {
      plan: 'free',
      interval: '24h',
      depthMs: 30 * DAY,
      message: 'only 30 days',
      refusedAt,
    });
    const before = await gaps();
    expect(before.map((gap) => [gap.reason, gap.detail])).toEqual([
      ['history limit', 'only 30 days'],
      ['not asked yet', null],
    ]);
    // The first day that begins after the limit.
    expect(before[1]!.span.from).toBe(Math.ceil((refusedAt - 30 * DAY) / DAY) * DAY);
    await saveAccount(database.sql, { ...ANONYMOUS, plan: 'business' });
    expect((await gaps()).map((gap) => gap.reason)).toEqual(['not asked yet']);
  });

  test('refuses a whole interval that the plan does not include', async () => {
    await recordHistoryLimit(database.sql, {
      plan: 'free',
      interval: '24h',
      depthMs: null,
      message: 'not in your plan',
      refusedAt: day(1),
    });
    expect(await gaps()).toEqual([
      { span: days(1, 11), slots: 10, reason: 'interval', detail: 'not in your plan', nextAskAt: null },
    ]);
  });

  test('a refusal that may have been temporary is requested again a day later', async () => {
    const refusal = { plan: 'free', seriesId, span: days(1, 11), message: 'no', refusedAt: day(12) };
    await recordRefusal(database.sql, { ...refusal, reason: 'bad request' });
    expect((await gaps())[0]).toMatchObject({ reason: 'bad request', nextAskAt: day(13) });
  });

  test('has nothing before the coin began, nor in the future', async () => {
    // Data that begin in the middle of a day belong to that day.
    await recordTickers(database.sql, { coinId: [BTC.id], rank: [1], firstDataAt: [day(4) + 5 * HOUR] }, JANUARY);
    expect(await gaps()).toMatchObject([{ span: days(4, 11), slots: 7 }]);
    const today = Math.floor(Date.now() / DAY) * DAY;
    await want([{ from: today - 2 * DAY, to: today + 10 * DAY }]);
    const [gap] = await gaps();
    expect(gap!.slots).toBe(3);
    expect(gap!.span.to).toBeLessThan(today + DAY);
  });

  test('counts slots that are too young to be final as missing, but not against completeness', async () => {
    const today = Math.floor(Date.now() / DAY) * DAY;
    await want([{ from: today - 9 * DAY, to: Number.POSITIVE_INFINITY }]);
    await cover([{ from: today - 9 * DAY, to: today - DAY }]);
    expect(await coverage()).toEqual({
      slotsWanted: 10,
      slotsCovered: 8,
      slotsMissing: 2,
      slotsUnsettled: 2,
      percent: 100,
    });
    // Gaps return the same, whatever the reasons are.
    await suspend({ from: today - DAY, to: today }, 'provisional', today + DAY);
    const totals = await readGapTotals(database.sql, {});
    expect(totals).toHaveLength(2);
    expect(totals).toEqual(
      expect.arrayContaining([
        { reason: 'provisional', gaps: 1, slots: 1, tooYoung: 1 },
        { reason: 'not asked yet', gaps: 1, slots: 1, tooYoung: 1 },
      ]),
    );
    await cover([{ from: today - 9 * DAY, to: today - 4 * DAY }]);
    const [counted] = await database.sql`
      select slots_missing::int as slots, slots_unsettled::int as young from market.coverage`;
    const again = await readGapTotals(database.sql, {});
    const sum = (of: 'slots' | 'tooYoung') => again.reduce((n, total) => n + total[of], 0);
    expect({ slots: sum('slots'), young: sum('tooYoung') }).toEqual(counted);
    expect(counted).toEqual({ slots: 5, young: 2 });
  });

  test('splits the missing time into pieces without overlap and without loss, whatever is pending and refused', async () => {
    const span = fc
      .tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 8 }))
      .map(([at, n]) => days(at, at + n));
    const spans = fc.array(span, { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(spans, spans, spans, spans, fc.boolean(), async (wanted, covered, pending, refused, limit) => {
        await want(normalize(wanted));
        await cover(normalize(covered));
        await database.sql`delete from ops.second_opinion`;
        await database.sql`delete from market.refusal`;
        for (const [i, p] of pending.entries()) {
          const known = await database.sql`select from ops.second_opinion where span = ${p}::tstzrange`;
          if (known.length === 0) await suspend(p, 'provisional', day(60 + i), day(50 + i));
        }
        for (const [i, r] of refused.entries()) {
          const refusal = {
            plan: 'free',
            seriesId,
            span: r,
            reason: 'forbidden',
            message: String(i),
            refusedAt: day(50),
          } as const;
          await recordRefusal(database.sql, refusal);
        }
        if (limit) {
          const depthMs = Date.now() - day(20) - HOUR;
          await recordHistoryLimit(database.sql, {
            plan: 'free',
            interval: '24h',
            depthMs,
            message: 'history limit',
            refusedAt: day(50),
          });
        }
        const found = await gaps();
        const missing = subtract(normalize(wanted), normalize(covered));
        expect(
          union(
            found.map((g) => g.span),
            [],
          ),
        ).toEqual(missing);
        expect(found.reduce((sum, g) => sum + g.slots, 0)).toBe(countSlots(missing, '24h'));
        const because = (reason: string) => normalize(found.filter((g) => g.reason === reason).map((g) => g.span));
        const forbidden = intersect(missing, normalize(refused));
        expect(because('forbidden')).toEqual(forbidden);
        const behind = limit ? [{ from: Number.NEGATIVE_INFINITY, to: day(21) }] : [];
        const reachable = subtract(subtract(missing, normalize(refused)), behind);
        const slotsOf = (list: Span[]) => countSlots(list, '24h');
        expect(slotsOf(because('provisional'))).toBe(slotsOf(intersect(reachable, normalize(pending))));
        expect(slotsOf(because('not asked yet'))).toBe(slotsOf(subtract(reachable, normalize(pending))));
        const row = await coverage();
        expect(row).toMatchObject({
          slotsWanted: slotsOf(normalize(wanted)),
          slotsMissing: slotsOf(missing),
          slotsCovered: slotsOf(intersect(normalize(wanted), normalize(covered))),
        });
      }),
      { numRuns: 60 },
    );
  });
});

describe('market.candles', () => {
  test('has each candle with its coin, its close time and whether it is final', async () => {
    await ensurePartitions(database.sql, '24h', days(1, 3));
    await database.sql`
      insert into market.candle (open_time, open, high, low, close, volume, market_cap, series_id, interval)
      values (${day(1)}, 1, 4, 0.5, 2, 10, null, ${seriesId}, '24h'),
        (${day(2)}, 2, 4, 0.5, 3, 10, 100, ${seriesId}, '24h')`;
    await cover([days(1, 2)]);
    const rows =
      await database.sql`select * from market.candles where coin_id = 'btc-bitcoin' and interval = '24h' order by open_time`;
    expect([...rows]).toEqual([
      {
        coinId: 'btc-bitcoin',
        symbol: 'BTC',
        quote: 'usd',
        interval: '24h',
        openTime: day(1),
        closeTime: Date.parse('2024-01-01T23:59:59Z'),
        open: 1,
        high: 4,
        low: 0.5,
        close: 2,
        volume: 10,
        marketCap: null,
        isFinal: true,
        madeOf: null,
        seriesId,
      },
      expect.objectContaining({ close: 3, isFinal: false }),
    ]);
  });

  test('reads only the partitions that the interval and the time filter need', async () => {
    await ensurePartitions(database.sql, '24h', { from: Date.UTC(2022, 0, 1), to: Date.UTC(2025, 0, 1) });
    await ensurePartitions(database.sql, '1h', days(1, 3));
    const plan = await database.sql.unsafe(`
      explain select close from market.candles
      where coin_id = 'btc-bitcoin' and quote = 'usd' and interval = '24h' and open_time >= '2024-01-01' and open_time < '2024-06-01'`);
    const text = plan.map((row) => row['QUERY PLAN']).join('\n');
    expect(text).toContain('candle_24h_2024');
    expect(text).not.toMatch(/candle_24h_202[235]|candle_1h|candle_5m/);
  });
});

describe('market.freshness', () => {
  test('has the age of the newest final answer, and whether the series is still tracked', async () => {
    await cover([days(1, 5)]);
    const read = () => database.sql`
      select final_until, is_tracked, age > interval '300 days' as old from market.freshness where coin_id = 'btc-bitcoin'`;
    expect([...(await read())]).toEqual([{ finalUntil: day(5), isTracked: false, old: true }]);
    await want([{ from: day(1), to: Number.POSITIVE_INFINITY }]);
    await cover([]);
    expect([...(await read())]).toEqual([{ finalUntil: null, isTracked: true, old: null }]);
  });
});
