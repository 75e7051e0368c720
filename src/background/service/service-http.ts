/** The HTTP interface of the service: health, metrics and the progress of its backfills, besides the market data. */
import pLimit from 'p-limit';
import type { App } from '../../app.ts';
import { readBudget, readQuota } from '../../budget.ts';
import { type Clock, type Instant, stopwatch, systemClock } from '../../clock.ts';
import type { Handler } from '../../contract/interface/handler.ts';
import { asError } from '../../core/as-error.ts';
import { withDeadline } from '../../core/concurrency/unless-aborted.ts';
import type { Ingestion } from '../../ingestion.ts';
import type { Listening } from '../../service/http/listen.ts';
import { type BackfillsQuery, createOperations, DEFAULT_BACKFILLS, MAX_BACKFILLS } from '../../service/operations.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import { backfillAsJson, readBackfills } from '../../views/backfills/backfills.ts';
import { readGauges } from '../../views/operations/gauges.ts';
import { createNewestAttestation } from '../attestation/daily-attestation.ts';
import type { OpenDashboard } from '../dashboard/open-dashboard.ts';
import { databaseError } from '../health/availability.ts';
import { readDisks } from '../health/disk.ts';
import type { MetricInputs } from '../health/metrics.ts';
import { DATABASE, healthOf, isReady } from '../health/service-status.ts';
import { listenToAll, requestFailures } from '../http/market-http.ts';
import type { ServiceContext } from '../service-context.ts';

/** Prometheus gives up after ten seconds. When the database does not answer, Prometheus must still get the metrics of this process. */
const READ_MS = 5_000;
const LATE = new Error(`not read within ${READ_MS / 1000} s`);

export async function openHttp(context: ServiceContext): Promise<Listening> {
  const { config, status, incidents, clock, metrics, served, failed } = context;
  const onError = requestFailures(failed);
  // These paths are public and need no key.
  const inputs = sharedRead(clock, () => readInputs(context));
  const progress = sharedRead(clock, (which: BackfillsQuery, waitedMs) => readProgress(context, which, waitedMs));
  const operations = createOperations({
    health: () => ({ isReady: isReady(status, incidents), body: { ...healthOf(status, incidents, clock.now()) } }),
    attestation: config.attest === null ? null : createNewestAttestation(config.attest.dir, clock),
    metrics: async () => {
      const own = await metrics.text(async () => ({
        ...(await inputs(null)),
        states: context.open.states,
        incidents: incidents.open().map(({ what }) => what),
        isReady: isReady(status, incidents),
      }));
      return { ...own, text: `${own.text}\n${await served.registry.metrics()}` };
    },
    backfills: async (which) => {
      // Only two limits are read, so that callers with different limits do not cause many separate reads.
      const limit = which.limit <= DEFAULT_BACKFILLS ? DEFAULT_BACKFILLS : MAX_BACKFILLS;
      return (await progress({ ...which, limit }))?.slice(0, which.limit) ?? null;
    },
    onError,
  });
  const market = () => context.open.market?.handler ?? null;
  const paths = '/health, /ready, /metrics and /backfills';
  const dashboard = dashboardOf(context, onError);
  const all = { operations, dashboard: dashboard.handler, market, metrics: served };
  const server = await listenToAll(all, context, paths, onError);
  return {
    url: server.url,
    close: async (graceMs) => {
      await server.close(graceMs);
      await dashboard.close();
    },
  };
}

/** Opens the dashboard for the first page request, because most services never show a page. */
function dashboardOf({ open }: ServiceContext, onError: (error: unknown, url: string) => void) {
  let opened: { readonly app: App; readonly handler: Promise<OpenDashboard> } | null = null;
  const handler = (): Handler | null => {
    const { app } = open;
    if (app === null) return null;
    if (opened?.app !== app) {
      const handler = import('../dashboard/open-dashboard.ts').then(({ openDashboard }) =>
        openDashboard({
          ...{ app, states: () => open.states, onError },
          hasDocs: app.config.operationsListen === null,
        }),
      );
      opened = { app, handler };
      // The next request tries again.
      handler.catch(() => {
        if (opened?.handler === handler) opened = null;
      });
    }
    const mine = opened.handler;
    return async (request, peer) => (await mine)(request, peer);
  };
  return { handler, close: async () => (await opened?.handler)?.close() };
}

