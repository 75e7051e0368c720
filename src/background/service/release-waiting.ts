/** Releases backfills that wait for a window of the quota which has room again: the plan is larger now, or its count was corrected. */
import type { App } from '../../app.ts';
import { readQuota } from '../../budget.ts';
import type { Session } from '../../ingest/session.ts';
import type { QuotaState, SetAside } from '../../quota/quota.ts';
import { endWaits } from '../../store/work/backfill-queue.ts';

/** Why a window denies a request until it ends (`Take`). */
const WINDOW_REASONS = ['month', 'day', 'reserved', 'quota exhausted'] as const;

/** Without this they would wait until the window ends, at most a month. Resolves to the ids of the released backfills. */
export async function releaseWaiting(app: App, session: Session): Promise<readonly number[]> {
  const { state, setAside } = await readQuota(app, session);
  return hasRoom(state, setAside(state.now)) ? endWaits(app.database.sql, WINDOW_REASONS, state.now) : [];
}

/** The part of a window that must be free: each release plans anew, and the reservation shrinks step by step. */
const WORTHWHILE = 0.01;

function hasRoom(state: QuotaState, aside: SetAside): boolean {
  if (state.hold !== null) return false;
  return (['month', 'day'] as const).every((window) => {
    const { limit, spent } = state[window];
    return limit === null || limit - spent - aside[window] > limit * WORTHWHILE;
  });
}
