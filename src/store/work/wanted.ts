/** What a cancelled backfill wanted is not wanted any more, unless something else wants it; what is resumed is wanted again. */
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';

/**
 * Takes the span of a backfill out of what is wanted of its series, except
 * - what is covered: the candles stay, and stay counted;
 * - what other backfills wanted, however they ended, unless they were cancelled as well;
 * - what the rules of `chandler track` want.
 */
export function unwantBackfill(sql: SqlOrTransaction, id: number): Promise<void> {
  return withFreshPlans(sql, async (tx) => {
    await tx`
      with mine as materialized (
        select b.interval, b.quote, b.span, c.coin_id from ops.backfill b cross join lateral unnest(b.coin_ids) as c(coin_id)
        where b.id = ${id}
      ), other as materialized (
        select o.* from ops.backfill o join ops.backfill b on b.id = ${id}
        where o.id <> b.id and o.state <> 'cancelled' and o.interval = b.interval and o.quote = b.quote and o.span && b.span
      ), by_others as materialized (
        select c.coin_id, range_agg(o.span) as spans from other o cross join lateral unnest(o.coin_ids) as c(coin_id) group by c.coin_id
      ), by_unknown as materialized (
        -- A command of an earlier version did not say which coins it was about: it may have been any.
        select coalesce(range_agg(o.span), '{}') as spans from other o where o.coin_ids is null
      ), by_rules as materialized (
        select t.coin_id, min(t.since) as since from ops.track_target t
        where (t.interval, t.quote) = (select b.interval, b.quote from ops.backfill b where b.id = ${id}) group by t.coin_id
      ), kept as (
        select s.id, m.span,
          coalesce(o.spans, '{}') + u.spans
          + case when r.since is null then '{}' else tstzmultirange(tstzrange(r.since, null)) end
          -- What came while a rule wanted the series: its last candles are still completed.
          + coalesce((select tstzmultirange(tstzrange(tr.tracked_at, null)) from ops.tracked tr
              where tr.series_id = s.id and tr.ends_at > tr.tracked_at), '{}') as spans
        from mine m join market.series s on s.coin_id = m.coin_id and s.interval = m.interval and s.quote = m.quote
        cross join by_unknown u left join by_others o on o.coin_id = m.coin_id left join by_rules r on r.coin_id = m.coin_id
      ), locked as (
        select s.id from market.series s join kept k on k.id = s.id order by s.coin_id, s.quote, s.interval for update of s
      )
      update market.series s set wanted = s.wanted - (tstzmultirange(k.span) - k.spans - s.covered)
      from kept k join locked l on l.id = k.id where s.id = k.id`;
  });
}

/** Makes the span of a backfill wanted again of its series, which its request has made. */
export function wantBackfillAgain(sql: SqlOrTransaction, id: number): Promise<void> {
  return withFreshPlans(sql, async (tx) => {
    await tx`
      with behind as (
        select s.id, b.span from ops.backfill b cross join lateral unnest(b.coin_ids) as c(coin_id)
        join market.series s on s.coin_id = c.coin_id and s.interval = b.interval and s.quote = b.quote
        where b.id = ${id} and not s.wanted @> b.span
      ), locked as (
        select s.id from market.series s join behind b on b.id = s.id order by s.coin_id, s.quote, s.interval for update of s
      )
      update market.series s set wanted = s.wanted + tstzmultirange(b.span) from behind b join locked l on l.id = b.id where s.id = b.id`;
  });
}
