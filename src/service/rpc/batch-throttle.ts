/** Throttles a batch: a call that comes too fast waits instead of being refused, for a limited time and while the caller is connected. */
import pLimit from 'p-limit';
import type { Clock } from '../../clock.ts';
import type { Access, Admission } from '../../contract/plan/access.ts';

/** For all calls of a batch together: enough for the longest batch (`MAX_BATCH`) at ten a second when the token bucket was empty. */
const MAX_WAIT_MS = 2_000;

export type Admit = Access['admit'];

/** Throttles one batch that starts now. A refusal without a waiting time, or with a long one, is returned at once. */
export function throttleBatch(admit: Admit, { clock, signal }: { clock: Clock; signal: AbortSignal }): Admit {
  const until = clock.now() + MAX_WAIT_MS;
  /** Set when the caller has disconnected. Then the rest of the batch is refused, and costs nothing. */
  let afterDisconnect: Admission | null = null;
  const waited: Admit = async (caller, about) => {
    for (;;) {
      if (afterDisconnect !== null) return afterDisconnect;
      const admission = await admit(caller, about);
      if (admission.kind === 'admitted' || admission.waitMs === undefined) return admission;
      if (clock.now() + admission.waitMs > until) return admission;
      await clock.sleep(admission.waitMs, signal).catch(() => {
        afterDisconnect = admission;
      });
    }
  };
  // One call after the other, even when the calls of a batch start together (MCP): the first call gets the next token.
  const oneAtATime = pLimit(1);
  return (caller, about) => oneAtATime(() => waited(caller, about));
}
