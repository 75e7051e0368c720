/** Counts the series for `chandler status`, and what is due for the reservation, where there are so many that nobody should wait for it. */
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
/** How long the first count takes is not known: meanwhile no other service counts. */
const FIRST_TOOK_MS = 10_000;

/** Until the service stops; of all services one counts at a time. */
export async function keepCounting(
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
    // On one connection, because others need the rest of them; and of one moment.
    const [answer, coming] = (await sql.begin('isolation level repeatable read read only', async (tx) => [
      await countSeriesNow(tx, countedAt),
      await countComingWork(tx, countedAt),
    ])) as [SeriesCounts, ComingWork];
    const tookMs = Math.round(clock.now() - countedAt);
    await saveCounted(sql, COMING_WORK, { countedAt, tookMs, answer: coming });
    await saveCounted(sql, SERIES_COUNTS, { countedAt, tookMs, answer });
    return true;
  } catch (error) {
    // Counted again sooner, but not at once: a count that fails costs as much as one that does not.
    await releaseTurn(sql, turn, Math.min(turn.everyMs, countedEveryMs(clock.now() - countedAt)));
    throw error;
  }
}
