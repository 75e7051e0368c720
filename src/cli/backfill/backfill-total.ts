/** The reports of a backfill of several intervals, added up. One alone is what it was. */
import type { Interval } from '../../core/interval.ts';
import { formatCount, formatCounted, formatRoughly } from '../output/format.ts';
import type { Output } from '../shell/io.ts';
import { type BackfillReport, backfillAsJson } from './backfill-report.ts';
import type { PlanReport } from './plan-report.ts';
import { namesOf } from './plan-total.ts';

export type Ending = { readonly report: PlanReport; readonly ending: BackfillReport };

const sum = <T>(all: readonly T[], of: (one: T) => number) => all.reduce((total, one) => total + of(one), 0);
const countsOf = ({ ending }: Ending) => ending.totals ?? ending.run.seen;

/** `left`: those that were not begun, because the one before them ended early. */
export function printBackfillTotal(out: Output, endings: readonly Ending[], left: readonly PlanReport[]): void {
  const stored = sum(endings, (one) => countsOf(one).stored);
  const requests = sum(endings, (one) => countsOf(one).requests);
  const planned = sum(endings, ({ ending }) => ending.planned) + sum(left, ({ plan }) => plan.cost.requests);
  const took = formatRoughly(sum(endings, ({ ending }) => ending.tookMs));
  const slots = endings.map(({ ending }) => ending.gaps && sum(ending.gaps, (gap) => gap.slots));
  const gaps = slots.includes(null)
    ? 'gaps left unknown'
    : `${formatCounted(
        sum(slots, (n) => n ?? 0),
        'slot',
      )} left`;
  out.write(
    `\nTogether: ${formatCounted(stored, 'candle')} stored, ${formatCounted(requests, 'request')} spent, ${formatCount(planned)} planned, ${gaps}, ${took}.\n`,
  );
  if (left.length > 0) out.write(`Not begun: ${namesOf(left)}; the same command goes on with them.\n`);
}

/**
 * Of several: the sums under the same names, `id` that of the first, `end` that of the last; under `intervals` each by itself, and under
 * `notBegun` those that there was no time for.
 */
export function backfillsAsJson(endings: readonly Ending[], left: readonly PlanReport[]): Record<string, unknown> {
  const parts = endings.map(({ ending }) => backfillAsJson(ending));
  if (endings.length === 1 && left.length === 0) return parts[0]!;
  const reports = endings.map(({ ending }) => ending);
  const known = reports.every(({ totals }) => totals !== null);
  const tellGaps = reports.every(({ gaps }) => gaps !== null);
  return {
    ...parts.at(-1),
    id: parts[0]!.id,
    requests: sum(endings, (one) => countsOf(one).requests),
    requestsPlanned: sum(reports, ({ planned }) => planned) + sum(left, ({ plan }) => plan.cost.requests),
    catalogueRequests: sum(reports, ({ catalogueRequests }) => catalogueRequests),
    rows: known ? sum(reports, ({ totals }) => totals!.rows) : null,
    stored: sum(endings, (one) => countsOf(one).stored),
    revised: sum(endings, (one) => countsOf(one).revised),
    setAside: sum(endings, (one) => countsOf(one).setAside),
    byOutcome: known ? added(reports.flatMap(({ totals }) => Object.entries(totals!.byOutcome))) : null,
    refused: parts.flatMap(({ refused }) => refused),
    failed: parts.flatMap(({ failed }) => failed),
    gaps: tellGaps
      ? Object.entries(added(reports.flatMap(({ gaps }) => gaps!.map(({ reason, slots }) => [reason, slots])))).map(
          ([reason, slots]) => ({ reason, slots }),
        )
      : null,
    tookMs: sum(reports, ({ tookMs }) => tookMs),
    intervals: endings.map(({ report }, i) => ({ interval: report.target.interval, ...parts[i] })),
    notBegun: left.map(({ target }): Interval => target.interval),
  };
}

function added(pairs: readonly (readonly [name: string, count: number])[]): Record<string, number> {
  const total: Record<string, number> = {};
  for (const [name, count] of pairs) total[name] = (total[name] ?? 0) + count;
  return total;
}
