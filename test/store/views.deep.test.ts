/** The views with very many series. */
import { expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { recordHistoryLimit } from '../../src/store/candle/refusal.ts';
import { database, day, useSeries } from './views.ts';

useSeries();

test('the views return all of 50,000 series', { timeout: 300_000 }, async () => {
  await database.sql`
    insert into market.coin select 'c' || i, 'c' || i, 'C', i, 'coin', false, true, null, now(), now(), now() from generate_series(1, 50000) i`;
  await database.sql`
    insert into market.series (coin_id, quote, interval, wanted, covered)
    select id, 'usd', '24h', '{[2016-01-01,)}', tstzmultirange(tstzrange('2016-01-01', '2020-01-01'), tstzrange('2021-01-01', now() - interval '2 days'))
    from market.coin where id like 'c%'`;
  await database.sql`
    insert into ops.second_opinion (series_id, span, claim, answers, requested_at, retry_at) select id, tstzrange(now() - interval '2 days', now() + interval '1 day'), 'provisional', 1, now(), now()
    from market.series where coin_id like 'c%'`;
  await recordHistoryLimit(database.sql, {
    plan: 'free',
    interval: '24h',
    depthMs: 30 * DAY,
    message: 'history limit',
    refusedAt: day(1),
  });
  await database.sql`analyze`;
  for (const view of ['coverage', 'gaps', 'freshness']) {
    const [told] = await database.sql.unsafe(`select count(*)::int as rows, max(r::text) from market.${view} r`);
    expect(told!.rows, view).toBeGreaterThanOrEqual(50_000);
  }
});
