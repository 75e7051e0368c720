/** The plan of a backfill: the number of requests, before any is sent. It reads the gaps page by page, and only counts the chunks. */
import type { Instant } from '../../clock.ts';
import { PLAN_NAMES, type Plan, type PlanName, planOf, rowsPerRequest } from '../../contract/plan/plans.ts';
import { countChunks, countSlots } from '../../core/chunk.ts';
import type { Interval, SeriesSpan } from '../../core/interval.ts';
import { intersect, type Spans, subtract } from '../../core/span.ts';
import { type Place, readOwnedByOthers } from '../../store/backfill/slot-owner.ts';
import { type CoinGaps, readGaps } from '../../store/candle/gaps.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { documentedLimit, expectedDepth, type HistoryLimit } from '../limits/history-limit.ts';
import { splitAtReach } from '../limits/last-day.ts';

/** The series that a backfill fills, in the order in which it fills them, and the span, on the grid. */
export type BackfillTarget = SeriesSpan;

export type PlanCost = {
  /** Requests for everything within the history limit, including the probe of that limit. */
  readonly requests: number;
  /** Slots of these requests: the number of candles to expect if the upstream has one for each slot. */
  readonly slots: number;
  /** Slots beyond the history limit. */
  readonly refusedSlots: number;
};

export type BackfillPlan = {
  /** Coins with something to request. */
  readonly coinsWithGaps: number;
  readonly cost: PlanCost;
  /** One request of `cost.requests` probes the documented history limit of this plan and interval. */
  readonly probe: boolean;
  /** The cost if the probe finds that the documented limit does not hold; without a probe the same as `cost`. */
  readonly costIfOpen: PlanCost;
  /** Missing slots whose answer is not final: they are requested again later. */
  readonly waitingSlots: number;
  /** The approximate cost of requesting the waiting slots. Stretches count separately: they are due at different times, and some may never be due. */
  readonly later: PlanCost;
  /** Missing slots of series that the upstream refuses (unknown coin …). */
  readonly refusedSlots: number;
  /** Missing slots that backfills before this one will request. */
  readonly othersSlots: number;
  /** The cost of the same backfill under each plan, by its documented history limit. */
  readonly underPlans: Readonly<Record<PlanName, PlanCost>>;
};

export type PlanOptions = {
  readonly sql: SqlOrTransaction;
  readonly target: BackfillTarget;
  readonly now: Instant;
  readonly requestedSince: Instant;
  readonly plan: Pick<Plan, 'candlesPerRequest' | 'pricesPerRequest'> & { readonly name: string };
  readonly historyLimit: HistoryLimit;
  /** The place of a backfill of the service: slots of the backfills before it are left out. */
  readonly place?: Place | undefined;
};

/** Coins per statement: it bounds the memory for any number of series. */
const PAGE = 1_000;

/** `gaps` excludes the slots of backfills before this one; `others` has those. */
type OwnGaps = CoinGaps & { readonly others: Spans };

/** The gaps of all coins, page by page in the target's order. */
export async function* gapsOf(
  sql: SqlOrTransaction,
  target: BackfillTarget,
  when: {
    readonly now: () => Instant;
    readonly requestedSince: Instant;
    readonly plan: string;
    readonly place?: Place | undefined;
  },
  pageSize = PAGE,
): AsyncGenerator<OwnGaps> {
  const { coinIds, quote, interval, span } = target;
  for (let at = 0; at < coinIds.length; at += pageSize) {
    const page = coinIds.slice(at, at + pageSize);
    const query = { coinIds: page, quote, interval, span, now: when.now() };
    const all = await readGaps(sql, { ...query, requestedSince: when.requestedSince, plan: when.plan });
    const owned = when.place === undefined ? null : await readOwnedByOthers(sql, { ...query, place: when.place });
    for (const coin of all) {
      const others = owned?.get(coin.coinId) ?? [];
      yield others.length === 0
        ? { ...coin, others }
        : { ...coin, gaps: subtract(coin.gaps, others), others: intersect(coin.gaps, others) };
    }
  }
}

export async function planBackfill({
  sql,
  target,
  now,
  requestedSince,
  plan,
  historyLimit,
  place,
}: PlanOptions): Promise<BackfillPlan> {
  const { interval } = target;
  const limit = rowsPerRequest(plan, interval);
  const mine = counter(interval, limit, expectedDepth(historyLimit), now);
  const others = PLAN_NAMES.map((name) => {
    const other = planOf(name);
    const depth = expectedDepth(documentedLimit(other, interval));
    return { name, counter: counter(interval, rowsPerRequest(other, interval), depth, now) };
  });
  const open = counter(interval, limit, null, now);
  const later = counter(interval, limit, expectedDepth(historyLimit), now);
  let coinsWithGaps = 0;
  let waitingSlots = 0;
  let refusedSlots = 0;
  let othersSlots = 0;
  for await (const coin of gapsOf(sql, target, { now: () => now, requestedSince, plan: plan.name, place })) {
    waitingSlots += countSlots(coin.waiting, interval);
    refusedSlots += countSlots(coin.refused, interval);
    othersSlots += countSlots(splitAtReach(coin.others, expectedDepth(historyLimit), interval, now).within, interval);
    for (const span of coin.waiting) later.add({ gaps: [span] });
    if (coin.gaps.length === 0) continue;
    coinsWithGaps++;
    mine.add(coin);
    open.add(coin);
    for (const other of others) other.counter.add(coin);
  }
  const cost = mine.total();
  const probe = historyLimit.kind === 'documented' && cost.refusedSlots > 0;
  return {
    coinsWithGaps,
    cost: probe ? { ...cost, requests: cost.requests + 1 } : cost,
    probe,
    costIfOpen: probe ? open.total() : cost,
    waitingSlots,
    later: later.total(),
    refusedSlots,
    othersSlots,
    underPlans: Object.fromEntries(others.map((o) => [o.name, o.counter.total()])) as Record<PlanName, PlanCost>,
  };
}

function counter(interval: Interval, limit: number, depthMs: number | null, now: Instant) {
  let requests = 0;
  let slots = 0;
  let refusedSlots = 0;
  return {
    add: ({ gaps }: Pick<CoinGaps, 'gaps'>) => {
      const { within, beyond } = splitAtReach(gaps, depthMs, interval, now);
      requests += countChunks(within, interval, limit);
      slots += countSlots(within, interval);
      refusedSlots += countSlots(beyond, interval);
    },
    total: (): PlanCost => ({ requests, slots, refusedSlots }),
  };
}
