/** The past of what `track add` tracks: which backfill fetches it from now on, and which part the plan does not give. */

import type { App } from '../../app.ts';
import { type QueuedPast, queueHistory } from '../../background/actions/track-rules.ts';
import { type Budget, readPlanning } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { formatCounted, formatDay, shellWord, withIso } from '../../core/format.ts';
import { ceilToGrid, describeInterval, type Interval, isCandleInterval, widthOf } from '../../core/interval.ts';
import { keptPart } from '../../core/settings/retention-settings.ts';
import { planBackfill } from '../../ingest/backfill/plan.ts';
import { earliestSlot, expectedDepth } from '../../ingest/limits/history-limit.ts';
import { lastDayOf } from '../../ingest/limits/last-day.ts';
import { HISTORY_PRIORITY, refreshedFrom } from '../../ingest/tracking/audit.ts';
import { type RuleTarget, readRuleTargets, type TrackRule } from '../../store/tracking/track-rule.ts';
import type { PricesInstead } from '../backfill/plan-report.ts';
import { beyondLimitText, pricesTexts } from '../backfill/plan-text.ts';
import { pricesInstead } from '../backfill/prices-instead.ts';
import type { Output } from '../shell/io.ts';
import type { TrackOptions } from './track-options.ts';

/** The past slots of some series that the plan does not give. */
type BeyondLimit = {
  readonly interval: Interval;
  readonly slots: number;
  /** Null when another text says it already, because the plan has no candles of this width. */
  readonly sentence: string | null;
  readonly prices: PricesInstead | null;
};

/** The past slots that the next refresh of each series fetches. */
type WithRefresh = {
  readonly interval: Interval;
  readonly quote: Quote;
  readonly coins: number;
  readonly from: Instant;
  readonly slots: number;
};

type PastReport = QueuedPast & {
  readonly withRefresh: readonly WithRefresh[];
  /** Missing slots that other open backfills will fetch. */
  readonly othersSlots: number;
  readonly beyond: readonly BeyondLimit[];
};

/** Queues backfills of what is missing in the past, without waiting for the audit of gaps. Sends no requests. */
export async function queuePast(
  app: App,
  budget: Budget,
  rules: readonly TrackRule[],
  coins: readonly string[],
  options: TrackOptions,
): Promise<PastReport> {
  const { sql } = app.database;
  const planning = await readPlanning(app, budget.plan);
  const beyond: BeyondLimit[] = [];
  const withRefresh: WithRefresh[] = [];
  let othersSlots = 0;
  for (const target of await readRuleTargets(sql, rules)) {
    const one = await readPast(app, planning, target, coins, options);
    othersSlots += one.othersSlots;
    if (one.beyond !== null) beyond.push(one.beyond);
    if (one.withRefresh !== null) withRefresh.push(one.withRefresh);
  }
  return { ...(await queueHistory(app, budget, planning)), othersSlots, withRefresh, beyond };
}

async function readPast(
  { clock, config }: App,
  planning: Awaited<ReturnType<typeof readPlanning>>,
  { since, ...series }: RuleTarget,
  coins: readonly string[],
  options: TrackOptions,
): Promise<{
  readonly othersSlots: number;
  readonly withRefresh: WithRefresh | null;
  readonly beyond: BeyondLimit | null;
}> {
  const { sql, plan, historyLimits } = planning;
  const { interval } = series;
  const now = clock.now();
  const whole = { from: ceilToGrid(since, interval), to: ceilToGrid(now, interval) };
  const target = { ...series, span: keptPart(whole, interval, config.keep.candles, now) };
  const historyLimit = historyLimits.of(interval);
  const wanted = { sql, target, now, requestedSince: now, plan, historyLimit };
  const place = { id: null, priority: HISTORY_PRIORITY };
  const { othersSlots } = await planBackfill({ ...wanted, place });
  const depth = expectedDepth(historyLimit);
  const from = Math.max(target.span.from, refreshedFrom(plan, interval, now), earliestSlot(depth, interval, now));
  const newest = { ...target, span: { from, to: target.span.to } };
  const refresh = from < target.span.to ? await planBackfill({ ...wanted, target: newest, place }) : null;
  // The newest slot of each coin does not belong to the past.
  const withRefresh =
    refresh !== null && refresh.cost.slots > refresh.coinsWithGaps
      ? { interval, quote: target.quote, coins: refresh.coinsWithGaps, from, slots: refresh.cost.slots }
      : null;
  const all = await planBackfill(wanted);
  if (all.cost.refusedSlots === 0) return { othersSlots, withRefresh, beyond: null };
  const isOfLastDay = lastDayOf(depth, interval, now) !== null;
  const text = beyondLimitText({ plan: all, historyLimit, session: { plan }, target });
  const rest = isOfLastDay ? ' Of daily candles, only the last full day becomes final; older ones stay gaps.' : '';
  const sentence = depth === 0 ? null : text + rest;
  const prices =
    isCandleInterval(interval) && (isOfLastDay || depth === 0)
      ? await pricesInstead({ sql, plan, now, historyLimits }, target, (width, start) =>
          commandOf(coins, { ...options, since: start ?? options.since }, width),
        )
      : null;
  return { othersSlots, withRefresh, beyond: { interval, slots: all.cost.refusedSlots, sentence, prices } };
}

