/** What follows when somebody changed a backfill of the service: which backfills request its slots now. */
import type { App } from '../../app.ts';
import { readBudget, readPlanning } from '../../budget.ts';
import { formatCounted } from '../../core/format.ts';
import { settledUntil } from '../../core/interval.ts';
import { recountWaiting } from '../../ingest/backfill/recount.ts';
import { AUDIT, auditGaps, HISTORY_PRIORITY, type QueuedHistory } from '../../ingest/tracking/audit.ts';
import { readOverlapping, readTargetOf } from '../../store/backfill/slot-owner.ts';
import { readRemaining } from '../../views/operations/remaining-slots.ts';

export type AfterChange = {
  /** Slots of it that are missing and that somebody still wants. */
  readonly stillWanted: number;
  /** Open backfills that want slots of it, without those in `queued`. */
  readonly alsoWantedBy: readonly number[];
  /** Backfills of the past that were queued now, because the rules of `chandler track` want slots of it. */
  readonly queued: readonly QueuedHistory[];
  /** Whether the backfill fetched the past of tracked series. */
  readonly isHistory: boolean;
};

/** Counts the requests left again for the backfills that want the same slots. */
export async function recountAfterChange(app: App, id: number): Promise<void> {
  const planning = await readPlanning(app, (await readBudget(app)).plan);
  await recountWaiting({ ...planning, now: app.clock.now() }, id);
}

/** The slots of a cancelled backfill that the rules of `chandler track` want become a new backfill at once, not at the next audit. */
export async function settleCancelled(app: App, id: number): Promise<AfterChange> {
  const { sql } = app.database;
  const now = app.clock.now();
  const budget = await readBudget(app);
  const planning = await readPlanning(app, budget.plan);
  const alsoWantedBy = await readOverlapping(sql, id, now);
  const isOff = budget.schedules.find(({ name }) => name === 'gaps')!.cadence === null;
  const { requestedBy, ...target } = (await readTargetOf(sql, id))!;
  // Only the slots of this backfill: the next audit finds everything else that the rules want.
  const queued = isOff ? [] : await auditGaps(planning, target);
  await recountWaiting({ ...planning, now }, id);
  const left = await readRemaining(sql, {
    ...target,
    settledUntil: settledUntil(now, target.interval),
    openFrom: null,
    failed: [],
  });
  const stillWanted = left.reduce((sum, { slots }) => sum + slots, 0);
  return { stillWanted, alsoWantedBy, queued, isHistory: requestedBy === AUDIT };
}

export function cancelledAsJson({ stillWanted, alsoWantedBy, queued }: AfterChange) {
  return { stillWanted, alsoWantedBy, queued: queued.map(({ id, requests, slots }) => ({ id, requests, slots })) };
}

/** Sentences, one per line. */
export function describeCancelled({ stillWanted, alsoWantedBy, queued, isHistory }: AfterChange): string[] {
  if (stillWanted === 0) return ['None of its missing slots is wanted any more.'];
  const lines: string[] = [];
  if (alsoWantedBy.length > 0) {
    const [who, want] = alsoWantedBy.length === 1 ? ['Backfill', 'wants'] : ['Backfills', 'want'];
    lines.push(`${who} ${alsoWantedBy.join(', ')} ${want} some of the same slots, and will request them.`);
  }
  for (const { id, slots, requests } of queued) {
    lines.push(
      `The rules of chandler track still want ${formatCounted(slots, 'slot')}: backfill ${id} will request them (${formatCounted(requests, 'request')}, priority ${HISTORY_PRIORITY}).`,
      `To stop that as well: chandler backfills cancel ${id}`,
    );
  }
  if (isHistory) {
    lines.push(
      `The rules of chandler track still want ${formatCounted(stillWanted, 'slot')} of it. Nothing requests their past until you resume the backfill, or add a rule again.`,
    );
  } else if (lines.length === 0) {
    lines.push(
      `${formatCounted(stillWanted, 'slot')} of it stay wanted: by rules of chandler track, or by backfills that have ended.`,
    );
  }
  return lines;
}
