/** The keys of callers, as commands and pages show them. */
import type { Instant } from '../../clock.ts';
import { PLAN_NAMES, planOf } from '../../contract/plan/plans.ts';
import { formatDay, formatLimit } from '../../core/format.ts';
import type { ApiKey } from '../../store/callers/api-key.ts';

/** Requests a month that the key may send: a number, or `unlimited`. */
export function limitOf({ requestsPerMonth, plan }: ApiKey): string {
  if (requestsPerMonth !== null) return formatLimit(requestsPerMonth);
  const named = PLAN_NAMES.find((name) => name === plan);
  return formatLimit(named === undefined ? null : planOf(named).requestsPerMonth);
}

/** `valid until 2027-01-31`, `revoked 2026-11-02, replaced by chandler_1a2B3c4D`. */
export function stateOf({ revokedAt, expiresAt, replacedBy }: ApiKey, now: Instant): string {
  const by = replacedBy === null ? '' : `, replaced by ${replacedBy}`;
  if (revokedAt !== null) return `revoked ${formatDay(revokedAt)}${by}`;
  if (expiresAt === null) return `valid${by}`;
  return expiresAt <= now ? `expired ${formatDay(expiresAt)}${by}` : `valid until ${formatDay(expiresAt)}${by}`;
}
