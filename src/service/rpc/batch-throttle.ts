/** The calls of a batch wait for their pace instead of being refused: within bounds, and not for a caller who has gone away. */
import type { Clock } from '../../clock.ts';
import type { Access, Admission } from '../../contract/plan/access.ts';

/** All messages of a batch together: the longest one (`MAX_BATCH`) at ten a second, with nothing left of what may come at once. */
const PATIENCE_MS = 2_000;

export type Admit = Access['admit'];

/** From now on, for one batch. A refusal that does not say when it ends, or not soon, is given at once. */
export function patiently(admit: Admit, { clock, signal }: { clock: Clock; signal: AbortSignal }): Admit {
  const until = clock.now() + PATIENCE_MS;
  /** What is left of the batch of somebody who has gone away costs him nothing. */
  let toNobody: Admission | null = null;
  const waited: Admit = async (caller, about) => {
    for (;;) {
      if (toNobody !== null) return toNobody;
      const admission = await admit(caller, about);
      if (admission.kind === 'admitted' || admission.waitMs === undefined) return admission;
      if (clock.now() + admission.waitMs > until) return admission;
      await clock.sleep(admission.waitMs, signal).catch(() => {
        toNobody = admission;
      });
    }
  };
  // One after the other, also where the calls of a batch are begun at once (MCP): it is the first that gets the next turn.
  let last: Promise<unknown> = Promise.resolve();
  return (caller, about) => {
    const mine = last.then(() => waited(caller, about));
    last = mine.catch(() => undefined);
    return mine;
  };
}
