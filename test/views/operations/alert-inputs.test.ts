/** Which tiers count as late because the quota does not keep them as fresh as wanted. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { readAlertInputs } from '../../../src/views/operations/alert-inputs.ts';
import { createTestDatabase } from '../../support/database.ts';

test.each([
  ['less often than its target says', '3 hours', '3 hours', '4 hours', true],
  ['as often as its target says', '3 hours', '2 hours', '3 hours', false],
  ['at every run, although its target is shorter', '30 minutes', '1 hour', '2 hours', false],
  ['not at every run, and its target is shorter', '30 minutes', '2 hours', '3 hours', true],
  ['each day', '1 day', '1 day', '25 hours', false],
  ['less often than each day', '1 day', '26 hours', '27 hours', true],
  ['never', '1 day', null, null, true],
])('a tier is late or not when its series are refreshed %s', async (_, target, after, achievable, isLate) => {
  const database = await createTestDatabase({ max: 1 });
  try {
    const { sql } = database;
    await sql`
      with coin as (
        insert into market.coin (id, name, symbol, rank, is_new, is_active, first_seen_at, last_seen_at, rank_seen_at)
        values ('btc-bitcoin', 'Bitcoin', 'BTC', 1, false, true, now(), now(), now())
      ), series as (
        insert into market.series (coin_id, quote, interval, wanted) values ('btc-bitcoin', 'usd', '1h', '{}') returning id
      ), tier as (
        insert into ops.tier (tier, interval, target_age, priority, planned_at, refresh_after, achievable_age)
        values ('list', '1h', ${target}, 20, now(), ${after}, ${achievable}) returning id
      )
      insert into ops.tracked (series_id, tier_id, tracked_at) select series.id, tier.id, now() from series, tier`;
    const query = {
      plan: 'free',
      now: systemClock.now(),
      since: systemClock.now(),
      schedules: [],
      revisionsADay: 1,
      quarantineAfter: null,
    } as const;
    expect((await readAlertInputs(sql, query)).lateTiers).toHaveLength(isLate ? 1 : 0);
  } finally {
    await database.drop();
  }
});
