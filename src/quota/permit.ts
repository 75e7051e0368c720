/** Waiting for one's turn: takes a request, sleeps until it may be sent, and takes another when it slept too long. */
import type { Clock } from '../clock.ts';
import { GRACE_MS } from './ledger.ts';
import type { Quota, Spender, Stretch, Take, Unwanted } from './quota.ts';

export type PermitOptions = {
  readonly quota: Quota;
  readonly spender: Spender;
  /** What the request is for: without it, it is taken whatever is known. */
  readonly stretch?: Stretch | undefined;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
};

/**
 * Resolves when a request may be sent now, or with why not and until when; or at once when nobody wants it any more. Only the short wait of 'queue' is sat out here.
 * A process that was held up past its turn has lost that request, which stays counted, and takes another; one that is told
 * to wait by upstream in the meantime has lost it, too (see `gate.ts`). Rejects with the signal's reason when aborted before
 * anything was taken: a turn that was granted is counted, so it is sat out and used. It is never further away than the
 * quota's run-ahead, however slow the pace.
 */
export function waitForPermit(options: Omit<PermitOptions, 'stretch'>): Promise<Take>;
export function waitForPermit(options: PermitOptions): Promise<Take | Unwanted>;
export async function waitForPermit({
  quota,
  spender,
  stretch,
  clock,
  signal,
}: PermitOptions): Promise<Take | Unwanted> {
  const { gate } = quota;
  while (true) {
    signal?.throwIfAborted();
    // What the ledger hears of only now.
    const held = gate.heldAt(clock.now());
    if (held !== null) return denied(held);
    const take = await quota.take(spender, stretch);
    if (take.kind === 'unwanted' || (take.kind === 'denied' && take.reason !== 'queue')) return take;
    const asleepAt = clock.now();
    // A timer may fire a moment early; a clock that was set back must not stretch the wait.
    for (let now = asleepAt; now >= asleepAt - GRACE_MS; now = clock.now()) {
      const until = take.kind === 'granted' ? Math.max(take.sendAt, gate.opensAt(now)) : take.until;
      if (take.kind === 'granted') {
        const told = gate.heldAt(now);
        if (told !== null) return denied(told);
        if (Math.max(now, until) > take.goodUntil) break;
        if (now >= until) {
          gate.pass(now);
          return take;
        }
      } else if (now >= until) break;
      await clock.sleep(until - now, take.kind === 'granted' ? undefined : signal);
    }
  }
}

function denied({ until, reason }: NonNullable<ReturnType<Quota['gate']['heldAt']>>): Take {
  return { kind: 'denied', reason, until };
}
