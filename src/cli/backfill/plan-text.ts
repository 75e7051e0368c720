/** The cost of a backfill and when it will be done, as text. */
import { formatMoment } from '../../background/operator/wait-reasons.ts';
import type { Instant } from '../../clock.ts';
import { documentedDepth, PLAN_NAMES, PLANS, type PlanName } from '../../contract/plan/plans.ts';
import {
  formatCount,
  formatCounted,
  formatDay,
  formatDuration,
  formatInstant,
  formatLimit,
  formatRoughly,
} from '../../core/format.ts';
import { DAY, describeInterval, type Interval, widthOf } from '../../core/interval.ts';
import type { BackfillPlan } from '../../ingest/backfill/plan.ts';
import { canBeFinal, expectedDepth } from '../../ingest/limits/history-limit.ts';
import { lastDayOf } from '../../ingest/limits/last-day.ts';
import type { Forecast } from '../../quota/forecast.ts';
import { number, printPairs, printTable, text, whole } from '../output/table.ts';
import type { Output } from '../shell/io.ts';
import {
  bindingWindow,
  costUnder,
  explainNoFinish,
  finishByLimits,
  forecastOf,
  isOfLastDay,
  NO_BUDGET,
  NO_LIMIT,
  type PlanReport,
  type PlanReports,
  type PricesInstead,
  sum,
} from './plan-report.ts';

/** `brief` leaves out the table of the other plans. */
export function printPlans(
  out: Output,
  reports: PlanReports,
  { brief = false }: { readonly brief?: boolean } = {},
): void {
  for (const [i, report] of reports.entries()) {
    if (i > 0) out.write('\n');
    printPlan(out, report, brief);
  }
  if (reports.length > 1) printTotal(out, reports);
}

function printTotal(out: Output, reports: PlanReports): void {
  const requests = sum(reports, ({ plan }) => plan.cost.requests);
  const rows = formatCounted(
    sum(reports, ({ plan }) => plan.cost.slots),
    'row',
  );
  const [first] = reports;
  const done = finishText(forecastOf(first!, requests), requests, first!.now);
  const total =
    requests === 0 ? 'nothing to fetch' : `${formatCounted(requests, 'request')} for up to ${rows}, done ${done}`;
  out.write(`\nTotal: ${total}.\n`);
}

function printPlan(out: Output, report: PlanReport, brief: boolean): void {
  const { target, plan } = report;
  const { interval, quote, span, coinIds, keptMs, catalogueRequests } = target;
  const what = `${formatCounted(coinIds.length, 'coin')}, ${describeInterval(interval)} in ${quote}`;
  out.write(`${what} from ${formatDay(span.from)} to ${formatDay(span.to)} (exclusive)\n`);
  if (keptMs !== null) {
    const kept = formatDuration(keptMs);
    out.write(`Older candles are left out: CHANDLER_KEEP_CANDLES keeps ${interval} candles for ${kept}.\n`);
  }
  if (catalogueRequests > 0) {
    out.write(`The list of coins was read first: ${formatCounted(catalogueRequests, 'request')}.\n`);
  }
  if (plan.coinsWithGaps === 0) {
    out.write(`Nothing to fetch: ${explainNothingToFetch(plan)}.\n`);
    return;
  }
  out.write('\n');
  printPairs(out, rowsOf(report));
  const remarks = remarksOf(report);
  if (remarks.length > 0) out.write(`\n${remarks.map((remark) => `  ${remark}\n`).join('')}`);
  if (!brief) printOtherPlans(out, report);
}

function rowsOf(report: PlanReport): (readonly [name: string, value: string])[] {
  const { plan, now } = report;
  const { requests, slots } = plan.cost;
  if (requests === 0) return [['requests', `none: ${whyNoRequests(report)}`]];
  return [
    ['requests', formatCount(requests)],
    ['rows expected', `${slots === 0 ? '' : 'up to '}${formatCount(slots)}`],
    ['quota left', leftText(report)],
    ['done', finishText(forecastOf(report, requests), requests, now)],
  ];
}

/** Explains why no slot can be requested, although some are missing. */
function whyNoRequests({ session, historyLimit, target: { interval, span }, now }: PlanReport): string {
  const lastDay = lastDayOf(expectedDepth(historyLimit), interval, now);
  if (lastDay === null || span.to <= lastDay.from) return `plan ${session.plan.name} allows no part of this span`;
  if (span.to > lastDay.to)
    return `the day that is still open is requested after it has ended, from ${formatInstant(lastDay.to + DAY)} on`;
  return 'the last full day is stored, and older days never become final under this plan';
}

