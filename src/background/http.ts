/** The HTTP side of the service: how it is, its figures, and how far its backfills are. */
import { readDemand, schedulesOf, setAsideOf } from '../budget.ts';
import { systemClock } from '../clock.ts';
import type { Listening } from '../service/listen.ts';
import { type BackfillsAsked, createOperations, MOST_BACKFILLS, USUAL_BACKFILLS } from '../service/operations.ts';
import { isDatabaseAway } from '../store/database-away.ts';
import { explainDatabaseError } from '../store/store-error.ts';
import { backfillAsJson, readBackfills } from '../views/backfills.ts';
import { readFigures } from '../views/figures.ts';
import type { Standing } from './metrics.ts';
import type { Parts } from './parts.ts';
import { listenToAll, pathOf } from './serving.ts';
import { sharedReading } from './shared-reading.ts';
import { DATABASE, healthOf, isReady } from './status.ts';
import { asError } from './troubles.ts';

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

/** Of what cannot be read now nothing is said: the counters of this process are worth having all the same. */
async function readStanding(parts: Parts): Promise<Omit<Standing, 'isReady'>> {
  const { clock, troubles } = parts;
  const { app, ingestion } = parts.open;
  const nothing = { figures: null, quota: null, setAside: null, queued: {} };
  if (app === null) return nothing;
  const read = async () => {
    const figures = await readFigures(app.database.sql, clock.now());
    if (ingestion === null) return { ...nothing, figures };
    const { session } = ingestion;
    const [quota, demand, chunks, fresh] = await Promise.all([
      session.quota.state(),
      readDemand(app.database.sql),
      ingestion.queue().then((queue) => queue.size()),
      ingestion.freshQueue().then((queue) => queue.size()),
    ]);
    const setAside = setAsideOf(schedulesOf(app.config, session.plan.name, session.limits, demand))(clock.now());
    return { figures, quota, setAside, queued: { backfill: chunks, freshness: fresh } };
  };
  try {
    const standing = await inTime(read());
    troubles.over('the figures');
    return standing;
  } catch (error) {
    troubles.met('the figures', asError(error));
    return nothing;
  }
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
