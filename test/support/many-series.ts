/** A warehouse with the largest number of series, made by a few statements instead of requests. */
import { ALL_INTERVALS } from '../../src/core/interval.ts';
import type { Sql } from '../../src/store/connection/connect.ts';

/** The series of a coin: each interval of candles and of prices, in both quotes. */
export const SERIES_OF_A_COIN = 2 * ALL_INTERVALS.length;

/**
 * Seven of ten series are tracked and end near now; the others want five years. One of ten is untouched, one has only its newer part, one
 * has holes. No candle is stored, but the counts say that each covered slot has one. Eight backfills of all coins are open, and `requests`
 * were sent in the last day, ten a second.
 */
export async function makeManySeries(
  sql: Sql,
  { coins, requests }: { readonly coins: number; readonly requests: number },
): Promise<void> {
  await sql`
    insert into market.coin (id, name, symbol, rank, type, is_new, is_active, first_data_at, first_seen_at, last_seen_at, rank_seen_at)
    select 'c' || i || '-coin-' || i, 'Coin ' || i, 'C' || i, case when i <= 5000 then i else 0 end, 'coin', false, i % 3 > 0,
      case when i % 10 > 0 then timestamptz '2014-01-01' + (i % 4000) * interval '1 day' end, now(), now(), now()
    from generate_series(1, ${coins}::int) i`;
  await sql`
    insert into market.series (coin_id, quote, interval, wanted, covered, covered_candles, answered_at, candles, steps)
    select coin, q, interval, wanted, covered, n, now(), n + 100, 2 from (select 'c' || i || '-coin-' || i as coin, q, k.interval::market.candle_interval,
      tstzmultirange(tstzrange('2020-01-01', case when (i + k.n) % 10 >= 7 then '2025-01-01'::timestamptz end)) as wanted,
      case (i * 7 + k.n) % 10
        when 0 then '{}'::tstzmultirange
        when 1 then tstzmultirange(tstzrange('2023-01-01', t.today - interval '1 day'))
        when 2 then tstzmultirange(tstzrange('2020-01-01', '2021-03-01'), tstzrange('2021-03-04', t.today - interval '1 day'))
        else tstzmultirange(tstzrange('2020-01-01', t.today - (i % 3) * interval '1 day'))
      end as covered
    from generate_series(1, ${coins}::int) i, unnest(array['usd', 'btc']) q,
      unnest(${ALL_INTERVALS as string[]}::text[]) with ordinality as k(interval, n), (select date_trunc('day', now()) as today) t) s,
      lateral (select coalesce(sum(extract(epoch from upper(r) - lower(r))), 0) / ops.seconds_of(interval) as n from unnest(covered) r) slots`;
  await sql`
    insert into ops.tier (tier, priority, interval, target_age, achievable_age, planned_at)
    select 'all', 0, i::market.candle_interval, interval '1 day', interval '2 days', now() from unnest(${ALL_INTERVALS as string[]}::text[]) i`;
  await sql`
    insert into ops.tracked (series_id, tier_id, tracked_at, asked_at, refresh_at, seen_until)
    select s.id, t.id, now() - interval '90 days', at, at + interval '1 day', at
    from market.series s join ops.tier t on t.interval = s.interval, lateral (select now() - s.id % 86400 * interval '1 second' as at) a
    where upper_inf(s.wanted)`;
  await sql`
    insert into ops.second_opinion (claim, series_id, span, answers, requested_at, retry_at)
    select 'unconfirmed', id, tstzrange('2022-01-03', '2022-01-05'), 1, now(), now() + interval '1 hour' from market.series where id % 50 = 0`;
  await sql`
    insert into ops.backfill (requested_at, started_at, state, spec, span, interval, quote, planned_requests, owner, heartbeat_at,
      is_detached, priority, coin_ids, left_requests, requested_by)
    select now() - interval '1 day', case when n = 1 then now() end, case when n = 1 then 'running' when n < 8 then 'queued' else 'paused' end, '{}',
      tstzrange('2020-01-01', '2025-01-01'), (array['24h', '12h', '6h', '1h', '30m', '15m', '5m'])[1 + n % 7]::market.candle_interval,
      'usd', 700000, case when n = 1 then 'elsewhere:1' end, case when n = 1 then now() end, true, n % 3, c.ids, 600000, 'me@here'
    from generate_series(1, 8) n, (select array_agg(id) as ids from market.coin) c`;
  await sql`
    insert into ops.fetch (sent_at, as_of, account_id, endpoint, series_id, span, backfill_id, attempt, status, outcome, duration_ms, rows,
      stored, revised, quarantined, bytes)
    select now() - (${requests}::int - n) * interval '100 ms', now(), 'a', 'ohlcv', n, tstzrange('2020-01-01', '2021-01-01'),
      case when n % 2 = 0 then 1 end, 1, 200, case when n % 100 = 0 then 'unavailable' else 'stored' end, 100, 366, 300, 0, 0, 70000
    from generate_series(1, ${requests}::int) n`;
  await sql`vacuum analyze market.coin, market.series, ops.tracked, ops.second_opinion, ops.backfill, ops.fetch`;
}
