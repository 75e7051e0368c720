/** What a backfill will cost and when it is done, as text for people. */
import type { Instant } from '../../clock.ts';
import { PLAN_NAMES, PLANS, type PlanName } from '../../contract/plan/plans.ts';
import type { BackfillPlan } from '../../ingest/backfill/plan.ts';
import { expectedDepth } from '../../ingest/limits/history-limit.ts';
import type { Forecast } from '../../quota/forecast.ts';
import {
  formatCount,
  formatCounted,
  formatDay,
  formatDuration,
  formatInstant,
  formatLimit,
  formatRoughly,
} from '../output/format.ts';
import { formatTable } from '../output/table.ts';
import type { Output } from '../shell/io.ts';
import {
  bindingWindow,
  finishByLimits,
  forecastOf,
  forecastUnder,
  NO_BUDGET,
  NO_LIMIT,
  type PlanReport,
  whyNoFinish,
} from './plan-report.ts';

export function printPlan(out: Output, report: PlanReport, { brief = false }: { readonly brief?: boolean } = {}): void {
  const { target, plan } = report;
  const { interval, quote, span, coinIds } = target;
  out.write(
    `${formatCounted(coinIds.length, 'coin')}, ${interval} candles in ${quote} from ${formatDay(span.from)} to ${formatDay(span.to)} (exclusive)\n`,
  );
  if (target.keptMs !== null) {
    out.write(
      `What is older is left out: CHANDLER_KEEP_CANDLES keeps ${interval} candles for ${formatDuration(target.keptMs)}, and it would be removed again.\n`,
    );
  }
  if (target.catalogueRequests > 0) {
    out.write(`The list of coins was read first: ${formatCounted(target.catalogueRequests, 'request')}.\n`);
  }
  if (plan.coinsWithGaps === 0) {
    out.write(`Nothing to ask: ${waiting(plan) ?? 'every slot has its final answer'}.\n`);
    return;
  }
  out.write('\n');
  for (const [name, text] of rowsOf(report)) out.write(`  ${name.padEnd(14)} ${text}\n`);
  const remarks = remarksOf(report);
  if (remarks.length > 0) out.write(`\n${remarks.map((text) => `  ${text}\n`).join('')}`);
  if (!brief) printOtherPlans(out, report);
}

function rowsOf(report: PlanReport): (readonly [name: string, text: string])[] {
  const { plan, session, now } = report;
  const { requests, slots } = plan.cost;
  if (requests === 0) return [['requests', `none: nothing of it can be had now under plan ${session.plan.name}`]];
  return [
    ['requests', formatCount(requests)],
    ['rows expected', `${slots === 0 ? '' : 'up to '}${formatCount(slots)}`],
    ['quota left', leftText(report)],
    ['done', finishText(forecastOf(report, requests), requests, now)],
  ];
}

function leftText(report: PlanReport): string {
  const window = bindingWindow(report);
  if (window === null) return 'unlimited';
  const when = window.name === 'day' ? 'today' : 'this month';
  return `${formatCount(window.left)} ${when} (${formatCount(window.aside)} more set aside for scheduled work)`;
}

function remarksOf({ plan, wall, session, target }: PlanReport): string[] {
  const remarks: string[] = [];
  const depth = expectedDepth(wall);
  if (plan.cost.refusedSlots > 0) {
    const slots = formatCounted(plan.cost.refusedSlots, 'slot');
    const reach =
      depth === 0
        ? `does not show ${target.interval} candles`
        : `shows only the last ${formatDuration(Math.ceil((depth ?? 0) / 60_000) * 60_000)}`;
    remarks.push(
      wall.kind === 'met'
        ? `${slots} cannot be had: plan ${session.plan.name} ${reach} (the upstream said so).`
        : wall.kind === 'documented' && wall.refusedBefore
          ? `${slots} could not be had when it was last tried: plan ${session.plan.name} ${reach} (the upstream said so); one request will look whether it still says so.`
          : `${slots} lie beyond what plan ${session.plan.name} ${depth === 0 ? 'includes' : 'shows'} by its documents (it ${reach}); one request will try.`,
    );
    if (plan.probe) {
      remarks.push(
        `If that wall is not there, all of it costs ${formatCounted(plan.costIfOpen.requests, 'request')} for up to ${formatCounted(plan.costIfOpen.slots, 'row')}.`,
      );
    }
  }
  const later = waiting(plan);
  if (later !== null) remarks.push(`${later}.`);
  if (plan.refusedSlots > 0)
    remarks.push(
      `${formatCounted(plan.refusedSlots, 'slot')} refused before (chandler gaps says why); not asked again under this plan.`,
    );
  return remarks;
}

