/** Judges a 402 that names no history limit: is the quota exhausted, or does the plan not include what was requested? */
import type { Clock, Instant } from '../../clock.ts';
import type { Quota, QuotaState } from '../../quota/quota.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import type { AccountCheck } from './account.ts';
import type { JudgeQuotaExhausted } from './send-request.ts';

/** Many requests may be answered 402 at once: the account is requested once for all of them. */
const CHECK_SHARED_FOR_MS = 60_000;
/** What `plan_status` says of an account that is not served, whatever its plan and its count are. */
const LAPSED = /^(past_due|inactive)$/i;

export function createQuotaJudge({
  clock,
  check,
  signal,
}: {
  readonly clock: Clock;
  /** Null: without a key there is no account to ask. */
  readonly check: ((quota: Quota) => Promise<AccountCheck>) | null;
  readonly signal?: AbortSignal | undefined;
}): (quota: Quota) => JudgeQuotaExhausted {
  let last: { readonly at: Instant; readonly result: Promise<AccountCheck> } | null = null;
  const checkOnce = (quota: Quota): Promise<AccountCheck> | null => {
    if (check === null) return null;
    if (last !== null && clock.now() - last.at <= CHECK_SHARED_FOR_MS) return last.result;
    const result = check(quota).catch((error: unknown): AccountCheck => {
      if (isDatabaseUnavailable(error)) {
        last = null;
        throw error;
      }
      return { kind: 'unknown' };
    });
    last = { at: clock.now(), result };
    return result;
  };
  return (quota) =>
    async ({ exchange, message }, beyondPlan) => {
      let why = message;
      // Unless the account says that the month is exhausted, the wait until the next day is long enough.
      let window: 'month' | 'day' = 'day';
      const checked = await checkOnce(quota);
      if (checked?.kind === 'known') {
        if (checked.info.usage.current_month.requests_left === 0) window = 'month';
        else {
          const status = checked.info.plan_status;
          if (status === null || !LAPSED.test(status)) return 'budget left';
          // The upstream answers nothing until somebody pays, however many requests are left.
          why = `${message} (the plan of the account is ${status.replace('_', ' ')})`;
        }
      } else {
        if (checked !== null && signal?.aborted) return 'unknown';
        if (!looksExhausted(message, beyondPlan, await quota.state())) return 'budget left';
      }
      await quota.exhausted({ sentAt: exchange.sentAt, window, message: why });
      return 'exhausted';
    };
}

/** The upstream's text for an exhausted quota is unknown (decision 30). */
const SAYS_EXHAUSTED =
  /\b(quota|(request|rate|usage|call|api) limit|limits? (was |were |is |are |has been |have been )?(reached|exceeded)|too many requests|exhausted|used up)\b/i;
/** Upstream's own command reads a 402 as "rate limit reached, or this endpoint requires a paid plan": such a text says neither. */
const SAYS_NOT_IN_PLAN = /\b(requires?|paid)\b/i;
/** Other programs may send requests from the same address: the upstream may have counted a little more than the ledger. */
const NEAR = 0.9;

/**
 * Without an account to ask, the text and the ledger decide: a plan's limit that is taken for an exhausted quota would stop all work.
 * `beyondPlan`: by its documents, the plan does not include what was requested; that explains the 402 as well.
 */
export function looksExhausted(
  message: string,
  beyondPlan: boolean,
  { month, day }: Pick<QuotaState, 'month' | 'day'>,
): boolean {
  if (SAYS_EXHAUSTED.test(message) && !SAYS_NOT_IN_PLAN.test(message)) return true;
  if (beyondPlan) return false;
  return [month, day].some(({ spent, limit }) => limit !== null && spent >= limit * NEAR);
}
