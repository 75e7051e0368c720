/** Plans of several intervals: one after the other, and what they cost together. One alone is what it was. */
import { PLAN_NAMES } from '../../contract/plan/plans.ts';
import { formatCounted } from '../output/format.ts';
import { toIso } from '../output/json.ts';
import type { Output } from '../shell/io.ts';
import { finishByLimits, forecastOf, forecastUnder, type PlanReport, planAsJson, whyNoFinish } from './plan-report.ts';
import { finishText, printPlan } from './plan-text.ts';

type Reports = readonly PlanReport[];

const sum = (reports: Reports, of: (report: PlanReport) => number) =>
  reports.reduce((total, report) => total + of(report), 0);

export function printPlans(out: Output, reports: Reports, options: { readonly brief?: boolean } = {}): void {
  for (const [i, report] of reports.entries()) {
    if (i > 0) out.write('\n');
    printPlan(out, report, options);
  }
  if (reports.length === 1) return;
  const requests = sum(reports, ({ plan }) => plan.cost.requests);
  const rows = sum(reports, ({ plan }) => plan.cost.slots);
  if (requests === 0) {
    out.write('\nTogether: nothing to ask.\n');
    return;
  }
  const [first] = reports;
  const done = finishText(forecastOf(first!, requests), requests, first!.now);
  out.write(
    `\nTogether: ${formatCounted(requests, 'request')} for up to ${formatCounted(rows, 'row')}, done ${done}.\n`,
  );
}

/** Of several: the sums under the same names, and under `intervals` each by itself. What only one of them can have (`wall`, `notKeptBefore`) is null. */
export function plansAsJson(reports: Reports): Record<string, unknown> {
  const parts = reports.map(planAsJson);
  const [first] = reports;
  if (reports.length === 1) return parts[0]!;
  const { session, setAside, termsOf } = first!;
  const requests = sum(reports, ({ plan }) => plan.cost.requests);
  const forecast = forecastOf(first!, requests);
  return {
    ...parts[0],
    interval: reports.map(({ target }) => target.interval).join(','),
    coinsWithGaps: Math.max(...reports.map(({ plan }) => plan.coinsWithGaps)),
    from: toIso(Math.min(...reports.map(({ target }) => target.span.from))),
    to: toIso(Math.max(...reports.map(({ target }) => target.span.to))),
    notKeptBefore: null,
    catalogueRequests: sum(reports, ({ target }) => target.catalogueRequests),
    requests,
    rowsExpected: sum(reports, ({ plan }) => plan.cost.slots),
    slotsBeyondPlan: sum(reports, ({ plan }) => plan.cost.refusedSlots),
    slotsWaiting: sum(reports, ({ plan }) => plan.waitingSlots),
    slotsRefused: sum(reports, ({ plan }) => plan.refusedSlots),
    wall: null,
    finishAt: toIso(finishByLimits(forecast, requests)),
    noFinishBecause: whyNoFinish(forecast, requests),
    plans: PLAN_NAMES.map((name) => {
      const isMine = name === session.plan.name;
      const costs = reports.map(({ plan }) => (isMine ? plan.cost : plan.underPlans[name]));
      const total = costs.reduce((all, cost) => all + cost.requests, 0);
      const terms = isMine ? { limits: session.limits, setAside } : termsOf(name);
      const under = forecastUnder(first!, total, terms, !isMine);
      return {
        plan: name,
        requests: total,
        rowsExpected: costs.reduce((all, cost) => all + cost.slots, 0),
        slotsBeyondPlan: costs.reduce((all, cost) => all + cost.refusedSlots, 0),
        finishAt: toIso(finishByLimits(under, total)),
        noFinishBecause: whyNoFinish(under, total),
      };
    }),
    intervals: parts,
  };
}

/** Most requests that it may come to: documented walls may turn out not to be there. */
export function mostRequests(reports: Reports): number {
  return sum(reports, ({ plan }) => Math.max(plan.cost.requests, plan.costIfOpen.requests));
}

/** `1h and 5m candles`. */
export function namesOf(reports: Reports): string {
  const names = reports.map(({ target }) => target.interval);
  return `${[names.slice(0, -1).join(', '), names.at(-1)].filter(Boolean).join(' and ')} candles`;
}
