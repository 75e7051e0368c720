/** How lists show backfills: their span, when they will be done, and the chunks that wait for a retry. */
import { formatMoment } from '../../background/operator/wait-reasons.ts';
import type { Instant } from '../../clock.ts';
import { formatCounted, formatDay, formatInstant, formatRelative } from '../../core/format.ts';
import { DAY, MINUTE } from '../../core/interval.ts';
import type { BackfillRow } from '../../views/backfills/backfills.ts';

/** `2024-01-01 … 2024-02-01`, where an open end is `ever`. */
export function formatSpan({ from, to }: { readonly from: Instant | null; readonly to: Instant | null }): string {
  return [from, to].map((at) => (at === null ? 'ever' : formatDay(at))).join(' … ');
}

type Finish = Pick<BackfillRow, 'state' | 'finishedAt' | 'finishAt' | 'finishFrom' | 'finishTo'>;

/** `between 14:02Z and 14:09Z`, with the date unless it is today. Null when unknown. */
export function formatFinish(
  { state, finishedAt, finishAt, finishFrom, finishTo }: Finish,
  now: Instant,
): string | null {
  if (finishedAt !== null) return formatRelative(finishedAt, now);
  if (finishAt === null || state === 'paused') return null;
  if (finishFrom === null || finishTo === null) return formatRelative(Math.max(now, finishAt), now);
  // Below a minute, a range in seconds would only flicker.
  if (finishTo - now < MINUTE) return 'within a minute';
  const [from, to] = [toMinute(Math.max(now, finishFrom)), toMinute(finishTo + MINUTE - 1)];
  const isToday = Math.floor(to / DAY) === Math.floor(now / DAY);
  const shown = (at: Instant) => (isToday ? formatInstant(at).slice(11) : formatInstant(at));
  return `between ${shown(from)} and ${shown(to)}`;
}

function toMinute(at: Instant): Instant {
  return Math.floor(at / MINUTE) * MINUTE;
}

/** A line for below the list. Null when no chunk waits. */
export function describeRetries({ retrying, retryFrom, retryTo }: BackfillRow, now: Instant): string | null {
  if (retrying === 0) return null;
  const [from, to] = [retryFrom, retryTo].map((at) =>
    at === null ? '' : ` until ${formatMoment(Math.max(now, at), now)}`,
  );
  const last = to === from ? '' : `, the last one${to}`;
  return `${formatCounted(retrying, 'chunk')} ${retrying === 1 ? 'waits' : 'wait'} for a retry${from}${last}`;
}
