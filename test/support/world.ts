/** A whole Chandler against a simulated upstream: real Postgres, the real queue, and a clock that may run faster than the machine's. */
import type { Clock } from '../../src/clock.ts';
import type { PlanName } from '../../src/contract/plan/plans.ts';
import { PLANS } from '../../src/contract/plan/plans.ts';
import { type BackfillRun, runBackfill } from '../../src/ingest/backfill/backfill.ts';
import { type BackfillTarget, planBackfill } from '../../src/ingest/backfill/plan.ts';
import type { BackfillProgress } from '../../src/ingest/backfill/progress.ts';
import type { ChunkQueue } from '../../src/ingest/queue/chunk-queue.ts';
import type { QueueEngine } from '../../src/ingest/queue/queue-engine.ts';
import { queueNameOf } from '../../src/ingest/queue/queue-name.ts';
import { openSession, type Session, type SessionOptions } from '../../src/ingest/session.ts';
import { refreshCatalogue, refreshForAbsences } from '../../src/ingest/snapshot/coin-list.ts';
import { createQuota, GRACE_MS } from '../../src/quota/ledger.ts';
import type { Limits, Reserved } from '../../src/quota/quota.ts';
import { createSimulator, type Simulator, type SimulatorOptions } from '../../src/simulate.ts';
import type { FaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import { createRpcClient, createUpstream, sharesOrigin } from '../../src/upstream/client.ts';
import type { FetchFunction } from '../../src/upstream/wire.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { createJumpingClock, type JumpingClock } from './jumping-clock.ts';
import { openChunkQueue } from './queues.ts';

export type WorldOptions = {
  /** Virtual milliseconds per real one; default 1. */
  readonly speed?: number;
  readonly startAt?: number;
  /** How far the upstream's clock is ahead of ours. */
  readonly upstreamAheadMs?: number;
  readonly simulator?: Partial<Omit<SimulatorOptions, 'clock' | 'onError'>>;
  readonly faults?: (clock: Clock) => FaultSpec;
  readonly engine?: QueueEngine;
  readonly queueName?: string;
  readonly plan?: PlanName;
  readonly limits?: Partial<Limits>;
  readonly apiKey?: string | null;
  readonly random?: () => number;
  /** Stands between Chandler and the simulator: counts, delays, or answers instead. */
  readonly fetch?: (simulated: FetchFunction, clock: Clock) => FetchFunction;
  readonly reserved?: () => Reserved;
  /** How late a permit may be used when a rate limit binds; default: two seconds of the machine, however fast the clock runs. */
  readonly lateMs?: number;
  /** How late a permit may be used when none binds; the same default. */
  readonly graceMs?: number;
  /** The address of the JSON-RPC interface; default: none. */
  readonly rpcUrl?: string;
  /** False: `open` requests no list of coins, because the test also decides what the upstream answers to that. */
  readonly catalogue?: boolean;
};

export type Chandler = {
  readonly session: Session;
  readonly queue: ChunkQueue;
  backfill(options: {
    readonly coins: readonly string[];
    readonly interval?: BackfillTarget['interval'];
    readonly quote?: BackfillTarget['quote'];
    readonly from: number;
    readonly to: number;
    readonly concurrency?: number;
    readonly maxWaitMs?: number;
    readonly signal?: AbortSignal;
    readonly onProgress?: (progress: BackfillProgress) => void;
  }): Promise<BackfillRun & { readonly planned: number }>;
  close(): Promise<void>;
};

export type World = {
  readonly clock: JumpingClock;
  readonly database: TestDatabase;
  readonly simulator: Simulator;
  /** Opens one more Chandler on the same database, as another process would. */
  open(
    change?: Partial<
      Pick<SessionOptions, 'plan' | 'candlesPerRequest' | 'pricesPerRequest' | 'apiKey' | 'authScheme' | 'signal'>
    >,
  ): Promise<Chandler>;
  close(): Promise<void>;
};

export const NO_OWN_LIMITS: Limits = { perMonth: null, perDay: null, perSecond: null };
const BASE_URL = 'http://upstream.test/v1';

export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const speed = options.speed ?? 1;
  const clock = createJumpingClock({ speed, startAt: options.startAt ?? Date.now() });
  const database = await createTestDatabase({ max: 12 });
  const { upstreamAheadMs = 0 } = options;
  const theirs: Clock = { now: () => clock.now() + upstreamAheadMs, sleep: clock.sleep };
  const simulator = createSimulator({
    market: 'made-up',
    unlimited: true,
    ...options.simulator,
    ...(options.faults ? { faults: options.faults(clock) } : {}),
    clock: theirs,
    onError: (error) => {
      throw error;
    },
  });
  const engine = options.engine ?? { kind: 'postgres' as const, url: database.url };
  const opened: Chandler[] = [];
  return {
    clock,
    database,
    simulator,
    open: async (change = {}) => {
      const chandler = await openChandler({ ...options, speed, engine }, clock, database, simulator, change);
      opened.push(chandler);
      return chandler;
    },
    close: async () => {
      for (const chandler of opened) await chandler.close();
      await database.drop();
    },
  };
}

