/** What a backfill will cost and when it is done, as text and as JSON: under this plan, and under every other. */
import type { Instant } from '../clock.ts';
import { PLAN_NAMES, PLANS, type PlanName } from '../contract/plans.ts';
import type { BackfillPlan } from '../ingest/plan.ts';
import type { Session } from '../ingest/session.ts';
import type { Wall } from '../ingest/wall.ts';
import { expectedDepth } from '../ingest/wall.ts';
import { type Forecast, forecast } from '../quota/forecast.ts';
import type { Limits, QuotaState, SetAside } from '../quota/quota.ts';
import {
  formatCount,
  formatCounted,
  formatDay,
  formatDuration,
  formatInstant,
  formatLimit,
  formatRoughly,
} from './format.ts';
import type { Output } from './io.ts';
import { toIso } from './json.ts';
import { formatTable } from './table.ts';
import type { ResolvedTarget } from './target.ts';

export type PlanReport = {
  readonly target: ResolvedTarget;
  readonly plan: BackfillPlan;
  readonly session: Pick<Session, 'plan' | 'planSource' | 'limits' | 'accountId' | 'walls' | 'quota'>;
  readonly wall: Wall;
  readonly quota: QuotaState;
  readonly setAside: (at: Instant) => SetAside;
  readonly now: Instant;
  /** Variables that replace limits of this account's plan. */
  readonly overrides: readonly string[];
  /** Limits of each plan for this kind of account, by the documents. */
  readonly limitsOf: (plan: PlanName) => Limits;
};

type Budgeted = Pick<PlanReport, 'quota' | 'setAside' | 'now'>;

/** What a backfill may still spend in the window that binds first; null without limits. */
export function quotaLeft(report: Budgeted): number | null {
  return bindingWindow(report)?.left ?? null;
}

function bindingWindow({ quota, setAside, now }: Budgeted) {
  const windows = (['day', 'month'] as const).flatMap((name) => {
    const { limit, spent } = quota[name];
    const aside = setAside(now)[name];
    return limit === null ? [] : [{ name, aside, left: Math.max(0, limit - spent - aside) }];
  });
  return windows.sort((a, b) => a.left - b.left)[0] ?? null;
}

/** When `requests` of this account are done, from `report.now` on. */
export function forecastOf(report: PlanReport, requests: number): Forecast {
  return forecastUnder(report, requests, report.session.limits, false);
}

function forecastUnder(report: PlanReport, requests: number, limits: Limits, fresh: boolean): Forecast {
  const { quota, now, setAside } = report;
  // Another plan is a new account: nothing of its month is spent yet.
  const spent = fresh ? { day: 0, month: 0 } : { day: quota.day.spent, month: quota.month.spent };
  // While there is a hold nothing is sent; another account would not be held.
  const from = fresh ? now : Math.max(now, quota.hold?.until ?? now);
  const { limit, now: pace } = quota.pace;
  const slowdown = fresh || limit === null || pace === null ? 1 : limit / pace;
  return forecast({ requests, limits, spent, now: from, slowdown, setAside });
}

export function printPlan(out: Output, report: PlanReport, { brief = false }: { readonly brief?: boolean } = {}): void {
  const { target, plan } = report;
  const { interval, quote, span, coinIds } = target;
  out.write(
    `${formatCounted(coinIds.length, 'coin')}, ${interval} candles in ${quote} from ${formatDay(span.from)} to ${formatDay(span.to)} (exclusive)\n`,
  );
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

const NO_LIMIT = 'no limit slows it';
const NO_BUDGET = 'the budget leaves nothing for a backfill';

/** Why there is no instant to name: what is asked as fast as it is answered is not known beforehand; null when there is one. */
function whyNoFinish({ finishAt, bindingWindow }: Forecast, requests: number): string | null {
  if (finishAt === null) return NO_BUDGET;
  return requests > 0 && bindingWindow === null ? NO_LIMIT : null;
}

/** When it is done by the limits; null when that is never, or they say nothing about it. */
export function finishByLimits(forecast: Forecast, requests: number): Instant | null {
  return whyNoFinish(forecast, requests) === null ? forecast.finishAt : null;
}

function finishText(forecast: Forecast, requests: number, now: Instant): string {
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
  const { plan, session, limitsOf, now, overrides } = report;
  const rows = PLAN_NAMES.map((name) => {
    const mine = name === session.plan.name;
    const cost = mine ? plan.cost : plan.underPlans[name];
    const limits = mine ? session.limits : limitsOf(name);
    const forecast = forecastUnder(report, cost.requests, limits, !mine);
    const { finishAt } = forecast;
    const possible = cost.slots > 0 || cost.requests > 0;
    return [
      `${mine ? '→ ' : '  '}${name}`,
      formatLimit(limits.perMonth),
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

export function planAsJson(report: PlanReport): Record<string, unknown> {
  const { target, plan, session, wall, limitsOf } = report;
  const done = (requests: number, limits: Limits, fresh: boolean) => {
    const forecast = forecastUnder(report, requests, limits, fresh);
    return { finishAt: toIso(finishByLimits(forecast, requests)), noFinishBecause: whyNoFinish(forecast, requests) };
  };
  return {
    account: session.accountId,
    plan: session.plan.name,
    coins: target.coinIds.length,
    coinsWithGaps: plan.coinsWithGaps,
    interval: target.interval,
    quote: target.quote,
    from: toIso(target.span.from),
    to: toIso(target.span.to),
    catalogueRequests: target.catalogueRequests,
    requests: plan.cost.requests,
    rowsExpected: plan.cost.slots,
    slotsBeyondPlan: plan.cost.refusedSlots,
    slotsWaiting: plan.waitingSlots,
    slotsRefused: plan.refusedSlots,
    wall: {
      kind: wall.kind,
      depthMs: expectedDepth(wall),
      probe: plan.probe,
      requestsIfOpen: plan.costIfOpen.requests,
    },
    quotaLeft: quotaLeft(report),
    ...done(plan.cost.requests, session.limits, false),
    overrides: report.overrides,
    plans: PLAN_NAMES.map((name) => {
      const mine = name === session.plan.name;
      const cost = mine ? plan.cost : plan.underPlans[name];
      return {
        plan: name,
        requests: cost.requests,
        rowsExpected: cost.slots,
        slotsBeyondPlan: cost.refusedSlots,
        ...done(cost.requests, mine ? session.limits : limitsOf(name), !mine),
      };
    }),
  };
}
