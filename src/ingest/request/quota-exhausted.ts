/**
 * Whether a 402 that names no wall means that the quota is spent, when there is no account to ask: without a key, or when nobody
 * answers for it. Upstream's text for either is unknown (decision 30), and to take the one for the other stops all work.
 */
import type { QuotaState } from '../../quota/quota.ts';

const SAYS_SPENT =
  /\b(quota|(request|rate|usage|call|api) limit|limits? (was |were |is |are |has been |have been )?(reached|exceeded)|too many requests|exhausted|used up)\b/i;
/** Upstream's own command reads a 402 as "rate limit reached, or this endpoint requires a paid plan": such a text says neither. */
const SAYS_NOT_FOR_YOU = /\b(requires?|paid)\b/i;
/** Others may ask from the same address: what upstream has counted may be a little more than the ledger has. */
const NEAR = 0.9;

/** `beyondPlan`: by its documents, the plan does not include what was asked; that explains the 402 as well. */
export function looksSpent(
  message: string,
  beyondPlan: boolean,
  { month, day }: Pick<QuotaState, 'month' | 'day'>,
): boolean {
  if (SAYS_SPENT.test(message) && !SAYS_NOT_FOR_YOU.test(message)) return true;
  if (beyondPlan) return false;
  return [month, day].some(({ spent, limit }) => limit !== null && spent >= limit * NEAR);
}
