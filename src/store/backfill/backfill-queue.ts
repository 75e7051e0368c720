/**
 * Backfills of the service. Any process records them, and one process at a time claims the one with the highest priority. If that
 * process dies, another one claims the backfill. Stored slots are no longer missing, so no work is done twice.
 */
import { and, gt, inArray } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { matches, tables, updateRows } from '../connection/tables.ts';
import { type BackfillState, backfill } from '../schema/requests.ts';
import { storableText } from '../values/storable-text.ts';
import { leaseIsAlive } from '../work/lease.ts';
import { type BackfillFinish, isAdvanced, isForecast, NO_FORECAST, type StoredChunks } from './backfill-finish.ts';
import { isRunningCommand, wakeBackfillsAfterOwner, wantSameSlots } from './slot-owner.ts';
import { unwantBackfill, wantBackfillAgain } from './wanted.ts';

type Row = Readonly<typeof backfill.$inferSelect>;
type BackfillRequest = Pick<Row, 'interval' | 'quote' | 'span' | 'priority'> & { readonly coinIds: readonly string[] };

export type QueuedBackfill = BackfillRequest &
  Pick<Row, 'requestedAt' | 'plannedRequests'> & {
    readonly spec: Readonly<Record<string, unknown>>;
    readonly requestedBy?: string | null;
  };

/** Queues a backfill for the service. Resolves to its id. */
export async function queueBackfill(sql: SqlOrTransaction, queued: QueuedBackfill): Promise<number> {
  const [row] = await tables(sql)
    .insert(backfill)
    .values({ ...queued, state: 'queued', isDetached: true, leftRequests: queued.plannedRequests })
    .returning({ id: backfill.id });
  return row!.id;
}

export type ClaimedBackfill = BackfillRequest & { readonly id: number; readonly claimedAt: Instant };

type Claimable = { readonly now: Instant; readonly abovePriority?: number };

/** A backfill may be claimed when it waits for a process, or when the lease of the process that runs it has expired. */
function isClaimable(sql: SqlOrTransaction, { now, abovePriority = -32_768 }: Claimable) {
  return sql`is_detached and priority > ${abovePriority} and (
    (state = 'queued' and (wait_until is null or wait_until <= ${now}))
    or (state = 'running' and not ${leaseIsAlive(sql, now)}))`;
}

/** Claims the next backfill for this owner and marks it as running. Null when there is none. */
export async function claimBackfill(
  sql: SqlOrTransaction,
  { owner, now }: { readonly owner: string; readonly now: Instant },
): Promise<ClaimedBackfill | null> {
  const [row] = await sql<ClaimedBackfill[]>`
    update ops.backfill set state = 'running', owner = ${owner}, heartbeat_at = ${now},
      started_at = coalesce(started_at, ${now}), wait_until = null, message = null
    where id = (select id from ops.backfill where ${isClaimable(sql, { now })}
      order by priority desc, id limit 1 for update skip locked)
    returning id, coin_ids, interval, quote, span, priority, heartbeat_at as claimed_at`;
  return row ?? null;
}

/** The state of a claimed backfill, which other processes may have changed. */
type ClaimState = {
  /** True while this owner has the claim and the backfill is running. */
  readonly isMine: boolean;
  /** True when a backfill of higher priority waits for a process, or when a command has begun that wants the same slots and so owns them. */
  readonly isPreempted: boolean;
  /** The current priority; null when the claim is lost. */
  readonly priority: number | null;
};

/** Renews the lease of the owner, and records the progress of the backfill. */
export async function renewClaim(
  sql: SqlOrTransaction,
  claim: {
    readonly id: number;
    readonly owner: string;
    readonly now: Instant;
    readonly claimedAt: Instant;
    /** Null when the backfill is not planned yet. Wherever a value is null here, the stored value stays. */
    readonly known: {
      readonly leftRequests: number;
      /** Null when it could not be computed now. */
      readonly finish: BackfillFinish | null;
      /** Null when unknown. */
      readonly chunks: StoredChunks | null;
    } | null;
  },
): Promise<ClaimState> {
  const { id, owner, now, claimedAt, known } = claim;
  const [row] = await sql<{ priority: number }[]>`
    update ops.backfill set heartbeat_at = ${now}
      ${known === null ? sql`` : sql`, ${isAdvanced(sql, known)}`}
      ${known === null || known.finish === null ? sql`` : sql`, ${isForecast(sql, known.finish)}`}
    where id = ${id} and state = 'running' and owner = ${owner} returning priority`;
  if (row === undefined) return { isMine: false, isPreempted: false, priority: null };
  const [urgent] = await sql`
    select 1 from ops.backfill where ${isClaimable(sql, { now, abovePriority: row.priority })}
    union all
    select 1 from ops.backfill a join (
      select * from ops.backfill where ${isRunningCommand(sql, now)} and started_at > ${claimedAt} and started_at <= ${now}
    ) b on ${wantSameSlots(sql)} where a.id = ${id}
    limit 1`;
  return { isMine: true, isPreempted: urgent !== undefined, priority: row.priority };
}

