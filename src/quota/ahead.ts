/**
 * Requests that are taken together before their turns come: where nothing limits the account and nothing is wrong with it, the ledger is
 * asked once for several, and nobody waits for it. Each is sent within a second or not at all (another one is taken then), and what
 * was surely never sent goes back, so that the ledger's count stays what was asked.
 */
import type { Instant } from '../clock.ts';
import { dayStart } from '../core/utc-windows.ts';
import type { AheadGrant, Quota, Spender, Stretch } from './quota.ts';

export type Ahead = {
  /** Null: nothing was granted, for whatever reason; whoever wants to ask takes one when its turn has come, and is told. */
  readonly grant: Promise<AheadGrant | null>;
  /** Set by whoever sends it: it is spent from then on. */
  isSent: boolean;
};

/**
 * So long a grant may be used: enough for a job of eight chunks where there is no pace. A hold that another process is told of, or what
 * it stores meanwhile, is heeded that much later.
 */
export const AHEAD_MS = 1_000;

/** One for each stretch, in their order. */
export function takeAhead(quota: Quota, spender: Spender, stretches: readonly Stretch[]): readonly Ahead[] {
  // Whoever takes one for itself meets what is wrong with the database, and is patient with it.
  const grants = quota.takeAhead(spender, stretches).catch(() => []);
  return stretches.map((_, i) => ({ grant: grants.then((all) => all[i] ?? null), isSent: false }));
}

/** Of those that were taken together, once nobody will use them any more. Database errors reject: what is not given back stays counted. */
export async function giveBackUnsent(quota: Quota, spender: Spender, aheads: readonly Ahead[]): Promise<void> {
  const unsent = await Promise.all(aheads.filter(({ isSent }) => !isSent).map(({ grant }) => grant));
  await quota.giveBack(
    spender,
    unsent.filter((grant) => grant !== null),
  );
}

/** May it be sent at `now`? Not late, not on another day than it is counted on, and not from before a clock was set back. */
export function isUsable({ sendAt, goodUntil }: AheadGrant, now: Instant): boolean {
  return now >= sendAt - AHEAD_MS && now <= goodUntil && dayStart(now) === dayStart(sendAt);
}