function leftText(report: PlanReport): string {
  const window = bindingWindow(report);
  if (window === null) return 'unlimited';
  const when = window.name === 'day' ? 'today' : 'this month';
  if (report.scheduling.kind === 'none')
    return `${formatCount(window.left)} ${when} (no service runs: nothing is reserved)`;
  return `${formatCount(window.left)} ${when} (${formatCount(window.forSchedules)} more are reserved for scheduled work)`;
}

function remarksOf(report: PlanReport): string[] {
  const { plan, target } = report;
  const later = waiting(plan);
  const remarks = [
    ...(isOfLastDay(report) && plan.cost.requests > 0 ? [...lateTexts(report), ...lastDayTexts(report)] : []),
    ...(report.prices === null ? [] : pricesTexts(report.prices)),
    plan.cost.slots > 0 && !isOfLastDay(report) && neverFinalText(report),
    plan.cost.refusedSlots > 0 && historyLimitText(report),
    plan.cost.refusedSlots > 0 &&
      plan.probe &&
      `If that limit does not exist, everything costs ${formatCounted(plan.costIfOpen.requests, 'request')} for up to ${formatCounted(plan.costIfOpen.slots, 'row')}.`,
    ...(target.leftOut.length > 0 ? leftOutTexts(report) : []),
    later !== null && `${later}.`,
    plan.refusedSlots > 0 &&
      `The upstream refused ${formatCounted(plan.refusedSlots, 'slot')} before (chandler gaps shows why); not requested again under this plan.`,
  ];
  return remarks.filter((remark) => remark !== false);
}

function lateTexts({ lateUntil, now }: PlanReport): string[] {
  if (lateUntil === null) return [];
  return [
    `The upstream does not yet serve the day that ended last: Chandler requests it again from ${formatMoment(lateUntil, now)} on.`,
  ];
}

/** What this plan gives of daily candles: one final candle per coin and day. */
function lastDayTexts({ plan, trackedDaily, target }: PlanReport): string[] {
  const gives = [
    ...(plan.cost.slots > 0 ? ['Each request brings one final candle: the last full day (/ohlcv/latest).'] : []),
    'Older days never become final under this plan.',
  ];
  if (trackedDaily === null) return [...gives, 'None of these coins is active any more: they get no new days.'];
  const { coins, everyDays, thisMonth, after } = trackedDaily;
  const active = coins === target.coinIds.length ? '' : 'active ';
  const held = Object.entries(after).map(([time, candles]) => `${formatCount(candles)} after a ${time}`);
  return [
    ...gives,
    `Tracked daily (track add --target-age 1d), ${formatCounted(coins, `${active}coin`)}:`,
    `${held.join(', ')}.`,
    ...(thisMonth === null ? [] : [skippedText("The rest of this month's quota", thisMonth.everyDays)]),
    ...(everyDays === 1 ? [] : [skippedText(thisMonth === null ? 'The quota' : 'A whole month', everyDays)]),
  ];
}

function skippedText(what: string, everyDays: number | null): string {
  if (everyDays === null) return `${what} leaves no requests for them; these days are lost.`;
  return `${what} lasts for one day in ${everyDays} of each coin; days that are skipped are lost.`;
}

/** What this plan gives as a replacement for candles. */
export function pricesTexts({ interval, cost, depthMs, command }: PricesInstead): string[] {
  const reach = depthMs === null ? 'as far back as they go' : `the last ${formatDepth(depthMs)}`;
  const costs = `${formatCounted(cost.requests, 'request')} for up to ${formatCounted(cost.slots, 'row')}`;
  const width = interval === 'prices-1d' ? 'daily' : `every ${widthOf(interval)}`;
  return [`Prices instead of candles, ${width}: ${reach}, ${costs}:`, command];
}

function neverFinalText({ historyLimit, session, target: { interval } }: PlanReport): string | false {
  if (canBeFinal(expectedDepth(historyLimit), interval)) return false;
  return `None of the ${describeInterval(interval)} becomes final: plan ${session.plan.name} no longer serves them by the time they are final.`;
}

function leftOutTexts({ target, requestsOfLeftOut }: PlanReport): string[] {
  const isOne = target.leftOut.length === 1;
  return [
    `${formatCounted(target.leftOut.length, 'coin')} that ${isOne ? 'is' : 'are'} not active any more ${isOne ? 'is' : 'are'} left out.`,
    `With --inactive: ${formatCounted(requestsOfLeftOut, 'request')} more.`,
  ];
}

type BeyondLimit = Pick<PlanReport, 'plan' | 'historyLimit'> & {
  readonly session: { readonly plan: { readonly name: string } };
  readonly target: { readonly interval: Interval };
};

/** The depth of a limit that a request met is accurate only to some seconds. */
function formatDepth(ms: number): string {
  return formatDuration(Math.round(ms / 60_000) * 60_000);
}

