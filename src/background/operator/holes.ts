/** How many holes wait for a second answer, and how many requests may be spent on them: one line of `chandler quota` and `chandler schedule`. */
import type { App } from '../../app.ts';
import { type Budget, readHoleAllowance, readPlanning } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { formatCount, formatCounted, formatRelative, withIso } from '../../core/format.ts';
import { CONFIRM_HOLES } from '../../ingest/queue/chunk-job.ts';
import { countHoles, type UnconfirmedHoles } from '../../ingest/tracking/confirm-holes.ts';
import type { HoleAllowance } from '../../quota/hole-allowance.ts';

export type HolesReport = UnconfirmedHoles &
  HoleAllowance & {
    /** The next run of the schedule. Null when it is off. */
    readonly nextRun: Instant | null;
  };

/** Sends no requests. */
export async function readHolesReport(app: App, budget: Budget): Promise<HolesReport> {
  const now = app.clock.now();
  const { sql, plan, historyLimits } = await readPlanning(app, budget.plan);
  const [waiting, allowance] = await Promise.all([
    countHoles(sql, { plan, historyLimits, now }),
    readHoleAllowance(sql, budget),
  ]);
  const { cadence } = budget.schedules.find(({ name }) => name === CONFIRM_HOLES)!;
  return { ...waiting, ...allowance, nextRun: cadence?.next(now) ?? null };
}

const WAITS_FOR: Readonly<Record<NonNullable<HoleAllowance['waitsFor']>, string>> = {
  hold: 'none now, because all requests wait',
  backfills: 'none now, because backfills go first',
  quota: 'none now, because other work needs what is left of the quota',
  share: 'none now: the share of holes grows evenly through the month',
};

/** The text ends without a line feed. */
export function describeHoles(holes: HolesReport, now: Instant): string {
  const { slots, outOfReach, requests, share, spent, allowed, waitsFor, nextRun } = holes;
  if (slots === 0) return 'Holes: no slot waits for a second answer that it is empty.';
  const counted = `${formatCounted(slots, 'slot')} without a candle or price`;
  const why = 'older than the history limit of the plan, or longer than one request';
  if (outOfReach === slots)
    return `Holes: ${counted} ${slots === 1 ? 'has' : 'have'} one answer only. Chandler requests no second answer: out of reach (${why}).`;
  const without = outOfReach === 0 ? '' : ` (${formatCount(outOfReach)} of them are out of reach: ${why})`;
  const when = nextRun === null ? `the schedule ${CONFIRM_HOLES} is off` : `next run ${formatRelative(nextRun, now)}`;
  const leftOver = waitsFor !== null ? WAITS_FOR[waitsFor] : allowed === null ? 'unlimited' : formatCount(allowed);
  const ofMonth = share === null ? '' : `, ${formatCount(spent)} of ${formatCount(share)} sent this month`;
  return (
    `Holes: ${counted} ${slots === 1 ? 'waits' : 'wait'} for a second answer${without}, ` +
    `about ${formatCounted(requests, 'request')}; ${when}. Requests left over for them: ${leftOver}${ofMonth}.`
  );
}

export function holesAsJson({ slots, outOfReach, requests, share, spent, allowed, waitsFor, nextRun }: HolesReport) {
  const counts = {
    slots,
    outOfReach,
    requests,
    monthlyShare: share,
    spentThisMonth: spent,
    allowedNow: allowed,
    waitsFor,
  };
  return withIso({ ...counts, nextRun }, 'nextRun');
}
