/** The runs of schedules, in words for the operator. */
import type { Instant } from '../../clock.ts';
import { formatCounted, formatInstant, formatRelative } from '../../core/format.ts';
import { pausedUntil } from '../../ingest/schedule/tick.ts';
import type { ScheduleRun } from '../../store/work/schedule-run.ts';
import { formatMoment, waitingFor } from './wait-reasons.ts';

const STATES = {
  running: 'running',
  waiting: 'will be retried',
  held: 'waiting',
  done: '',
  failed: 'failed',
  superseded: 'not finished',
};

/** How a schedule last ran, and when. */
export function describeLast(run: ScheduleRun | undefined, now: Instant): string {
  if (run === undefined) return 'never';
  const when = formatRelative(run.endedAt ?? run.begunAt, now);
  return [STATES[run.state], when].filter(Boolean).join(', ');
}

/** What went wrong with a run, and what happens next. Null when nothing went wrong. */
export function describeProblem(run: ScheduleRun | undefined, now: Instant): string | null {
  if (run === undefined || run.message === null) return null;
  const until = run.waitUntil === null ? '' : formatMoment(run.waitUntil, now);
  switch (run.state) {
    case 'held':
      return `waits until ${until}: ${waitingFor(run.message)}`;
    case 'waiting':
      return `failed and will be retried at ${until}: ${run.message}`;
    case 'failed': {
      const pause = pausedUntil(run);
      const before = run.failures > 1 ? `, like the ${formatCounted(run.failures - 1, 'run')} before it` : '';
      const when = pause === null || pause <= now ? '' : ` after ${formatInstant(pause)}`;
      return `failed after ${formatCounted(run.attempts, 'attempt')}${before}; the next run${when} tries again: ${run.message}`;
    }
    case 'superseded':
      return `did not finish before its next run: ${run.message}`;
    case 'running':
    case 'done':
      return null;
  }
}