/** Ends a claim, unless another process has changed the backfill's state or owner meanwhile. */
export async function endClaim(
  sql: SqlOrTransaction,
  { id, owner, now }: { readonly id: number; readonly owner: string; readonly now: Instant },
  end:
    | { readonly state: 'done' | 'failed'; readonly leftRequests: number | null; readonly message: string | null }
    /** Another process may claim the backfill, but not before `waitUntil`. */
    | {
        readonly state: 'queued';
        readonly waitUntil: Instant | null;
        /** Null when unknown; the stored value stays. */
        readonly leftRequests: number | null;
        readonly message: string | null;
      },
): Promise<void> {
  const { state } = end;
  const message = end.message === null ? null : storableText(end.message);
  const known =
    end.state === 'queued'
      ? { waitUntil: end.waitUntil, finishedAt: null }
      : { ...NO_FORECAST, waitUntil: null, finishedAt: now };
  const leftRequests = end.leftRequests ?? undefined;
  const changes = { state, message, heartbeatAt: now, chunks: null, leftRequests, ...known };
  await withFreshPlans(sql, async (tx) => {
    await updateRows(tx, backfill, { id, owner, state: 'running' }, changes);
    if (state !== 'queued') await wakeBackfillsAfterOwner(tx);
  });
}

export type BackfillChange = 'pause' | 'resume' | 'cancel';

const FROM: Readonly<Record<BackfillChange, readonly BackfillState[]>> = {
  pause: ['queued', 'running'],
  resume: ['paused', 'failed', 'cancelled'],
  cancel: ['queued', 'running', 'paused'],
};
const TO: Readonly<Record<BackfillChange, BackfillState>> = { pause: 'paused', resume: 'queued', cancel: 'cancelled' };

/** The reason why a forecast differs from the forecast before the pause. */
const RESUMED = 'it was resumed';

/**
 * Changes the state of a backfill. A running one finishes the chunks in progress and sends no more requests. The slots of a cancelled one are no
 * longer wanted, unless something else wants them. Resolves to the previous state; null when that state does not allow the change.
 */
export function changeBackfill(
  sql: SqlOrTransaction,
  id: number,
  change: BackfillChange,
  now: Instant,
): Promise<BackfillState | null> {
  return withFreshPlans(sql, async (tx) => {
    const [row] = await tx<{ before: BackfillState }[]>`
      with found as (
        select id, state from ops.backfill
        where id = ${id} and is_detached and state = any(${FROM[change] as string[]}::text[]) for update
      )
      update ops.backfill b set state = ${TO[change]}, wait_until = null, message = null, chunks = null,
        finish_at = null, finish_from = null, finish_to = null, finish_basis = null,
        finish_change = ${change === 'resume' ? RESUMED : null}::text, finish_changed_at = ${change === 'resume' ? now : null},
        finished_at = ${change === 'cancel' ? now : null}
      from found where b.id = found.id
      returning found.state as before`;
    if (row === undefined) return null;
    if (change === 'cancel') await unwantBackfill(tx, id);
    else if (row.before === 'cancelled') await wantBackfillAgain(tx, id);
    await wakeBackfillsAfterOwner(tx);
    return row.before;
  });
}

/** Changes the priority. Resolves to false when the service has no such backfill, or the backfill is over. */
export async function prioritizeBackfill(sql: SqlOrTransaction, id: number, priority: number): Promise<boolean> {
  const { count } = await tables(sql)
    .update(backfill)
    .set({ priority })
    .where(and(matches(backfill, { id, isDetached: true }), inArray(backfill.state, ['queued', 'running', 'paused'])));
  if (count === 1) await wakeBackfillsAfterOwner(sql);
  return count === 1;
}

/** Is any backfill queued or running? A backfill of a command whose process has died does not count. */
export async function isBackfillOpen(sql: SqlOrTransaction, now: Instant): Promise<boolean> {
  const [row] = await sql`
    select 1 from ops.backfill
    where is_detached and state in ('queued', 'running') or not is_detached and state = 'running' and ${leaseIsAlive(sql, now)}
    limit 1`;
  return row !== undefined;
}

/** Ends the wait of the backfills that wait for one of these reasons. Resolves to their ids. */
export async function endWaits(
  sql: SqlOrTransaction,
  reasons: readonly string[],
  now: Instant,
): Promise<readonly number[]> {
  const isWaiting = and(matches(backfill, { isDetached: true, state: 'queued' }), gt(backfill.waitUntil, now));
  const rows = await tables(sql)
    .update(backfill)
    .set({ waitUntil: null, message: null })
    .where(and(isWaiting, inArray(backfill.message, [...reasons])))
    .returning({ id: backfill.id });
  return rows.map(({ id }) => id);
}
