/** Waits for a permit: takes a request, sleeps until it may be sent, and takes another if it slept too long. */
import type { Clock } from '../clock.ts';
import { GRACE_MS } from './ledger.ts';
import type { Quota, Spender, Stretch, Take, Unwanted } from './quota.ts';

type PermitOptions = {
  readonly quota: Quota;
  readonly spender: Spender;
  /** The span that the request is for. Without it, a request is taken without a check of what is stored already. */
  readonly stretch?: Stretch | undefined;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
};

/**
 * Resolves when a request may be sent now, or with the reason why not and until when, or at once when no part of the stretch is worth a
 * request any more. Of all waits, only the short one of 'queue' happens here.
 *
 * A process that stalls past its permit loses that request, which stays counted, and takes another one. A process also loses its request if
 * the upstream tells it to wait in the meantime (`gate.ts`). Rejects with the signal's reason when aborted before a request was granted. A
 * granted request is counted, so this function waits for its instant even then; it is at most the quota's run-ahead away.
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
    // The ledger may not contain this pause yet.
    const held = gate.heldAt(clock.now());
    if (held !== null) return denied(held);
    const take = await quota.take(spender, stretch);
    if (take.kind === 'unwanted' || (take.kind === 'denied' && take.reason !== 'queue')) return take;
    const asleepAt = clock.now();
    // A timer may fire a moment early. If the clock was set back, the wait must not become longer.
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
