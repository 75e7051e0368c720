/** Assembles the simulator: a market, the service over it, the limits of a plan, and faults. The result is a function, like `fetch`. */
import type { Clock } from './clock.ts';
import type { Handler } from './contract/interface/handler.ts';
import { RPC_PATHS } from './contract/interface/json-rpc.ts';
import { ACCOUNT_PATHS, BASE_PATH, SIMULATOR_HEADER } from './contract/interface/paths.ts';
import type { Access } from './contract/plan/access.ts';
import type { PlanName } from './contract/plan/plans.ts';
import type { MarketData } from './contract/record/market-data.ts';
import { createService } from './service/service.ts';
import { type FaultName, type FaultSpec, NO_FAULTS } from './simulator/faults/fault-spec.ts';
import { withFaults } from './simulator/faults/faults.ts';
import { createMadeUpMarket, type Revisions } from './simulator/made-up/made-up.ts';
import { createMadeUpWorld } from './simulator/made-up/made-up-world.ts';
import { type AccountCounters, createPlanLimits, NO_LIMITS, type PlanLimitsOptions } from './simulator/plan-limits.ts';
import { createRecordedMarket } from './simulator/recorded/recorded.ts';
import { readRecordedSeries } from './simulator/recorded/recorded-series.ts';

export const MARKETS = ['made-up', 'recorded'] as const;
export type MarketName = (typeof MARKETS)[number];

export type SimulatorOptions = {
  readonly market: MarketName;
  readonly clock: Clock;
  /** Seed of the made-up market; default 1. Faults have their own seed. */
  readonly seed?: number;
  /** Number of coins in the made-up market, 1 to 65,000; default 100. */
  readonly coins?: number;
  /** Candles of the made-up market that change after they closed; default none. */
  readonly revisions?: Revisions;
  /** The plan of callers without a key, the keys, the auth scheme and the limits; `unlimited` lifts every limit. */
  readonly limits?: Omit<PlanLimitsOptions, 'clock'>;
  readonly unlimited?: boolean;
  readonly faults?: FaultSpec;
  /** Delay of each answer in milliseconds, on the clock of the simulator. */
  readonly latencyMs?: number;
  /** Milliseconds after midnight until `/ohlcv/latest` moves on to the day that has ended. Default: it moves at midnight. */
  readonly latestTurnsAfterMs?: number;
  /** Whether tool calls must give a rationale, as the vendor's hosted server demands. Default: they need not. */
  readonly requireRationale?: boolean;
  /** Origins of web pages that may use the tools, in addition to this machine. */
  readonly origins?: readonly string[];
  /** Called with unexpected errors. */
  readonly onError: (error: unknown, url: string) => void;
};

export type SimulatorCounters = {
  /** Requests under the base path and to the JSON-RPC interface (`other`), with any kind of answer. */
  readonly requests: {
    readonly total: number;
    readonly ohlcv: number;
    readonly account: number;
    readonly other: number;
  };
  readonly accounts: readonly AccountCounters[];
  readonly forbidden: number;
  readonly faults: Readonly<Partial<Record<FaultName, number>>>;
};

export type Simulator = {
  /** Replaces `fetch`: `fetch(new Request('http://simulator/v1/tickers'))`. `GET /simulator` returns the counters. */
  readonly fetch: Handler;
  readonly counters: () => SimulatorCounters;
  /** The market itself, for comparisons. */
  readonly data: MarketData;
};

/** @throws RangeError for an invalid number of coins, Error when the recorded data is missing */
export function createSimulator(options: SimulatorOptions): Simulator {
  const { clock, onError, latencyMs = 0, faults = NO_FAULTS } = options;
  const marketAt = marketOf(options);
  const data = marketAt(clock);
  const name = nameOf(options);
  const overrides = { ...(options.unlimited ? NO_LIMITS : {}), ...options.limits?.overrides };
  const access = createPlanLimits({ ...options.limits, overrides, clock });
  const { latestTurnsAfterMs, requireRationale, origins } = options;
  const service = createService({ data, access, clock, onError, origins, latestTurnsAfterMs, requireRationale });

  const planOfCaller = (key: string | null): PlanName =>
    (key === null ? undefined : options.limits?.keys?.[key]) ?? options.limits?.plan ?? 'free';
  const past = new Map<number, Handler>();
  const serviceAgo = (agoMs: number): Handler => {
    const then: Clock = { now: () => clock.now() - agoMs, sleep: clock.sleep };
    const made =
      past.get(agoMs) ?? createService({ data: marketAt(then), access: admitted(planOfCaller), clock: then, onError });
    past.set(agoMs, made);
    return made;
  };
  const faulty = withFaults(service, { spec: faults, clock, send: (request, agoMs) => serviceAgo(agoMs)(request) });

  const requests = { total: 0, ohlcv: 0, account: 0, other: 0 };
  const counters = (): SimulatorCounters => ({
    requests: { ...requests },
    accounts: access.counters(),
    forbidden: access.forbidden(),
    faults: faulty.injected(),
  });
  return {
    data,
    counters,
    fetch: async (request, peer) => {
      const { pathname } = new URL(request.url);
      if (pathname === '/simulator') return Response.json(counters(), { headers: { 'Cache-Control': 'no-store' } });
      if (pathname.startsWith(`${BASE_PATH}/`) || (RPC_PATHS as readonly string[]).includes(pathname)) {
        requests.total++;
        requests[kindOf(pathname)]++;
      }
      if (latencyMs > 0) await clock.sleep(latencyMs, request.signal);
      const answer = await faulty(request, peer);
      answer.headers.set(SIMULATOR_HEADER, name);
      return answer;
    },
  };
}

/** Markets with the same name have the same candles. The other options change only the number of coins and the answers. */
function nameOf({ market, seed = 1 }: SimulatorOptions): string {
  return market === 'recorded' ? market : `${market}, seed ${seed}`;
}

/** The market as a function of the clock. */
function marketOf({ market, seed = 1, coins = 100, revisions }: SimulatorOptions): (clock: Clock) => MarketData {
  if (market === 'recorded') {
    const series = readRecordedSeries();
    return (clock) => createRecordedMarket({ clock, series });
  }
  const world = createMadeUpWorld({ seed, coins });
  return (clock) => createMadeUpMarket(revisions ? { world, clock, revisions } : { world, clock });
}

/** For faulty answers about the past or to a different request: the caller was already admitted. */
function admitted(planOfCaller: (key: string | null) => PlanName): Access {
  return {
    admit: (caller) => ({ kind: 'admitted', plan: planOfCaller(caller.key) }),
    refuseHistory: () => null,
    refuseTickerHistory: () => null,
    refuseIdChanges: () => null,
    refuseMappings: () => null,
    account: () => null,
  };
}

function kindOf(pathname: string): 'ohlcv' | 'account' | 'other' {
  if (/\/ohlcv(\/|$)/.test(pathname)) return 'ohlcv';
  return ACCOUNT_PATHS.some((path) => pathname === BASE_PATH + path) ? 'account' : 'other';
}
