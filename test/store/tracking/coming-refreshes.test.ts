/** When tracked series are due, as the reservation counts them: few rows even for many series. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../../src/core/interval.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { readComingRefreshes } from '../../../src/store/tracking/tracked-series.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const NOW = Date.UTC(2026, 0, 10, 12);

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test('series due at the same run are counted in one row, by their last request or their last refresh time, whichever is earlier', async () => {
  const { sql } = database;
  const series = [
    // Requested late: the refresh times do not move. Two of these are due at 13:00, and one a moment later.
    { asked: NOW - 3 * HOUR, due: NOW - 5 * HOUR },
    { asked: NOW - 5 * HOUR, due: NOW - 5 * HOUR },
    { asked: NOW - 5 * HOUR + 1, due: NOW - 5 * HOUR + 1, queued: NOW },
    // Due before its refresh time.
    { asked: NOW - 5.5 * HOUR, due: NOW - 2 * HOUR },
    // Never requested, and tracked since an hour ago.
    { asked: null, due: null, tracked: NOW - HOUR },
    // Tracking ended: the last candle cannot be final yet, and later it can.
    { asked: NOW - 5 * HOUR, due: NOW - 5 * HOUR, ends: NOW - HOUR },
    { asked: NOW - 4 * HOUR, due: NOW - 4 * HOUR, ends: NOW - DAY },
  ];
  const coinIds = series.map((_, i) => `c${i}-coin`);
  await sql`
    insert into market.coin (id, name, symbol, rank, type, is_new, is_active, first_seen_at, last_seen_at, rank_seen_at)
    select id, id, 'C', 1, 'coin', false, true, now(), now(), now() from unnest(${coinIds}::text[]) id`;
  const span = { from: NOW - 30 * DAY, to: NOW };
  await wantSeries(sql, { coinIds, interval: '24h', quote: 'usd', span, priority: 0 });
  const [tier] = await sql<{ id: number }[]>`
    insert into ops.tier (tier, priority, interval, target_age, achievable_age, refresh_after, planned_at)
    values ('all', 3, '24h', '7 hours', '6 hours 30 minutes', '6 hours', now()), ('all', 3, '1h', '1 day', null, null, now()) returning id`;
  for (const [i, { asked, due, queued = null, tracked = NOW - DAY, ends = null }] of series.entries())
    await sql`
      insert into ops.tracked (series_id, tier_id, tracked_at, asked_at, refresh_at, queued_at, ends_at)
      select id, ${tier!.id}, ${tracked}, ${asked}, ${due}, ${queued}, ${ends} from market.series where coin_id = ${coinIds[i]!}`;

  const row = (dueAt: number | null, rest = {}) => {
    const counts = { series: 1, queued: 0, isNew: 0, ...rest };
    return {
      tierId: tier!.id,
      priority: 3,
      interval: '24h',
      refreshAfterMs: 6 * HOUR,
      achievableAgeMs: 6.5 * HOUR,
      dueAt,
      ...counts,
    };
  };
  expect(await readComingRefreshes(sql, { now: NOW })).toEqual([
    row(NOW + HOUR / 2),
    row(NOW + HOUR, { series: 2 }),
    row(NOW + HOUR + MINUTE, { queued: 1 }),
    row(NOW + 2 * HOUR),
    row(null, { isNew: 1 }),
  ]);
  // A service with many series counts them like this.
  expect(await readComingRefreshes(sql, { now: NOW, withinMs: 2 * HOUR })).toEqual([
    row(NOW + 2 * HOUR, { series: 5, queued: 1 }),
    row(null, { isNew: 1 }),
  ]);
});
