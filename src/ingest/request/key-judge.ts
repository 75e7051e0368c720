/** Judges a 403: does the upstream refuse the key, or only this request? */
import type { Quota } from '../../quota/quota.ts';
import type { AccountCheck } from './account.ts';
import type { JudgeForbidden } from './send-request.ts';

export function createKeyJudge({
  check,
  isService,
}: {
  /** Null: without a key there is no account to request. */
  readonly check: ((quota: Quota) => Promise<AccountCheck>) | null;
  /** True for a service. A command ends with a key that has never worked in it; a third request would tell nothing more. */
  readonly isService: boolean;
}): (quota: Quota) => JudgeForbidden {
  return (quota) => async (keySent) => {
    if (check === null || (keySent !== 'as before' && !isService)) return;
    await check(quota);
  };
}
