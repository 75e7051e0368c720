/**
 * Decides which backfill requests a slot that several backfills want: each slot has one owner. A running command comes first, because a person
 * waits for it. Then come the open backfills of the service: highest priority first, and within a priority the oldest first. The later backfills
 * skip the slot. They request it only if the earlier ones are done, paused or cancelled and it is still missing.
 */
import { and, eq } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { SeriesSpan } from '../../core/interval.ts';
import type { Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables } from '../connection/tables.ts';
import { backfill } from '../schema/requests.ts';
import { leaseIsAlive } from '../work/lease.ts';

/** The reason of a backfill that waits because all its missing slots belong to others. */
export const ANOTHER_BACKFILL = 'another backfill';
/** The reason of a backfill that has requested everything, and waits because some answers were not final. */
export const NOT_FINAL_YET = 'not final yet';

/** The place of a backfill of the service in that order. `id` is null before it is recorded; it then comes last within its priority. */
export type Place = { readonly id: number | null; readonly priority: number };

type OwnersQuery = SeriesSpan & {
  readonly place: Place;
  readonly now: Instant;
};

/** The parts of the span that belong to backfills before this place, by coin. Coins without such parts are left out. */
export async function readOwnedByOthers(
  sql: SqlOrTransaction,
  { coinIds, quote, interval, span, place, now }: OwnersQuery,
): Promise<ReadonlyMap<string, Spans>> {
  const rows = await sql<{ coinId: string; spans: Spans }[]>`
    select c.coin_id, range_agg(b.span * ${span}::tstzrange) as spans
    from ops.backfill b cross join lateral unnest(b.coin_ids) as c(coin_id)
    -- A join instead of any(), which would compare every coin with every other.
    join unnest(${coinIds as string[]}::text[]) as asked(coin_id) on asked.coin_id = c.coin_id
    where b.interval = ${interval}::market.candle_interval and b.quote = ${quote} and b.span && ${span}::tstzrange
      and ${comesBefore(sql, place, now)}
    group by c.coin_id`;
  return new Map(rows.map(({ coinId, spans }) => [coinId, spans]));
}

function comesBefore(sql: SqlOrTransaction, { id, priority }: Place, now: Instant) {
  const isOlder = id === null ? sql`true` : sql`b.id < ${id}`;
  return sql`(
    (b.is_detached and b.state in ('queued', 'running') and (b.priority > ${priority} or (b.priority = ${priority} and ${isOlder})))
    or ${isRunningCommand(sql, now)})`;
}

/** An SQL condition: a backfill of a command whose process is alive, and whose coins are recorded. */
export function isRunningCommand(sql: SqlOrTransaction, now: Instant) {
  return sql`(not is_detached and state = 'running' and coin_ids is not null and ${leaseIsAlive(sql, now)})`;
}

/** An SQL condition: the backfills `a` and `b` want the same slots. It avoids `&&` on the coins, which compares each coin with each. */
export function wantSameSlots(sql: SqlOrTransaction) {
  return sql`(a.interval = b.interval and a.quote = b.quote and a.span && b.span
    and exists (select unnest(a.coin_ids) intersect select unnest(b.coin_ids)))`;
}

type Target = SeriesSpan;

type WaitingBackfill = Place & Target & { readonly id: number };

/** The target of a backfill of the service, and who requested it; null when there is no such backfill. */
export async function readTargetOf(
  sql: SqlOrTransaction,
  id: number,
): Promise<(Target & { readonly requestedBy: string | null }) | null> {
  const [row] = await sql<(Target & { requestedBy: string | null })[]>`
    select coin_ids, interval, quote, span, requested_by from ops.backfill where id = ${id} and is_detached`;
  return row ?? null;
}

/** The other queued or running backfills that want slots of this one. */
export async function readOverlapping(sql: SqlOrTransaction, id: number, now: Instant): Promise<readonly number[]> {
  const rows = await sql<{ id: number }[]>`
    select b.id from (
      select * from ops.backfill
      where (is_detached and state in ('queued', 'running')) or ${isRunningCommand(sql, now)}
    ) b join ops.backfill a on a.id = ${id} and a.id <> b.id and ${wantSameSlots(sql)}
    order by b.id`;
  return rows.map((row) => row.id);
}

/** The queued and paused backfills of the service that want slots of this one, and this one if it is queued or paused. */
export async function readWaitingForSame(sql: SqlOrTransaction, id: number): Promise<readonly WaitingBackfill[]> {
  return sql<WaitingBackfill[]>`
    select b.id, b.priority, b.coin_ids, b.interval, b.quote, b.span
    from ops.backfill b join ops.backfill a on a.id = ${id}
    where b.is_detached and b.state in ('queued', 'paused') and (b.id = a.id or ${wantSameSlots(sql)})
    order by b.priority desc, b.id`;
}

/** Saves the requests left of a backfill that no process runs. `hasOnlyOthers` is true when all its missing slots belong to others. */
export async function saveLeft(
  sql: SqlOrTransaction,
  id: number,
  { left, hasOnlyOthers }: { readonly left: number; readonly hasOnlyOthers: boolean },
): Promise<void> {
  await sql`
    update ops.backfill set left_requests = ${left},
      message = case when ${hasOnlyOthers} then coalesce(message, ${ANOTHER_BACKFILL}) else nullif(message, ${ANOTHER_BACKFILL}) end
    where id = ${id} and state in ('queued', 'paused')`;
}

/** Ends the wait of backfills for slots of others, after an owner has released or stored its slots: they plan again. */
export async function wakeBackfillsAfterOwner(sql: SqlOrTransaction): Promise<void> {
  await wakeWaitingBackfills(sql, ANOTHER_BACKFILL);
}

/** Ends the wait of the queued backfills of the service that wait with this message: they plan again now. */
export async function wakeWaitingBackfills(sql: SqlOrTransaction, message: string): Promise<void> {
  await tables(sql)
    .update(backfill)
    .set({ waitUntil: null, message: null })
    .where(and(matches(backfill, { isDetached: true, state: 'queued' }), eq(backfill.message, message)));
}
