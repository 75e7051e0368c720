/** Backfills that wait for a window of the quota although it has room again: the account has a larger plan, or its count was set right. */
import type { App } from '../../app.ts';
import { readQuota } from '../../budget.ts';
import type { Session } from '../../ingest/session.ts';
import type { QuotaState, SetAside } from '../../quota/quota.ts';
import { endWaits } from '../../store/work/backfill-queue.ts';

/** Why a window lets nobody through until it ends (`Take`). */
const WINDOW_REASONS = ['month', 'day', 'set aside', 'spent'] as const;

/** Until now they would have waited for the window's end, a month at most. Resolves to those that need not wait any more. */
export async function endNeedlessWaits(app: App, session: Session): Promise<readonly number[]> {
  const { state, setAside } = await readQuota(app, session);
  return hasRoom(state, setAside(state.now)) ? endWaits(app.database.sql, WINDOW_REASONS, state.now) : [];
}

/** Of a window, so much is worth going on for: it is planned anew each time, and what is set aside shrinks by and by. */
const WORTHWHILE = 0.01;

function hasRoom(state: QuotaState, aside: SetAside): boolean {
  if (state.hold !== null) return false;
  return (['month', 'day'] as const).every((window) => {
    const { limit, spent } = state[window];
    return limit === null || limit - spent - aside[window] > limit * WORTHWHILE;
  });
}