function waiting(plan: BackfillPlan): string | null {
  if (plan.waitingSlots === 0) return null;
  return `${formatCounted(plan.waitingSlots, 'slot')} ${plan.waitingSlots === 1 ? 'has' : 'have'} no final answer yet and ${plan.waitingSlots === 1 ? 'is' : 'are'} not due to be asked again (chandler gaps says when)`;
}

/** When so many requests are done, and why not sooner. */
export function finishText(forecast: Forecast, requests: number, now: Instant): string {
  const { finishAt, bindingWindow } = forecast;
  if (finishAt === null) return `never: ${NO_BUDGET}`;
  if (whyNoFinish(forecast, requests) !== null) {
    const from = finishAt > now ? `from ${formatInstant(finishAt)} (in ${formatRoughly(finishAt - now)}) on, ` : '';
    return `${from}as fast as the upstream answers (${NO_LIMIT})`;
  }
  const why = bindingWindow === null ? '' : `, limited per ${bindingWindow}`;
  return `${formatInstant(finishAt)} (in ${formatRoughly(finishAt - now)}${why})`;
}

function printOtherPlans(out: Output, report: PlanReport): void {
  const { plan, session, termsOf, now, overrides } = report;
  const rows = PLAN_NAMES.map((name) => {
    const mine = name === session.plan.name;
    const cost = mine ? plan.cost : plan.underPlans[name];
    const terms = mine ? { limits: session.limits, setAside: report.setAside } : termsOf(name);
    const forecast = forecastUnder(report, cost.requests, terms, !mine);
    const { finishAt } = forecast;
    const possible = cost.slots > 0 || cost.requests > 0;
    return [
      `${mine ? '→ ' : '  '}${name}`,
      formatLimit(terms.limits.perMonth),
      possible ? formatCount(cost.requests) : '–',
      possible ? formatCount(cost.slots) : '–',
      cost.refusedSlots === 0 ? '' : formatCount(cost.refusedSlots),
      !possible ? '–' : finishAt === null ? 'never' : takesText(forecast, cost.requests, now),
      noteOn(name, report, possible),
    ];
  });
  const right = { align: 'right' as const };
  out.write('\nThe same under every plan, by its documents\n');
  out.write(
    formatTable(
      [
        { title: '  plan', isWhole: true },
        { title: 'a month', ...right },
        { title: 'requests', ...right },
        { title: 'rows', ...right },
        { title: 'beyond', ...right },
        { title: 'takes', ...right },
        ...(rows.some((row) => row[6] !== '') ? [{ title: 'note' }] : []),
      ],
      rows,
      out.columns(),
    ),
  );
  if (overrides.length > 0) out.write(`The limits of ${session.plan.name} are set by ${overrides.join(', ')}.\n`);
}

function takesText(forecast: Forecast, requests: number, now: Instant): string {
  const at = finishByLimits(forecast, requests);
  return at === null ? 'no limit' : formatRoughly(at - now);
}

/** Where a row does not speak for itself. */
function noteOn(name: PlanName, { wall, overrides, session, target }: PlanReport, possible: boolean): string {
  const mine = name === session.plan.name;
  const notes = [
    mine && overrides.length > 0 && 'limits set by you',
    mine && wall.kind !== 'documented'
      ? 'as answered'
      : !PLANS[name].intervals.includes(target.interval)
        ? `no ${target.interval} candles`
        : !possible && 'not so far back',
  ];
  return notes.filter(Boolean).join(', ');
}
