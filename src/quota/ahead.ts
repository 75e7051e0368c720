/**
 * Requests that are taken together before their turns come: where nothing limits the account, the ledger is asked once for several, and
 * nobody waits for it. Whoever has one sends it soon or takes another, as with any turn (`turn.ts`), and what was surely never sent
 * goes back, so that the ledger's count stays what was asked.
 */
import type { Instant } from '../clock.ts';
import type { Quota, Spender, Stretch, Take, Unwanted } from './quota.ts';

export type Ahead = {
  readonly take: Promise<Take | Unwanted>;
  /** Set by whoever sends it: it is spent from then on. */
  isSent: boolean;
};

/** One for each stretch, in their order. One that fails does so when it is used, and for nobody else. */
export function takeAhead(quota: Quota, spender: Spender, stretches: readonly Stretch[]): readonly Ahead[] {
  return stretches.map((stretch) => {
    const take = quota.take(spender, stretch);
    take.catch(() => undefined);
    return { take, isSent: false };
  });
}

/** Of those that nobody will use any more. Database errors reject: what is not given back stays counted. */
export async function giveBackUnsent(quota: Quota, spender: Spender, aheads: readonly Ahead[]): Promise<void> {
  const unsent = await Promise.all(aheads.filter(({ isSent }) => !isSent).map(({ take }) => take.catch(() => null)));
  const granted: Instant[] = unsent.flatMap((take) => (take?.kind === 'granted' ? [take.sendAt] : []));
  if (granted.length > 0) await quota.giveBack(spender, { requests: granted.length, takenAt: Math.min(...granted) });
}
