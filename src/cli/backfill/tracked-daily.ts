/** How many daily candles the warehouse will have of coins tracked daily from now on, under a plan that gives only the last full day. */
import type { App } from '../../app.ts';
import { schedulesOf } from '../../budget.ts';
import type { Quote } from '../../core/candle.ts';
import { DAY } from '../../core/interval.ts';
import type { Tier } from '../../core/tier.ts';
import { FRESHNESS } from '../../ingest/queue/chunk-job.ts';
import { longestGapMs } from '../../ingest/schedule/cadence.ts';
import { type Demand, freshnessBudgetOf, sustainedFreshness } from '../../ingest/schedule/demand.ts';
import type { Schedule } from '../../ingest/schedule/schedule-plan.ts';
import type { Session } from '../../ingest/session.ts';
import { planTiers } from '../../ingest/tracking/freshness.ts';
import { CATALOGUE_KINDS, type CatalogueDemand } from '../../store/catalogue/catalogue-item.ts';
import { NEW_TIER, newTier, readTiers } from '../../store/tracking/tracked-tier.ts';

export type TrackedDaily = {
  /** Number of active coins: only these get new days. */
  readonly coins: number;
  /** From month to month, the quota allows one day in so many for each coin. Null when it allows none. */
  readonly everyDays: number | null;
  /** The same for the rest of this month, if the quota allows less until then. Otherwise null. */
  readonly thisMonth: { readonly everyDays: number | null } | null;
  /** Number of candles after that time. */
  readonly after: Readonly<Record<'week' | 'month' | 'year', number>>;
};

type Scheduled = { readonly schedules: readonly Schedule[]; readonly demand: Demand };
type Coins = { readonly coinIds: readonly string[]; readonly quote: Quote; readonly tier: Tier };

/**
 * Plans as `track add` does: first with the rest of this month, then from month to month, besides the series that are tracked already and
 * the requests of the catalogue about all these coins. Records nothing.
 */
export async function planTrackedDaily(
  { config, clock, database: { sql } }: App,
  { plan, limits, historyLimits }: Pick<Session, 'plan' | 'limits' | 'historyLimits'>,
  { schedules, demand }: Scheduled,
  { coinIds, quote, tier }: Coins,
): Promise<TrackedDaily> {
  const coins = coinIds.length;
  const added = newTier({ tier, interval: '24h', targetAgeMs: DAY, series: coins });
  const rows = [...(await readTiers(sql, { coinIds, interval: '24h', quote })), added];
  const catalogue = withCoins(demand.catalogue, coins);
  const later = sustainedFreshness(schedulesOf(config, plan.name, limits, { ...demand, catalogue }), demand.state);
  const { planned } = freshnessBudgetOf(schedules, demand);
  const isLess = planned !== null && later.planned !== null && planned < later.planned;
  const cadence = schedules.find(({ name }) => name === FRESHNESS)?.cadence;
  const terms = {
    ...{ now: clock.now(), mostPerDay: later.mostPerDay, candlesPerRequest: plan.candlesPerRequest, historyLimits },
    tickMs: cadence ? longestGapMs(cadence) : 0,
  };
  const perDayWith = (requestsPerDay: number | null) =>
    planTiers(rows, { ...terms, requestsPerDay }).tiers.find(({ id }) => id === NEW_TIER)!.requestsPerDay;
  const perDay = perDayWith(later.planned);
  const perDayNow = isLess ? perDayWith(planned) : perDay;
  const daysNow = (demand.state.month.reset - demand.state.now) / DAY;
  const after = (days: number) =>
    Math.round(perDayNow * Math.min(days, daysNow) + perDay * Math.max(0, days - daysNow));
  return {
    coins,
    everyDays: daysOf(coins, perDay),
    thisMonth: perDayNow < perDay ? { everyDays: daysOf(coins, perDayNow) } : null,
    after: { week: after(7), month: after(30), year: after(365) },
  };
}

function daysOf(coins: number, perDay: number): number | null {
  return perDay === 0 ? null : Math.round(coins / perDay);
}

/** The catalogue's demand with so many tracked coins. It assumes one related item (person, exchange) per coin, because these are not known yet. */
function withCoins(known: CatalogueDemand, coins: number): CatalogueDemand {
  const of = (kind: (typeof CATALOGUE_KINDS)[number]) => {
    const { items, idle } = known[kind];
    const isOfCoins = kind !== 'tags' && kind !== 'platforms';
    return [kind, { items: isOfCoins ? Math.max(items, idle + coins) : items, idle }] as const;
  };
  return Object.fromEntries(CATALOGUE_KINDS.map(of)) as CatalogueDemand;
}
