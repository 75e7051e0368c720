/** Counts the series for `chandler status` and the due work for the reservation, when there are so many series that no reader should wait for it. */
import type { App } from '../../app.ts';
import { asError } from '../../core/as-error.ts';
import { COMING_WORK, countComingWork } from '../../ingest/schedule/demand.ts';
import type { ComingWork } from '../../ingest/schedule/needs.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import { forgetCounted, readCounted, saveCounted } from '../../store/work/counted.ts';
import { claimTurn, releaseTurn } from '../../store/work/notice.ts';
import {
  countedEveryMs,
  countSeriesNow,
  countsSeries,
  SERIES_COUNTS,
  type SeriesCounts,
} from '../../views/operations/series-counts.ts';
import { hasManySeries } from '../../views/operations/series-filter.ts';
import type { ServiceContext } from '../service-context.ts';

const LOOK_MS = 60_000;
const COUNTS = 'the counts of series';
/** The assumed duration of the first count, which is not known yet. Meanwhile no other service counts. */
const FIRST_TOOK_MS = 10_000;

/** Runs until the service stops. One service at a time counts. */
export async function runCounting(
  { clock, signal, incidents, roles }: Pick<ServiceContext, 'clock' | 'signal' | 'incidents' | 'roles'>,
  app: App,
): Promise<void> {
  if (!countsSeries(roles)) return;
  while (!signal.aborted) {
    try {
      await countWhenDue(app);
      incidents.resolve(COUNTS);
    } catch (error) {
      // The heartbeat reports a database that is unavailable.
      if (!signal.aborted && !isDatabaseUnavailable(error)) incidents.report(COUNTS, asError(error));
    }
    await clock.sleep(LOOK_MS, signal).catch(() => undefined);
  }
}

/** Resolves to whether it counted. */
export async function countWhenDue({ clock, database: { sql } }: Pick<App, 'clock' | 'database'>): Promise<boolean> {
  if (!(await hasManySeries(sql))) {
    await forgetCounted(sql, COMING_WORK);
    return false;
  }
  const last = await readCounted<SeriesCounts>(sql, SERIES_COUNTS);
  const countedAt = clock.now();
  const turn = { name: COUNTS, everyMs: countedEveryMs(last?.tookMs ?? FIRST_TOOK_MS), now: countedAt };
  if (!(await claimTurn(sql, turn))) return false;
  try {
    // On one connection, because other work needs the rest of the pool, and in one snapshot.
    const [answer, coming] = (await sql.begin('isolation level repeatable read read only', async (tx) => [
      await countSeriesNow(tx, countedAt),
      await countComingWork(tx, countedAt),
    ])) as [SeriesCounts, ComingWork];
    const tookMs = Math.round(clock.now() - countedAt);
    await saveCounted(sql, COMING_WORK, { countedAt, tookMs, answer: coming });
    await saveCounted(sql, SERIES_COUNTS, { countedAt, tookMs, answer });
    return true;
  } catch (error) {
    // The next attempt comes sooner, but not at once, because a failed count costs as much as a successful one.
    await releaseTurn(sql, turn, Math.min(turn.everyMs, countedEveryMs(clock.now() - countedAt)));
    throw error;
  }
}
