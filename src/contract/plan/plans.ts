/** The plans as data: which data each may request, how often, and how far back. Plans change, so configuration can override every number. */
import { type CandleInterval, DAY, HOUR, INTERVAL_MS, type Interval, isPriceInterval } from '../../core/interval.ts';

export const PLAN_NAMES = ['free', 'starter', 'pro', 'business', 'ultimate', 'enterprise'] as const;
export type PlanName = (typeof PLAN_NAMES)[number];

/** The width of the slots of a ticker history: below an hour, below a day, a day and more. */
export type TickerResolution = 'minute' | 'hourly' | 'daily';

export type Plan = {
  readonly name: PlanName;
  /** Per calendar month, UTC; null = no limit. Source: API document, section 8. */
  readonly requestsPerMonth: number | null;
  /** Per UTC day, only for use without a key; null when the plan needs one. Source: API document, section 8. */
  readonly anonymousRequestsPerDay: number | null;
  /** "Global limit of 10 requests/second per IP", all plans. Source: vendor's FAQ (upstream-api.md, section 2). */
  readonly requestsPerSecond: number;
  /** The `limit` of a request for candles: `MAX_CANDLES`, or what the operator set. */
  readonly candlesPerRequest: number;
  /** The `limit` of a request for prices, if it is less than `MAX_PRICES`. */
  readonly pricesPerRequest?: number;
  /** Widths of candles in the plan. A forecast, not a rule: the upstream's answers win. Source: upstream-api.md, 1.1. */
  readonly intervals: readonly CandleInterval[];
  /** How far back from now a request may start; null = unlimited. A forecast, too. Source: upstream-api.md, 1.1. */
  readonly historyDepthMs: number | null;
  /** How far back ticker history may start, by the width of its slots; null = unlimited, 0 = not at all. Source: upstream-api.md, 1.7. */
  readonly tickerHistoryDepthMs: Readonly<Record<TickerResolution, number | null>>;
  /** Most coins in `/tickers`; null = all. Source: upstream-api.md, 1.4. */
  readonly tickerCoins: number | null;
  /** Whether tickers include `circulating_supply`. Source: upstream-api.md, 1.4. */
  readonly circulatingSupply: boolean;
  /** Whether the plan may read the changelog of ids. Source: upstream-api.md, 1.25. */
  readonly idChanges: boolean;
  /** Whether the plan may request the ids of coins at other providers. Source: upstream-api.md, 1.14. */
  readonly mappings: boolean;
};

const DAILY: readonly CandleInterval[] = ['24h'];
const YEAR = 365 * DAY;
const UNLIMITED_DEPTHS = { minute: null, hourly: null, daily: null } as const;
const HOURLY: readonly CandleInterval[] = ['1h', '6h', '12h', '24h'];
const ALL: readonly CandleInterval[] = ['5m', '15m', '30m', '1h', '6h', '12h', '24h'];

/** Largest `limit` of an OHLCV request, under every plan. Source: vendor's OpenAPI (upstream-api.md, 1.1). */
export const MAX_CANDLES = 366;

/** Default values; some plans override them. */
const COMMON = {
  anonymousRequestsPerDay: null,
  requestsPerSecond: 10,
  candlesPerRequest: MAX_CANDLES,
  tickerCoins: null,
  circulatingSupply: true,
  idChanges: true,
  mappings: true,
} as const;

export const PLANS: Readonly<Record<PlanName, Plan>> = {
  free: {
    ...COMMON,
    name: 'free',
    requestsPerMonth: 20_000,
    anonymousRequestsPerDay: 1_000,
    intervals: DAILY,
    historyDepthMs: DAY,
    tickerHistoryDepthMs: { minute: 0, hourly: DAY, daily: YEAR },
    tickerCoins: 2_000,
    circulatingSupply: false,
    idChanges: false,
    mappings: false,
  },
  starter: {
    ...COMMON,
    name: 'starter',
    requestsPerMonth: 400_000,
    intervals: DAILY,
    historyDepthMs: 30 * DAY,
    tickerHistoryDepthMs: { minute: 7 * DAY, hourly: 30 * DAY, daily: 5 * YEAR },
    mappings: false,
  },
  pro: {
    ...COMMON,
    name: 'pro',
    requestsPerMonth: 1_000_000,
    intervals: DAILY,
    historyDepthMs: 90 * DAY,
    tickerHistoryDepthMs: { minute: 30 * DAY, hourly: 90 * DAY, daily: null },
    mappings: false,
  },
  business: {
    ...COMMON,
    name: 'business',
    requestsPerMonth: 5_000_000,
    intervals: HOURLY,
    historyDepthMs: 365 * DAY,
    tickerHistoryDepthMs: { minute: YEAR, hourly: YEAR, daily: null },
  },
  ultimate: {
    ...COMMON,
    name: 'ultimate',
    requestsPerMonth: 10_000_000,
    intervals: HOURLY,
    historyDepthMs: null,
    tickerHistoryDepthMs: UNLIMITED_DEPTHS,
  },
  enterprise: {
    ...COMMON,
    name: 'enterprise',
    requestsPerMonth: null,
    intervals: ALL,
    historyDepthMs: null,
    tickerHistoryDepthMs: UNLIMITED_DEPTHS,
  },
};

/** Largest `limit` of a request for a price series, under every plan. Source: vendor's OpenAPI (upstream-api.md, 1.7). */
export const MAX_PRICES = 5_000;

/** The most rows of one request for a series of this interval. */
export function rowsPerRequest(
  { candlesPerRequest, pricesPerRequest = MAX_PRICES }: Pick<Plan, 'candlesPerRequest' | 'pricesPerRequest'>,
  interval: Interval,
): number {
  return isPriceInterval(interval) ? pricesPerRequest : candlesPerRequest;
}

/** The documented depth of the plan for a series of this interval, in milliseconds; null = unlimited, 0 = not at all. */
export function documentedDepth(plan: Plan, interval: Interval): number | null {
  if (isPriceInterval(interval)) return plan.tickerHistoryDepthMs[resolutionOf(INTERVAL_MS[interval])];
  return plan.intervals.includes(interval) ? plan.historyDepthMs : 0;
}

export function resolutionOf(widthMs: number): TickerResolution {
  if (widthMs < HOUR) return 'minute';
  return widthMs < DAY ? 'hourly' : 'daily';
}

export function isPlanName(text: string): text is PlanName {
  return (PLAN_NAMES as readonly string[]).includes(text);
}

/** The values that an operator may override; `undefined` keeps the plan's own. */
export type PlanOverrides = Partial<
  Pick<
    Plan,
    | 'requestsPerMonth'
    | 'anonymousRequestsPerDay'
    | 'requestsPerSecond'
    | 'candlesPerRequest'
    | 'pricesPerRequest'
    | 'intervals'
    | 'historyDepthMs'
    | 'tickerHistoryDepthMs'
    | 'idChanges'
    | 'mappings'
  >
>;

/** The plan with that name, with some of its values replaced. */
export function planOf(name: PlanName, overrides: PlanOverrides = {}): Plan {
  const given = Object.entries(overrides).filter(([, value]) => value !== undefined);
  return { ...PLANS[name], ...(Object.fromEntries(given) as PlanOverrides) };
}