function commandOf(coins: readonly string[], { top, all, since, quote }: TrackOptions, interval: Interval): string {
  return [
    'chandler track add',
    ...coins,
    ...(top === undefined ? [] : [`--top ${top}`]),
    ...(all ? ['--all'] : []),
    ...(since === undefined ? [] : [`--since ${shellWord(since)}`]),
    ...(quote === 'usd' ? [] : [`--quote ${quote}`]),
    `--series prices --interval ${widthOf(interval)}`,
  ].join(' ');
}

export function pastAsJson({ queued, isServed, beyond, othersSlots, withRefresh }: PastReport) {
  return {
    backfills: queued.map(({ id, interval, quote, span, coinIds, requests, slots }) => ({
      id,
      interval,
      quote,
      from: new Date(span.from).toISOString(),
      to: new Date(span.to).toISOString(),
      coins: coinIds.length,
      requests,
      slots,
    })),
    isServed,
    slotsOfOtherBackfills: othersSlots,
    withFirstRefresh: withRefresh.map((one) => withIso(one, 'from')),
    beyondPlan: beyond.map(({ interval, slots, prices }) => ({ interval, slots, prices: prices?.command ?? null })),
  };
}

export function printPast(out: Output, past: PastReport): void {
  const { queued, isServed, othersSlots, withRefresh, beyond, isOff } = past;
  const hasBeyond = beyond.some(({ sentence, prices }) => sentence !== null || prices !== null);
  if (queued.length > 0 || othersSlots > 0 || withRefresh.length > 0 || hasBeyond || isOff) out.write('\n');
  for (const { id, interval, quote, span, coinIds, requests } of queued) {
    const what = `${formatCounted(coinIds.length, 'coin')}, ${describeInterval(interval)} in ${quote}`;
    out.write(
      `Backfill ${id} fetches the past of ${what}, from ${formatDay(span.from)} to ${formatDay(span.to)}: ${formatCounted(requests, 'request')}, priority ${HISTORY_PRIORITY}.\n`,
    );
  }
  if (queued.length > 0) {
    const next = isServed ? 'The service runs it' : 'No service is running: start one with chandler service to run it';
    out.write(`${next}. chandler backfills list shows its progress.\n`);
  }
  for (const { interval, quote, coins, from, slots } of withRefresh) {
    const what = `${formatCounted(coins, 'coin')}, ${describeInterval(interval)} in ${quote}`;
    out.write(
      `The next refreshes fetch the past of ${what}, from ${formatDay(from)} on: up to ${formatCounted(slots, 'row')}.\n`,
    );
  }
  if (othersSlots > 0) {
    out.write(
      `Open backfills fetch ${formatCounted(othersSlots, 'slot')} of the past already (chandler backfills list).\n`,
    );
  }
  if (isOff) out.write('The schedule gaps is off, so nothing fetches the past of tracked series.\n');
  for (const { sentence, prices } of beyond) {
    if (sentence !== null) out.write(`${sentence}\n`);
    if (prices !== null) for (const line of pricesTexts(prices)) out.write(`${line}\n`);
  }
}