/** Null when the database does not answer in time; `waitedMs` of this time are already over. */
async function readProgress(
  { open: { app }, incidents, clock }: ServiceContext,
  which: BackfillsQuery,
  waitedMs: number,
) {
  if (app === null || waitedMs >= READ_MS) return null;
  try {
    const reading = readBackfills(app.database.sql, { ...which, now: clock.now() });
    return (await inTime(reading, READ_MS - waitedMs)).map(backfillAsJson);
  } catch (error) {
    if (error === LATE) return null;
    if (!isDatabaseUnavailable(error)) throw error;
    incidents.report(DATABASE, databaseError(error, app));
    return null;
  }
}

/** The inputs that this process knows without reading. */
type OwnInput = 'isReady' | 'states' | 'incidents';

/** Reads each input separately: one that cannot be read now is null, and affects neither the others nor the counters of this process. */
async function readInputs({
  open: { app, ingestion },
  clock,
  config,
  incidents,
}: ServiceContext): Promise<Omit<MetricInputs, OwnInput>> {
  const disks = await readDisks(config);
  if (app === null) return { warehouse: null, ledger: null, queued: null, disks };
  const now = clock.now();
  const failed: Error[] = [];
  const orNull = <T>(reading: Promise<T>) =>
    inTime(reading).catch((error: unknown) => {
      failed.push(asError(error));
      return null;
    });
  const [warehouse, ledger, queued] = await Promise.all([
    orNull(readGauges(app.database.sql, now)),
    orNull(readLedger(app, ingestion, now)),
    ingestion && orNull(readQueued(ingestion)),
  ]);
  if (failed[0] === undefined) incidents.resolve('the metrics');
  else incidents.report('the metrics', failed[0]);
  return { warehouse, ledger, queued, disks };
}

/** Reads from the database, so that a service of any role can report it. Null while the account's plan is unknown. */
async function readLedger(app: App, ingestion: Ingestion | null, now: Instant): Promise<MetricInputs['ledger']> {
  if (ingestion === null) {
    const { planSource, quota, reserved } = await readBudget(app);
    return planSource === 'assumed' ? null : { quota: await quota.state(), reserved: reserved(now) };
  }
  const { state, reserved } = await readQuota(app, ingestion.session);
  return { quota: state, reserved: reserved(now) };
}

async function readQueued(ingestion: Ingestion): Promise<MetricInputs['queued']> {
  const [backfill, freshness] = await Promise.all(
    [ingestion.queue(), ingestion.freshQueue()].map(async (queue) => (await queue).size()),
  );
  return { backfill: backfill!, freshness: freshness! };
}

/** Uses the machine's clock, because a client waits for the response. */
function inTime<T>(reading: Promise<T>, ms = READ_MS): Promise<T> {
  return withDeadline(systemClock, { ms, late: LATE }, () => reading);
}

const KEPT_MS = 1_000;

type Reading<T> = { endedAt: Instant | null; readonly value: Promise<T> };

/**
 * Public reads cost the database the same, no matter how many clients send requests: one read at a time. All callers with the same argument
 * (compared as JSON) share its result for a second. `read` gets to know how long the caller has waited for its turn.
 */
function sharedRead<A, T>(
  clock: Clock,
  read: (argument: A, waitedMs: number) => Promise<T>,
): (argument: A) => Promise<T> {
  const oneAtATime = pLimit(1);
  const readings = new Map<string, Reading<T>>();
  const isOver = ({ endedAt }: Reading<T>, now: Instant) =>
    endedAt !== null && (now < endedAt || now - endedAt >= KEPT_MS);
  return (argument) => {
    for (const [key, reading] of readings) if (isOver(reading, clock.now())) readings.delete(key);
    const key = JSON.stringify(argument);
    const known = readings.get(key);
    if (known !== undefined) return known.value;
    const askedAt = stopwatch();
    const value = oneAtATime(() => read(argument, stopwatch() - askedAt)).finally(() => {
      reading.endedAt = clock.now();
    });
    const reading: Reading<T> = { endedAt: null, value };
    readings.set(key, reading);
    return value;
  };
}
