/** One backfill as its page shows it, with the same facts as `chandler backfills show`. */
import type { App } from '../../app.ts';
import type { Budget } from '../../budget.ts';
import type { BackfillReport } from '../../dashboard/parts/reports.ts';
import { standingRefusal } from '../../ingest/request/account.ts';
import { readBackfillDetails } from '../../views/backfills/backfill-details.ts';
import { readHeldLock } from '../../views/operations/blocking-sessions.ts';
import { explainAccountWait, explainBackfillWait } from '../operator/wait-explanation.ts';
import { waitingFor } from '../operator/wait-reasons.ts';

/** Null when no backfill has this number. */
export async function readBackfillReport(app: App, id: number, budget: Budget): Promise<BackfillReport | null> {
  const now = app.clock.now();
  const { sql } = app.database;
  const lock = await readHeldLock(sql, now);
  const details = await readBackfillDetails(sql, id, now);
  if (details === null) return null;
  const state = await budget.quota.state();
  const refusal = await standingRefusal(sql, { id: budget.accountId, sentAs: app.config.authScheme });
  return {
    details,
    reasons: explainBackfillWait(details, { account: explainAccountWait({ state, budget, refusal }), lock, now }),
    waits: (details.chunks?.waits ?? []).map(({ reason }) => waitingFor(reason)),
  };
}
