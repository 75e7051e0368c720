/** What a session checks every few seconds: the account's plan, learned limits, chunks that the queue lost, and ETAs of backfills. */
import type { App } from '../../app.ts';
import { readQuota } from '../../budget.ts';
import { standingRefusal } from '../../ingest/request/account.ts';
import type { Session } from '../../ingest/session.ts';
import type { KeepFresh } from '../../ingest/tracking/keep-fresh.ts';
import type { QuotaState, Reserved } from '../../quota/quota.ts';
import { endWaits } from '../../store/backfill/backfill-queue.ts';
import { readAccount } from '../../store/quota/account.ts';
import { reportFailure } from '../health/availability.ts';
import { QUEUE } from '../health/service-status.ts';
import type { SessionContext } from '../service-context.ts';
import { saveQueuedEtas } from './backfill-eta.ts';

const UPKEEP_MS = 10_000;
/** The upkeep forecasts the ETAs of queued backfills once in so many rounds. */
const FORECAST_ROUNDS = 3;

/** Why a session ends and a new one begins. */
type Renewal = 'other plan' | 'key refused';

/** Runs until the session ends. Calls `renew` and resolves when the account has another plan, or its key is refused. */
export async function runUpkeep(
  context: SessionContext,
  freshness: Pick<KeepFresh, 'recover'>,
  renew: (why: Renewal) => void,
): Promise<void> {
  const { clock, incidents, log, config, app, ingestion, ending } = context;
  const { session } = ingestion;
  for (let round = 0; !ending.aborted; round++) {
    // Before the first wait as well, so that a new backfill has its ETA at once.
    if (round % FORECAST_ROUNDS === 0) await forecast(context);
    await clock.sleep(UPKEEP_MS, ending).catch(() => undefined);
    if (ending.aborted) return;
    try {
      const saved = config.plan === null ? await readAccount(app.database.sql, session.accountId) : null;
      if (saved !== null && saved.plan !== session.plan.name) {
        log.info({ from: session.plan.name, to: saved.plan }, `the account's plan is now ${saved.plan}`);
        return renew('other plan');
      }
      const key = { id: session.accountId, sentAs: config.authScheme };
      // A new session waits until the upstream accepts the key, and reports that.
      if ((await standingRefusal(app.database.sql, key)) !== null) return renew('key refused');
      await session.historyLimits.reload();
      const lost = await freshness.recover();
      if (lost > 0) log.warn({ chunks: lost }, 'the queue lost chunks; Chandler queued them again');
      // Until here it was perhaps only read.
      await (await ingestion.freshQueue()).checkWritable();
      for (const what of ['the upkeep', 'the scheduler', 'the backfills', QUEUE]) incidents.resolve(what);
    } catch (error) {
      reportFailure(context, 'the upkeep', error);
    }
  }
}

async function forecast(context: SessionContext): Promise<void> {
  const { incidents, log, app } = context;
  const { session } = context.ingestion;
  try {
    for (const id of await releaseWaiting(app, session))
      log.info({ backfill: id }, `backfill ${id} is released: the quota has room again`);
    await saveQueuedEtas(context, session);
    incidents.resolve('the forecasts');
  } catch (error) {
    // Reported here as well: the heartbeat, which resolves it, may still be waiting for a connection.
    reportFailure(context, 'the forecasts', error);
  }
}

/** The reasons (`Take`) for which a window denies a request until it ends. */
const WINDOW_REASONS = ['month', 'day', 'reserved', 'quota exhausted'] as const;

/**
 * Releases backfills that wait for the end of a window which has room again, because the plan is larger now or its count was corrected.
 * Resolves to their ids.
 */
async function releaseWaiting(app: App, session: Session): Promise<readonly number[]> {
  const { state, reserved } = await readQuota(app, session);
  return hasRoom(state, reserved(state.now)) ? endWaits(app.database.sql, WINDOW_REASONS, state.now) : [];
}

/** Backfills are released only when this share of a window is free: each release plans anew, and the reservation shrinks in many small steps. */
const WORTHWHILE = 0.01;

function hasRoom(state: QuotaState, reserved: Reserved): boolean {
  if (state.hold !== null) return false;
  return (['month', 'day'] as const).every((window) => {
    const { limit, spent } = state[window];
    return limit === null || limit - spent - reserved[window] > limit * WORTHWHILE;
  });
}
