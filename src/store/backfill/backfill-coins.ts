/** Changes the coins of recorded backfills: the upstream gives a coin another id, or no rule wants the past of a coin any more. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { changeBackfill } from './backfill-queue.ts';
import { wakeBackfillsAfterOwner } from './slot-owner.ts';
import { unwantBackfill } from './wanted.ts';

/** Queues a running backfill again, because its process has the old coins: it stops at its next renewal; the next owner plans anew. */
function isGivenBack(sql: SqlOrTransaction) {
  return sql`state = case when is_detached and state = 'running' then 'queued' else state end`;
}

export type MovedSeries = {
  readonly oldId: string;
  readonly newId: string;
  readonly interval: Interval;
  readonly quote: Quote;
};

/** Renames the coins of backfills of every state whose series have moved to another id. */
export async function renameCoins(sql: SqlOrTransaction, moved: readonly MovedSeries[]): Promise<void> {
  if (moved.length === 0) return;
  await sql`
    with moved as materialized (
      select old_id, new_id, interval::market.candle_interval, quote
      from unnest(${moved.map(({ oldId }) => oldId)}::text[], ${moved.map(({ newId }) => newId)}::text[],
        ${moved.map(({ interval }) => interval)}::text[], ${moved.map(({ quote }) => quote)}::text[]) as m(old_id, new_id, interval, quote)
    ), coin as (
      -- A backfill that names both ids must name the new one only once.
      select b.id, coalesce(m.new_id, c.coin_id) as coin_id, min(c.place) as place, bool_or(m.new_id is not null) as is_renamed
      from ops.backfill b cross join lateral unnest(b.coin_ids) with ordinality as c(coin_id, place)
      left join moved m on m.old_id = c.coin_id and m.interval = b.interval and m.quote = b.quote
      group by 1, 2
    ), renamed as (
      select id, array_agg(coin_id order by place) as coin_ids from coin group by id having bool_or(is_renamed)
    )
    update ops.backfill b set coin_ids = r.coin_ids, ${isGivenBack(sql)} from renamed r where b.id = r.id`;
}

export type OrphanedHistory = {
  /** Cancelled backfills: no rule wants the past of any of their coins. */
  readonly cancelled: readonly number[];
  /** Backfills that lost some of their coins; `coins` is how many. */
  readonly shortened: readonly { readonly id: number; readonly coins: number }[];
};

type RemovedRule = {
  readonly interval: Interval;
  readonly quote: Quote;
  /** Null for a rule about the top coins or all coins. */
  readonly coinId: string | null;
};

/**
 * After rules were removed: takes the coins of these rules out of open backfills of the past, unless another rule wants them in the span of the
 * backfill. A coin that is no longer active, or no longer in the top, keeps its past while a rule about it exists.
 */
export function cancelOrphanedHistory(
  sql: SqlOrTransaction,
  removed: readonly RemovedRule[],
  now: Instant,
): Promise<OrphanedHistory> {
  return withFreshPlans(sql, async (tx) => {
    const orphaned = await tx<{ id: number; orphans: string[]; coins: number }[]>`
      with removed as materialized (
        select distinct interval::market.candle_interval, quote, coin_id
        from unnest(${removed.map(({ interval }) => interval)}::text[], ${removed.map(({ quote }) => quote)}::text[],
          ${removed.map(({ coinId }) => coinId)}::text[]) as r(interval, quote, coin_id)
      )
      select b.id, array_agg(c.coin_id) as orphans, cardinality(b.coin_ids) as coins
      from ops.backfill b cross join lateral unnest(b.coin_ids) as c(coin_id)
      where b.is_detached and b.spec ? 'history' and b.state in ('queued', 'running', 'paused')
        and exists (
          select from removed r where r.interval = b.interval and r.quote = b.quote and coalesce(r.coin_id = c.coin_id, true))
        and not exists (
          select from ops.track_target t
          where t.interval = b.interval and t.quote = b.quote and t.coin_id = c.coin_id and t.since < upper(b.span))
        and not exists (
          select from ops.track t
          where t.interval = b.interval and t.quote = b.quote and t.coin_id = c.coin_id and t.since < upper(b.span))
      group by b.id order by b.id`;
    const cancelled: number[] = [];
    const shortened: { id: number; coins: number }[] = [];
    for (const { id, orphans, coins } of orphaned) {
      if (orphans.length < coins) {
        if (await leaveOut(tx, id, orphans)) shortened.push({ id, coins: orphans.length });
      } else if ((await changeBackfill(tx, id, 'cancel', now)) !== null) cancelled.push(id);
    }
    return { cancelled, shortened };
  });
}

/** Takes coins out of a backfill. Resolves to false when the backfill has ended meanwhile. */
async function leaveOut(tx: SqlOrTransaction, id: number, coinIds: readonly string[]): Promise<boolean> {
  const { count } = await tx`
    update ops.backfill b set ${isGivenBack(tx)}, coin_ids = array(
      select c.coin_id from unnest(b.coin_ids) with ordinality as c(coin_id, place)
      where not c.coin_id = any(${coinIds as string[]}::text[]) order by c.place)
    where id = ${id} and state in ('queued', 'running', 'paused')`;
  if (count === 0) return false;
  await unwantBackfill(tx, id, coinIds);
  await wakeBackfillsAfterOwner(tx);
  return true;
}
