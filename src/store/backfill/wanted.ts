/** Cancelling a backfill makes its spans unwanted, unless something else wants them. Resuming it makes them wanted again. */
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';

/**
 * Removes the span of a backfill from the wanted spans of its series, except
 * - covered spans: the candles stay, and still count;
 * - spans that other backfills wanted, unless these were cancelled, too;
 * - spans that the rules of `chandler track` want.
 *
 * `coinIds` limits this to coins that were taken out of the backfill; null means all its coins.
 */
export function unwantBackfill(
  sql: SqlOrTransaction,
  id: number,
  coinIds: readonly string[] | null = null,
): Promise<void> {
  return withFreshPlans(sql, async (tx) => {
    // Its own statement: the next one must see what another cancellation committed while this one waited.
    await tx`
      select from ops.backfill b cross join lateral unnest(coalesce(${coinIds as string[] | null}::text[], b.coin_ids)) as c(coin_id)
      join market.series s on s.coin_id = c.coin_id and s.interval = b.interval and s.quote = b.quote
      where b.id = ${id} order by s.coin_id for update of s`;
    // One aggregation by coin instead of a join: Postgres cannot estimate how many coins an array has, and would compare each with each.
    await tx`
      with mine as materialized (
        select id, interval, quote, span, coalesce(${coinIds as string[] | null}::text[], coin_ids) as coin_ids
        from ops.backfill where id = ${id}
      ), other as materialized (
        select o.span, o.coin_ids from mine b join ops.backfill o on o.id <> b.id and o.state <> 'cancelled'
          and o.interval = b.interval and o.quote = b.quote and o.span && b.span
      ), part as (
        select c.coin_id, true as is_mine, null::tstzrange as kept from mine cross join lateral unnest(coin_ids) as c(coin_id)
        union all
        select c.coin_id, false, o.span from other o cross join lateral unnest(o.coin_ids) as c(coin_id)
        union all
        select t.coin_id, false, tstzrange(t.since, null) from ops.track_target t
        where (t.interval, t.quote) = (select interval, quote from mine)
      ), of_coin as materialized (
        select coin_id, coalesce(range_agg(kept) filter (where kept is not null), '{}') as kept from part group by coin_id having bool_or(is_mine)
      ), unwanted as materialized (
        select s.id, tstzmultirange(b.span) - c.kept
            -- A command of an earlier version did not record its coins: it may have been about any.
            - (select coalesce(range_agg(o.span), '{}') from other o where o.coin_ids is null)
            -- Slots from the time when a rule wanted the series: their last candles are still fetched.
            - coalesce((select tstzmultirange(tstzrange(tr.tracked_at, null)) from ops.tracked tr
                where tr.series_id = s.id and tr.ends_at > tr.tracked_at), '{}') as unwanted
        from mine b cross join of_coin c
        join market.series s on s.coin_id = c.coin_id and s.interval = b.interval and s.quote = b.quote
      )
      update market.series s set wanted = s.wanted - (u.unwanted - s.covered) from unwanted u where s.id = u.id`;
  });
}

/** Adds the span of a backfill to the wanted spans of its series again. The series exist since the backfill was requested. */
export function wantBackfillAgain(sql: SqlOrTransaction, id: number): Promise<void> {
  return withFreshPlans(sql, async (tx) => {
    await tx`
      with locked as materialized (
        select s.id, b.span from ops.backfill b cross join lateral unnest(b.coin_ids) as c(coin_id)
        join market.series s on s.coin_id = c.coin_id and s.interval = b.interval and s.quote = b.quote
        where b.id = ${id} order by s.coin_id for update of s
      )
      update market.series s set wanted = s.wanted + tstzmultirange(l.span) from locked l where s.id = l.id and not s.wanted @> l.span`;
  });
}
