/** Judges a 403: is the key refused, or only what was asked for? */
import type { Clock, Instant } from '../../clock.ts';
import type { Quota } from '../../quota/quota.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import type { AccountCheck } from './account.ts';
import type { JudgeForbidden } from './send-request.ts';

/** Many requests may be answered 403 at once: the account is requested once for all of them. */
const CHECK_SHARED_FOR_MS = 60_000;

export function createKeyJudge({
  clock,
  check,
  isLasting,
}: {
  readonly clock: Clock;
  /** Null: there is no key, and so no account to ask. */
  readonly check: ((quota: Quota) => Promise<AccountCheck>) | null;
  /** Of a service. A command ends with a key that has never worked in it; a third request would tell nothing more. */
  readonly isLasting: boolean;
}): (quota: Quota) => JudgeForbidden {
  let last: { readonly at: Instant; readonly result: Promise<unknown> } | null = null;
  return (quota) => async (keySent) => {
    if (check === null || (keySent !== 'as before' && !isLasting)) return;
    if (last === null || Math.abs(clock.now() - last.at) > CHECK_SHARED_FOR_MS)
      last = { at: clock.now(), result: check(quota) };
    await last.result.catch((error: unknown) => {
      // Who waits for the database asks again.
      if (isDatabaseUnavailable(error)) last = null;
      throw error;
    });
  };
}
