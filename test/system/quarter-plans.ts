/** Four plans for a quarter (`quarter.ts`): the same kinds of limits as the upstream's plans, with few coins and smaller numbers. */
import type { PlanName, PlanOverrides } from '../../src/contract/plan/plans.ts';
import { type CandleInterval, HOUR } from '../../src/core/interval.ts';
import type { Environment } from '../../src/settings.ts';
import { CATALOGUE_KINDS } from '../../src/store/catalogue/catalogue-item.ts';
import type { TrackedCoins } from '../../src/store/tracking/track-rule.ts';
import type { OwnRedis } from '../support/redis-server.ts';

export type QuarterOptions = {
  readonly plan: PlanName;
  readonly hasKey: boolean;
  readonly redis: OwnRedis | null;
  /** Decides what happens when. */
  readonly seed: number;
  readonly coins: number;
  /** The plan's own limits, made smaller. The upstream enforces them. */
  readonly limits: Pick<PlanOverrides, 'requestsPerMonth' | 'anonymousRequestsPerDay'>;
  readonly perSecond: number | null;
  /** Further settings of the services. */
  readonly env?: Environment;
  readonly candlesPerRequest: number;
  readonly tracks: readonly (TrackedCoins & {
    readonly interval: CandleInterval;
    readonly days: number;
    readonly targetAgeMs: number;
  })[];
  /** Whether the budget has room for the target ages. If not, the promised ages must hold. */
  readonly hasRoom: boolean;
  /** What the operator records every other week. At its rate it lasts longer than the half minute after which its end is forecast. */
  readonly backfill: { readonly interval: CandleInterval; readonly days: number };
};

const DAILY = [
  { tier: 'top', top: 8, interval: '24h', days: 1, targetAgeMs: 12 * HOUR },
  { tier: 'all', interval: '24h', days: 1, targetAgeMs: 24 * HOUR },
] as const;
const SMALL = {
  coins: 24,
  perSecond: null,
  candlesPerRequest: 366,
  backfill: { interval: '24h', days: 1 },
} as const;

/** Less often than a plan without limits has them, because each tick of a day that is run tick by tick is a step. */
const CATALOGUE: Environment = Object.fromEntries(
  CATALOGUE_KINDS.map((kind, i) => [`CHANDLER_SCHEDULE_${kind.toUpperCase()}`, `${5 * i + 2} */4 * * *`]),
);

export const QUARTER_PLANS = {
  'without a key': {
    ...SMALL,
    plan: 'free',
    hasKey: false,
    seed: 1,
    limits: { anonymousRequestsPerDay: 90, requestsPerMonth: 20_000 },
    tracks: DAILY,
    hasRoom: true,
  },
  /** Far too few requests for the tracked series, and one interval that this plan does not show. */
  free: {
    ...SMALL,
    plan: 'free',
    hasKey: true,
    seed: 2,
    limits: { requestsPerMonth: 1_100 },
    tracks: [...DAILY, { tier: 'list', coinId: 'btc-bitcoin', interval: '1h', days: 1, targetAgeMs: 12 * HOUR }],
    hasRoom: false,
  },
  pro: {
    plan: 'pro',
    hasKey: true,
    seed: 3,
    coins: 12,
    limits: { requestsPerMonth: 4_000 },
    perSecond: 1,
    candlesPerRequest: 7,
    tracks: [{ tier: 'all', interval: '24h', days: 60, targetAgeMs: 12 * HOUR }],
    hasRoom: true,
    backfill: { interval: '24h', days: 80 },
  },
  enterprise: {
    plan: 'enterprise',
    hasKey: true,
    seed: 4,
    coins: 8,
    limits: {},
    perSecond: 10,
    env: CATALOGUE,
    candlesPerRequest: 366,
    tracks: [
      { tier: 'list', coinId: 'btc-bitcoin', interval: '5m', days: 2, targetAgeMs: 6 * HOUR },
      { tier: 'top', top: 3, interval: '1h', days: 40, targetAgeMs: 12 * HOUR },
      { tier: 'all', interval: '24h', days: 400, targetAgeMs: 24 * HOUR },
    ],
    hasRoom: true,
    backfill: { interval: '1h', days: 600 },
  },
} as const satisfies Readonly<Record<string, Omit<QuarterOptions, 'redis'>>>;

export type QuarterPlan = keyof typeof QUARTER_PLANS;
