/** The HTTP side of the service: how it is, its figures, and how far its backfills are. */
import type { App } from '../../app.ts';
import { readBudget, readQuota } from '../../budget.ts';
import { type Instant, systemClock } from '../../clock.ts';
import type { Ingestion } from '../../ingestion.ts';
import type { Listening } from '../../service/http/listen.ts';
import { type BackfillsAsked, createOperations, MOST_BACKFILLS, USUAL_BACKFILLS } from '../../service/operations.ts';
import { isDatabaseAway } from '../../store/connection/database-unavailable.ts';
import { explainDatabaseError } from '../../store/connection/store-error.ts';
import { backfillAsJson, readBackfills } from '../../views/operations/backfills.ts';
import { readFigures } from '../../views/operations/gauges.ts';
import { asError } from '../health/incidents.ts';
import type { Standing } from '../health/metrics.ts';
import { DATABASE, healthOf, isReady } from '../health/service-status.ts';
import { listenToAll, pathOf } from '../http/market-http.ts';
import type { Parts } from './service-context.ts';
import { sharedReading } from './shared-read.ts';

/** Whoever gathers figures gives up after ten seconds: a database that is silent must not cost him those of this process. */
const READ_MS = 5_000;
const LATE = new Error(`not read within ${READ_MS / 1000} s`);

export async function openHttp(parts: Parts): Promise<Listening> {
  const { config, status, troubles, clock, log, metrics, served } = parts;
  const onError = (error: unknown, url: string) =>
    log.error({ err: error, path: pathOf(url) }, 'a request could not be answered');
  // Nobody has to say who he is to ask for these.
  const standing = sharedReading(clock, () => readStanding(parts));
  const progress = sharedReading(clock, (which: BackfillsAsked) => readProgress(parts, which));
  const operations = createOperations({
    health: () => ({ isReady: isReady(status, troubles), body: { ...healthOf(status, troubles, clock.now()) } }),
    metrics: async () => {
      const own = await metrics.text(async () => ({ ...(await standing(null)), isReady: isReady(status, troubles) }));
      return { ...own, text: `${own.text}\n${await served.registry.metrics()}` };
    },
    backfills: async (which) => {
      // Of two lengths only: whoever asks for another one has no reading of his own.
      const limit = which.limit <= USUAL_BACKFILLS ? USUAL_BACKFILLS : MOST_BACKFILLS;
      return (await progress({ ...which, limit }))?.slice(0, which.limit) ?? null;
    },
    onError,
  });
  const market = () => parts.open.market?.handler ?? null;
  return listenToAll({ operations, market, metrics: served }, { config, onError });
}

async function readProgress({ open: { app }, troubles }: Parts, which: BackfillsAsked) {
  if (app === null) return null;
  try {
    return (await inTime(readBackfills(app.database.sql, which))).map(backfillAsJson);
  } catch (error) {
    if (error === LATE) return null;
    if (!isDatabaseAway(error)) throw error;
    troubles.met(DATABASE, explainDatabaseError(error, app.database.url) ?? asError(error));
    return null;
  }
}

/**
 * Each part by itself: of what cannot be read now nothing is said, and neither the other parts nor the counters of this process are
 * worth less for it.
 */
async function readStanding({ open: { app, ingestion }, clock, troubles }: Parts): Promise<Omit<Standing, 'isReady'>> {
  const now = clock.now();
  const failed: Error[] = [];
  const orNull = <T>(reading: Promise<T>) =>
    inTime(reading).catch((error: unknown) => {
      failed.push(asError(error));
      return null;
    });
  if (app === null) return { figures: null, ledger: null, queued: null };
  const [figures, ledger, queued] = await Promise.all([
    orNull(readFigures(app.database.sql, now)),
    orNull(readLedger(app, ingestion, now)),
    ingestion && orNull(readQueued(ingestion)),
  ]);
  if (failed[0] === undefined) troubles.over('the figures');
  else troubles.met('the figures', failed[0]);
  return { figures, ledger, queued };
}

/** The database has it, whoever asks the upstream; null as long as nobody knows which plan the account has. */
async function readLedger(app: App, ingestion: Ingestion | null, now: Instant): Promise<Standing['ledger']> {
  if (ingestion === null) {
    const { planSource, quota, setAside } = await readBudget(app);
    return planSource === 'assumed' ? null : { quota: await quota.state(), setAside: setAside(now) };
  }
  const { state, setAside } = await readQuota(app, ingestion.session);
  return { quota: state, setAside: setAside(now) };
}

async function readQueued(ingestion: Ingestion): Promise<Standing['queued']> {
  const [backfill, freshness] = await Promise.all(
    [ingestion.queue(), ingestion.freshQueue()].map(async (queue) => (await queue).size()),
  );
  return { backfill: backfill!, freshness: freshness! };
}

/** By the machine's time: it is for those who wait for the answer. */
async function inTime<T>(reading: Promise<T>): Promise<T> {
  const ended = new AbortController();
  const late = systemClock.sleep(READ_MS, ended.signal).then(() => {
    throw LATE;
  });
  try {
    return await Promise.race([reading, late]);
  } finally {
    late.catch(() => undefined);
    ended.abort();
  }
}
