/** Everything that sends requests to the upstream, assembled from the configuration. */
import type { App } from './app.ts';
import { checkSchedules, quotaOf } from './budget.ts';
import { effectiveLimits } from './config.ts';
import type { ChunkQueue, QueueHost, QueueOptions } from './ingest/queue/chunk-queue.ts';
import { isLostLock } from './ingest/queue/lost-lock.ts';
import { queueNameOf } from './ingest/queue/queue-name.ts';
import { isRedisUnavailable } from './ingest/queue/redis.ts';
import type { TickQueue } from './ingest/queue/tick-queue.ts';
import { openSession, type Session, type SessionOptions } from './ingest/session.ts';
import { createFailureLog } from './log.ts';
import { isDatabaseUnavailable } from './store/connection/database-unavailable.ts';
import { readInstallationId } from './store/work/installation.ts';
import { createRpcClient, createUpstream, sharesOrigin } from './upstream/client.ts';

export type Ingestion = {
  readonly session: Session;
  /** Opens the queue on first use, because planning needs none. */
  queue(): Promise<ChunkQueue>;
  /** The queue for the newest candles of tracked series. It is separate, so that no backfill delays them. */
  freshQueue(): Promise<ChunkQueue>;
  /** The queue of schedule ticks, on the same engine. The caller must close it before closing the ingestion. */
  openTicks(): Promise<TickQueue>;
  close(): Promise<void>;
};

type IngestionOptions = {
  readonly signal?: AbortSignal;
  /** Opens the queue first, so that Chandler reports an unavailable queue before it sends any request. */
  readonly withQueue?: boolean;
  /** The same as the session's option: while the plan is unknown, opening rejects with `AccountUnknown`. */
  readonly waitsForPlan?: boolean;
  /** The same as the session's option. */
  readonly ignoresKeyRefusal?: boolean;
  /** For a service with a scheduler: its schedules must fit the plan. All other callers run no schedules. */
  readonly runsSchedules?: boolean;
  /** Called for each request, for metrics. */
  readonly onRequest?: SessionOptions['onRequest'];
};

/**
 * @throws AccountUnknown when the plan is unknown, ConfigurationError when the key is refused or when the schedules that it runs exceed the
 * plan, StoreError when the database or the queue cannot be used
 */
export async function openIngestion(app: App, options: IngestionOptions = {}): Promise<Ingestion> {
  const { config, clock, database } = app;
  const { fetch } = app.overrides;
  const { baseUrl, rpcUrl, apiKey } = config;
  const connection = { baseUrl, key: apiKey, clock, ...(fetch === undefined ? {} : { fetch }) };
  const upstream = createUpstream(connection);
  const rpc =
    rpcUrl === null
      ? null
      : {
          client: createRpcClient({ ...connection, rpcUrl }),
          url: rpcUrl,
          sharesOrigin: sharesOrigin({ rpcUrl, baseUrl }),
        };
  const closing = new AbortController();
  let host: Promise<QueueHost> | undefined;
  const openHost = () => {
    // Loaded on first use: the queue is a third of the code to load.
    host ??= import('./ingest/queue/chunk-queue.ts').then(({ openQueueHost }) =>
      openQueueHost({ ...engineOf(app, closing.signal), onWarning: (found, fix) => app.log.warn(`${found}; ${fix}`) }),
    );
    return host;
  };
  const opened = new Map<'chunks' | 'fresh', Promise<ChunkQueue>>();
  const close = async () => {
    // The failure to open has already been reported, and an unavailable queue cannot be closed.
    const atDebug = (error: unknown) => app.log.debug({ err: error }, 'could not close the queue');
    for (const queue of opened.values()) await queue.then((open) => open.close()).catch(atDebug);
    await host?.then((host) => host.close()).catch(atDebug);
    closing.abort();
    await Promise.all([upstream.close(), rpc?.client.close()]);
  };
  try {
    const { runsSchedules = false } = options;
    if (runsSchedules && config.plan !== null) checkSchedules(config, config.plan, clock.now());
    if (options.withQueue) await openHost();
    const session = await openSession({
      sql: database.sql,
      clock,
      upstream,
      rpc,
      baseUrl,
      apiKey,
      authScheme: config.authScheme,
      plan: config.plan,
      limitsOf: (plan) => effectiveLimits(plan, config),
      candlesPerRequest: config.candlesPerRequest,
      createQuota: (account) => quotaOf(app, account),
      signal: options.signal,
      waitsForPlan: options.waitsForPlan ?? false,
      ignoresKeyRefusal: options.ignoresKeyRefusal ?? false,
      ...(options.onRequest ? { onRequest: options.onRequest } : {}),
    });
    // An assumed plan may be wrong, so Chandler refuses no schedules because of it.
    if (runsSchedules && session.planSource === 'account') checkSchedules(config, session.plan.name, clock.now());
    const { accountId, plan } = session;
    const nameOf = async (kind: 'chunks' | 'fresh' | 'ticks') =>
      queueNameOf(await readInstallationId(database.sql), { accountId, baseUrl: config.baseUrl, plan }, kind);
    const openTicks = async () => (await openHost()).openTicks(await nameOf('ticks'));
    const open = (kind: 'chunks' | 'fresh') => {
      const queue = opened.get(kind) ?? openHost().then(async (host) => host.open(await nameOf(kind)));
      opened.set(kind, queue);
      return queue;
    };
    return { session, queue: () => open('chunks'), freshQueue: () => open('fresh'), openTicks, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens the ingestion, calls `use`, and always closes the ingestion. @throws the same errors as `openIngestion` */
export async function withIngestion<T>(
  app: App,
  options: IngestionOptions,
  use: (ingestion: Ingestion) => Promise<T>,
): Promise<T> {
  const ingestion = await openIngestion(app, options);
  try {
    return await use(ingestion);
  } finally {
    await ingestion.close();
  }
}

/** The SQLSTATE of a deadlock. */
const DEADLOCK_DETECTED = '40P01';

/** `signal` ends the count of failures. */
function engineOf(app: App, signal: AbortSignal): Pick<QueueOptions, 'engine' | 'onError' | 'backoffMs' | 'lockMs'> {
  const { clock, database, log, overrides } = app;
  const { redisUrl } = app.config;
  const engine =
    redisUrl === null
      ? ({ kind: 'postgres', url: database.url, watchdog: database.watchdog } as const)
      : ({ kind: 'redis', url: redisUrl } as const);
  // The run itself reports an unavailable database or Redis. Two statements of BullMQ can deadlock: one renews locks, the other looks for
  // stalled jobs. Postgres cancels one of them, and BullMQ repeats it.
  const isUnavailable = redisUrl === null ? isDatabaseUnavailable : isRedisUnavailable;
  const isHarmless = (error: Error) =>
    isUnavailable(error) || (error as { code?: unknown }).code === DEADLOCK_DETECTED || isLostLock(error);
  // A server that refuses sessions causes the same error many times a second.
  const failed = createFailureLog(log, clock, signal);
  const onError = (error: Error) => {
    if (isHarmless(error)) log.debug({ err: error }, 'queue');
    else failed({ level: 'warn', message: 'queue failed', cause: error.message, name: engine.kind, error });
  };
  return { engine, onError, ...overrides.queue };
}
