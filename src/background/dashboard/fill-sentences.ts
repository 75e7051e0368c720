/** Sentences about filling a stretch: what Chandler would request now, what later and when, and what never. Also records the backfill. */
import type { App } from '../../app.ts';
import type { Budget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { formatCounted, formatDay, formatDuration, formatInstant } from '../../core/format.ts';
import { INTERVAL_MS, isPriceInterval, settledUntil, widthOf } from '../../core/interval.ts';
import type { Intended } from '../../dashboard/action.ts';
import type { BackfillPlan, BackfillTarget } from '../../ingest/backfill/plan.ts';
import { LONGEST_OPEN_MS } from '../../ingest/runner/claim.ts';
import { forecastFrom } from '../../quota/forecast.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { readBackfills } from '../../views/backfills/backfills.ts';
import { type RemainingSlots, readRemaining } from '../../views/operations/remaining-slots.ts';
import { type Recorded, recordBackfill } from '../actions/record-backfill.ts';

/** Slots that the upstream has answered, but not finally. */
type Waiting = {
  /** Grouped by reason: slots whose next request is not due yet. */
  readonly later: readonly (RemainingSlots & { readonly nextAskAt: Instant })[];
  /** Slots for which the upstream's last answer cannot be used. */
  readonly never: readonly RemainingSlots[];
};

export async function readWaiting(sql: Sql, target: BackfillTarget, now: Instant): Promise<Waiting> {
  const left = await readRemaining(sql, {
    ...target,
    ...{ settledUntil: settledUntil(now, target.interval), openFrom: null, failed: [], dueBy: now },
  });
  const isLater = (one: RemainingSlots): one is RemainingSlots & { nextAskAt: Instant } =>
    one.fate === 'later' && one.nextAskAt !== null && one.nextAskAt > now;
  return { later: left.filter(isLater), never: left.filter(({ fate }) => fate === 'failed') };
}

export function sentencesOf(planned: BackfillPlan, waiting: Waiting, now: Instant): string[] {
  const { probe, costIfOpen, othersSlots, cost } = planned;
  return [
    ...(cost.refusedSlots > 0
      ? [
          `${formatCounted(cost.refusedSlots, 'slot')} ${cost.refusedSlots === 1 ? 'is' : 'are'} beyond the history limit of the plan, and not requested.`,
        ]
      : []),
    ...(probe ? [`This is the documented limit of the plan. ${probeSentence(costIfOpen.requests)}`] : []),
    ...(othersSlots > 0
      ? [`Backfills that go before it fetch ${formatCounted(othersSlots, 'slot')} of it already.`]
      : []),
    ...waitingSentences(planned, waiting, now),
  ];
}

function waitingSentences({ later }: BackfillPlan, waiting: Waiting, now: Instant): string[] {
  const due = dueOf(waiting);
  const price = `about ${formatCounted(later.requests, 'more request')}`;
  const then =
    due === null || later.requests === 0
      ? ''
      : due - now <= LONGEST_OPEN_MS
        ? ` This backfill waits until then, and sends ${price}.`
        : ` This backfill ends before that: a later one sends ${price}.`;
  return [
    ...(due === null
      ? []
      : [
          `Not requested now: ${namedSlots(waiting.later)}. They wait for a second answer, the first slot until ${formatInstant(due)}.${then}`,
        ]),
    ...(waiting.never.length === 0
      ? []
      : [`No longer requested: ${namedSlots(waiting.never)}. The last answer of the upstream for them is not usable.`]),
  ];
}

/** Why nothing can be requested now. */
export function explainNothingToRequest({ refusedSlots, cost }: BackfillPlan, waiting: Waiting, now: Instant): string {
  const due = dueOf(waiting);
  const refused = refusedSlots + cost.refusedSlots;
  if (due !== null)
    return `nothing can be requested now: ${namedSlots(waiting.later)} wait for a second answer, the first slot until ${formatInstant(due)} (in ${formatDuration(due - now)})`;
  if (waiting.never.length > 0)
    return `nothing can be requested: the last answer of the upstream for ${namedSlots(waiting.never)} is not usable`;
  if (refused > 0) return `nothing can be requested: the upstream does not give ${formatCounted(refused, 'slot')}`;
  return 'no slot is missing there that could be final now';
}

function dueOf({ later }: Waiting): Instant | null {
  return later.length === 0 ? null : Math.min(...later.map(({ nextAskAt }) => nextAskAt));
}

/** `12 slots malformed and 1 slot unconfirmed`. */
function namedSlots(left: readonly RemainingSlots[]): string {
  const sums = new Map<string, number>();
  for (const { reason, slots } of left) sums.set(reason, (sums.get(reason) ?? 0) + slots);
  return [...sums].map(([reason, slots]) => `${formatCounted(slots, 'slot')} ${reason}`).join(' and ');
}

/** `ifOpen`: the number of requests for all of it, if the upstream gives more than the plan's documents say. */
export function probeSentence(ifOpen: number): string {
  return `One request checks whether the upstream gives more; if it does, everything costs ${formatCounted(ifOpen, 'request')}.`;
}

/** When so many requests will be done: `from` if they go first, `to` if they go after those of all open backfills. */
export async function forecastOfFill(app: App, budget: Budget, requests: number): Promise<Intended['done']> {
  const open = await readBackfills(app.database.sql, { all: false });
  const before = open.reduce((sum, { leftRequests }) => sum + (leftRequests ?? 0), 0);
  const state = { ...(await budget.quota.state()), now: app.clock.now() };
  const { limits, reserved } = budget;
  const endAfter = (sent: number) => forecastFrom(state, { requests: sent, limits, reserved }).finishAt;
  const [from, to] = [endAfter(requests), endAfter(requests + before)];
  return from === null || to === null ? null : { from, to };
}

export function recordFill(app: App, given: Parameters<typeof recordBackfill>[1], actor: string): Promise<Recorded> {
  const { coinIds, interval, quote, span } = given.target;
  const spec = { coins: coinIds, interval, quote, start: formatInstant(span.from), end: formatInstant(span.to) };
  return recordBackfill(app, given, { spec, priority: 0, requestedBy: actor });
}

/** The command that fills the same stretch. */
export function commandOf({ coinIds, interval, quote, span }: BackfillTarget): string[] {
  const instant = (at: number) => (at % INTERVAL_MS['24h'] === 0 ? formatDay(at) : new Date(at).toISOString());
  return [
    ...['chandler', 'backfill', ...coinIds, '--interval', widthOf(interval)],
    ...(isPriceInterval(interval) ? ['--series', 'prices'] : []),
    ...(quote === 'usd' ? [] : ['--quote', quote]),
    ...['--start', instant(span.from), '--end', instant(span.to), '--detach'],
  ];
}