/** The slots beyond the history limit, and what happens to them. */
function historyLimitText(report: BeyondLimit): string {
  const text = beyondLimitText(report);
  const { historyLimit } = report;
  if (historyLimit.kind !== 'documented') return text;
  return `${text} One request will check whether that is ${historyLimit.refusedBefore ? 'still so' : 'so'}.`;
}

/** The slots beyond the history limit. */
export function beyondLimitText({ plan, historyLimit, session, target }: BeyondLimit): string {
  const depth = expectedDepth(historyLimit);
  const slots = formatCounted(plan.cost.refusedSlots, 'slot');
  const name = `plan ${session.plan.name}`;
  const reach =
    depth === 0 ? `includes no ${describeInterval(target.interval)}` : `shows only the last ${formatDepth(depth ?? 0)}`;
  if (historyLimit.kind === 'met') return `${slots} cannot be fetched: ${name} ${reach}, as the upstream answered.`;
  const isOne = plan.cost.refusedSlots === 1;
  if (historyLimit.kind === 'documented' && historyLimit.refusedBefore) {
    return `${slots} ${isOne ? 'was' : 'were'} refused before: ${name} ${reach}, as the upstream answered.`;
  }
  return `${slots} ${isOne ? 'lies' : 'lie'} beyond the documented limit: ${name} ${reach}.`;
}

function waiting({ waitingSlots }: BackfillPlan): string | null {
  if (waitingSlots === 0) return null;
  const [have, are] = waitingSlots === 1 ? ['has', 'is'] : ['have', 'are'];
  return `${formatCounted(waitingSlots, 'slot')} ${have} no final answer yet and ${are} not due for another request (chandler gaps shows when)`;
}

function explainNothingToFetch(plan: BackfillPlan): string {
  const refused = `the upstream refused ${formatCounted(plan.refusedSlots, 'slot')} before (chandler gaps shows why)`;
  const parts = [waiting(plan), plan.refusedSlots > 0 ? refused : null].filter((part) => part !== null);
  return parts.length === 0 ? 'every slot has its final answer' : parts.join('; ');
}

/** When so many requests will be done, and which limit decides it. */
function finishText(forecast: Forecast, requests: number, now: Instant): string {
  const { finishAt, bindingWindow } = forecast;
  if (finishAt === null) return `never: ${NO_BUDGET}`;
  if (explainNoFinish(forecast, requests) !== null) {
    const from = finishAt > now ? `from ${formatInstant(finishAt)} (in ${formatRoughly(finishAt - now)}) on, ` : '';
    return `${from}as fast as the upstream answers (${NO_LIMIT})`;
  }
  const why = bindingWindow === null ? '' : `, by the limit per ${bindingWindow}`;
  return `${formatInstant(finishAt)} (in ${formatRoughly(finishAt - now)}${why})`;
}

function printOtherPlans(out: Output, report: PlanReport): void {
  const { session, now, overrides } = report;
  const rows = PLAN_NAMES.map((name) => {
    const cost = costUnder([report], name);
    const isPossible = cost.slots > 0 || cost.requests > 0;
    return { name, ...cost, isPossible, note: noteOn(name, report, isPossible) };
  });
  type Row = (typeof rows)[number];
  const takes = ({ isPossible, forecast, requests }: Row) => {
    if (!isPossible) return null;
    if (forecast.finishAt === null) return 'never';
    const at = finishByLimits(forecast, requests);
    return at === null ? 'no limit' : formatRoughly(at - now);
  };
  out.write('\nThe cost under every plan, as documented\n');
  printTable<Row>(out, rows, [
    whole('  plan', ({ name, isPresent }) => `${isPresent ? '→ ' : '  '}${name}`),
    number('per month', ({ limits }) => formatLimit(limits.perMonth)),
    number('requests', ({ isPossible, requests }) => (isPossible ? requests : null)),
    number('rows', ({ isPossible, slots }) => (isPossible ? slots : null)),
    number('refused', ({ refusedSlots }) => (refusedSlots === 0 ? '' : refusedSlots)),
    number('takes', takes),
    ...(rows.some(({ note }) => note !== '') ? [text<Row>('note', ({ note }) => note)] : []),
  ]);
  if (overrides.length > 0) out.write(`The limits of ${session.plan.name} are set by ${overrides.join(', ')}.\n`);
}

/** Explains a row of the table if it needs an explanation. */
function noteOn(name: PlanName, { historyLimit, overrides, session, target }: PlanReport, isPossible: boolean): string {
  const isPresent = name === session.plan.name;
  const isAnswered = isPresent && historyLimit.kind !== 'documented';
  const lacks =
    documentedDepth(PLANS[name], target.interval) === 0
      ? `no ${describeInterval(target.interval)}`
      : 'history too short';
  const history = isAnswered ? 'as the upstream answered' : isPossible ? '' : lacks;
  return [isPresent && overrides.length > 0 && 'limits set by you', history].filter(Boolean).join(', ');
}
