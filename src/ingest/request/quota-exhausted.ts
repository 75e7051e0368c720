/** Judges a 402 that names no history limit: is the quota exhausted, or does the plan not include what was requested? */
import type { Quota, QuotaState } from '../../quota/quota.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import type { AccountCheck } from './account.ts';
import type { JudgeQuotaExhausted } from './send-request.ts';

/** Values of `plan_status` for an account that the upstream does not serve, whatever its plan and its count are. */
const LAPSED = /^(past_due|inactive)$/i;

export function createQuotaJudge({
  check,
  signal,
}: {
  /** Null: without a key there is no account to request. */
  readonly check: ((quota: Quota) => Promise<AccountCheck>) | null;
  readonly signal?: AbortSignal | undefined;
}): (quota: Quota) => JudgeQuotaExhausted {
  return (quota) =>
    async ({ exchange, message }, beyondPlan) => {
      let why = message;
      // Unless the account says that the month is exhausted, it is enough to wait until the next day.
      let window: 'month' | 'day' = 'day';
      const checked = check === null ? null : await check(quota).catch(unlessItMustBeRepeated);
      if (checked?.kind === 'known') {
        if (checked.info.usage.current_month.requests_left === 0) window = 'month';
        else {
          const status = checked.info.plan_status;
          if (status === null || !LAPSED.test(status)) return 'budget left';
          // The upstream answers nothing until somebody pays, no matter how many requests are left.
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

/** The caller waits for the database and then judges again. After any other error, the account is unknown. */
function unlessItMustBeRepeated(error: unknown): AccountCheck {
  if (isDatabaseUnavailable(error)) throw error;
  return { kind: 'unknown' };
}

/** The upstream's text for an exhausted quota is unknown (decision 30). */
const SAYS_EXHAUSTED =
  /\b(quota|(request|rate|usage|call|api) limit|limits? (was |were |is |are |has been |have been )?(reached|exceeded)|too many requests|exhausted|used up)\b/i;
/** The upstream's own command-line tool reads a 402 as "rate limit reached, or this endpoint requires a paid plan": such a text says neither. */
const SAYS_NOT_IN_PLAN = /\b(requires?|paid)\b/i;
/** Other programs may send requests from the same address, so the upstream may have counted slightly more than the ledger. */
const NEAR = 0.9;

/**
 * Without an account to request, the text and the ledger decide. If a plan's limit were mistaken for an exhausted quota, all work would stop.
 * `beyondPlan`: by its documents, the plan does not include what was requested, which explains the 402 as well.
 */
function looksExhausted(
  message: string,
  beyondPlan: boolean,
  { month, day }: Pick<QuotaState, 'month' | 'day'>,
): boolean {
  if (SAYS_EXHAUSTED.test(message) && !SAYS_NOT_IN_PLAN.test(message)) return true;
  if (beyondPlan) return false;
  return [month, day].some(({ spent, limit }) => limit !== null && spent >= limit * NEAR);
}