/**
 * A run polls its queue, which has no virtual time, several times a second. On a clock a hundred times as fast it would do nothing else, so
 * polls are at least this far apart. The end of a chunk still wakes the run.
 */
const LEAST_SLEEP_MS = 25;

function calm(clock: Clock, speed: number): Clock {
  if (speed === 1) return clock;
  const least = LEAST_SLEEP_MS * speed;
  return { now: clock.now, sleep: (ms, signal) => clock.sleep(ms > 0 ? Math.max(ms, least) : ms, signal) };
}

async function openChandler(
  options: WorldOptions & { readonly speed: number; readonly engine: QueueEngine },
  clock: JumpingClock,
  database: TestDatabase,
  simulator: Simulator,
  change: Partial<SessionOptions>,
): Promise<Chandler> {
  const { sql } = database;
  // A permit that a stall of the machine loses stays counted, and is taken again.
  const goodForMs = GRACE_MS * Math.max(1, options.speed);
  const asking = {
    baseUrl: BASE_URL,
    key: change.apiKey ?? options.apiKey ?? null,
    clock,
    fetch: options.fetch ? options.fetch(simulator.fetch, clock) : simulator.fetch,
  };
  const upstream = createUpstream(asking);
  const { rpcUrl: url } = options;
  const rpc = url === undefined ? null : { ...asking, rpcUrl: url };
  const session = await openSession({
    sql,
    clock,
    upstream,
    rpc: rpc && { client: createRpcClient(rpc), url: rpc.rpcUrl, sharesOrigin: sharesOrigin(rpc) },
    baseUrl: BASE_URL,
    apiKey: options.apiKey ?? null,
    authScheme: 'auto',
    plan: options.plan ?? 'enterprise',
    limitsOf: (plan) => ({
      ...(options.limits ? { perMonth: PLANS[plan].requestsPerMonth, perDay: null, perSecond: null } : NO_OWN_LIMITS),
      ...options.limits,
    }),
    candlesPerRequest: null,
    createQuota: ({ accountId, limits }) => {
      const quota = createQuota({
        sql,
        clock,
        accountId,
        limits,
        reserved: options.reserved ?? (() => ({ day: 0, month: 0 })),
        useDatabaseClock: false,
        random: options.random ?? Math.random,
        lateMs: options.lateMs ?? goodForMs,
        graceMs: options.graceMs ?? goodForMs,
      });
      // A late event is as many times later as the clock is faster, and the gate would delay all later ones by as much.
      return options.speed === 1 ? quota : { ...quota, gate: { ...quota.gate, opensAt: (now) => now } };
    },
    ...change,
  });
  while (options.catalogue ?? true) {
    const refresh = await refreshCatalogue({ sendRequest: session.sendRequest, sql, clock });
    if (refresh.kind !== 'held') break;
    clock.advanceTo(refresh.until + 1000);
  }
  const queue = await openChunkQueue({
    engine: options.engine,
    name: queueNameOf(options.queueName ?? 'test', { ...session, baseUrl: BASE_URL }),
    onError: () => undefined,
    backoffMs: 1_000 / options.speed,
    lockMs: 2_000,
  });
  let closed: Promise<void> | undefined;
  return {
    session,
    queue,
    backfill: async ({ coins, interval = '24h', quote = 'usd', from, to, ...run }) => {
      if (options.catalogue ?? true) await refreshForAbsences({ sendRequest: session.sendRequest, sql, clock });
      const target = { coinIds: coins, interval, quote, span: { from, to } };
      const startedAt = clock.now();
      const planned = await planBackfill({
        sql,
        target,
        now: startedAt,
        askedSince: startedAt,
        plan: session.plan,
        historyLimit: session.historyLimits.of(interval),
      });
      const result = await runBackfill(
        {
          sql,
          clock: calm(clock, options.speed),
          queue,
          ingestChunk: session.ingestChunk,
          circuitBreaker: session.circuitBreaker,
          historyLimits: session.historyLimits,
          plan: session.plan,
          owner: 'test:1',
          realMs: (ms) => ms / options.speed,
        },
        {
          target,
          spec: { coins },
          planned,
          startedAt,
          concurrency: run.concurrency ?? 4,
          maxWaitMs: run.maxWaitMs ?? Number.POSITIVE_INFINITY,
          signal: run.signal ?? new AbortController().signal,
          onProgress: run.onProgress ?? (() => undefined),
        },
      );
      return { ...result, planned: planned.cost.requests };
    },
    close: async () => {
      closed ??= queue.close().then(() => upstream.close());
      await closed;
    },
  };
}
