/** An endpoint that the upstream refuses waits longer after each refusal in a row, so that no quota is spent on refusals. */
import type { Instant } from '../../clock.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { DAY } from '../../core/interval.ts';
import { REQUEST_AGAIN_MS } from '../../core/second-opinion.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { type PastRequest, recentRequests } from '../../store/snapshot/snapshot.ts';

/** How many recorded requests of an endpoint are read, to count the refusals in a row. */
export const LOOK_BACK = 12;
const REFUSALS: ReadonlySet<string> = new Set([
  'history limit',
  'forbidden',
  'unknown id',
  'unknown route',
  'bad request',
]);
const backoff = createBackoff({ firstMs: 60_000, mostMs: DAY, factor: 4 });

/** After refusals in a row an endpoint waits for 1, 4, 16 … minutes, at most a day. `past`: its latest requests, newest first. */
export function refusedUntil(past: readonly PastRequest[], now: Instant): Instant {
  const answered = past.findIndex((asking) => !isRefusal(asking));
  const inARow = answered === -1 ? past.length : answered;
  if (inARow === 0) return now;
  const { sentAt, status } = past[0]!;
  const wait = backoff(inARow - 1, WHOLE_BOUND);
  // A clock that was set back must not stretch the wait.
  return Math.min(sentAt, now) + (status === 402 ? Math.max(wait, REQUEST_AGAIN_MS) : wait);
}

/** The same, for a caller that does not know the latest requests. */
export async function readRefusedUntil(
  sql: SqlOrTransaction,
  { endpoint, accountId, now }: { readonly endpoint: string; readonly accountId: string; readonly now: Instant },
): Promise<Instant> {
  return refusedUntil(await recentRequests(sql, { endpoint, accountId, limit: LOOK_BACK, now }), now);
}

/** A 402 is recorded as `limited`, like a 429. If it means that the quota is exhausted, all requests wait longer than this endpoint does. */
function isRefusal({ outcome, status }: PastRequest): boolean {
  return REFUSALS.has(outcome) || (outcome === 'limited' && status === 402);
}
