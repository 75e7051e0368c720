/** Judges a 403: does the upstream refuse the key, or only this request? */
import type { Clock, Instant } from '../../clock.ts';
import type { Quota } from '../../quota/quota.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import type { AccountCheck } from './account.ts';
import type { JudgeForbidden } from './send-request.ts';

/** Many requests may get a 403 at once: one request for the account serves all of them. */
const CHECK_SHARED_FOR_MS = 60_000;

export function createKeyJudge({
  clock,
  check,
  isService,
}: {
  readonly clock: Clock;
  /** Null: without a key there is no account to request. */
  readonly check: ((quota: Quota) => Promise<AccountCheck>) | null;
  /** True for a service. A command ends with a key that has never worked in it; a third request would tell nothing more. */
  readonly isService: boolean;
}): (quota: Quota) => JudgeForbidden {
  let last: { readonly at: Instant; readonly result: Promise<unknown> } | null = null;
  return (quota) => async (keySent) => {
    if (check === null || (keySent !== 'as before' && !isService)) return;
    if (last === null || Math.abs(clock.now() - last.at) > CHECK_SHARED_FOR_MS)
      last = { at: clock.now(), result: check(quota) };
    await last.result.catch((error: unknown) => {
      // The caller waits for the database and then calls again.
      if (isDatabaseUnavailable(error)) last = null;
      throw error;
    });
  };
}
