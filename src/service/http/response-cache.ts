/**
 * What was answered is answered again, unrouted, while its source says that it still holds: most of what a single read costs is finding
 * out what is asked. Everything else is as ever: who asks is admitted and counted first, and what the plan decides is kept by plan.
 */

import type { Handler, Peer } from '../../contract/interface/handler.ts';
import type { Access, Admission, Caller } from '../../contract/plan/access.ts';
import type { PlanName } from '../../contract/plan/plans.ts';
import { allowanceFields, callerOf } from './admission.ts';
import { answerWritten, cacheControlFor } from './answer.ts';
import type { Admitted, Keep, Written } from './cached-response.ts';
import { headerIn } from './request-input.ts';

/** So many addresses at most; of the answers themselves none is held that the source has let go. */
const MOST_TARGETS = 10_000;
/** What is longer is not asked for often. */
const LONGEST_TARGET = 200;

export type Again = {
  readonly give: NonNullable<Handler['again']>;
  /** Where to put what is answered to this request; undefined: nowhere. */
  keepFor(peer: Peer | undefined): Keep | undefined;
  /** What was found out before it turned out that this must be asked for anew. */
  admittedOf(peer: Peer | undefined): Admitted | undefined;
};

export function createAgain({
  access,
  date,
  addressOf,
}: {
  readonly access: Access;
  readonly date: () => string;
  readonly addressOf: (peer: Peer) => string;
}): Again {
  const kept = new Map<string, Map<PlanName, WeakRef<Written>>>();
  const admitted = new WeakMap<Peer, Admitted>();
  /** Null: who asks cannot be found out now. Then nothing is counted, and whoever asks anew is told why. */
  const admit = async (caller: Caller): Promise<Admission | null> => {
    try {
      return await access.admit(caller, 'data');
    } catch {
      return null;
    }
  };
  const give = async (plans: ReadonlyMap<PlanName, WeakRef<Written>>, peer: Peer): Promise<Response | null> => {
    const caller = callerOf(headerIn(peer.headers, 'authorization'), addressOf(peer));
    const admission = await admit(caller);
    if (admission === null) return null;
    const answer = admission.kind === 'admitted' ? plans.get(admission.plan)?.deref() : undefined;
    if (answer === undefined || !(await holds(answer))) {
      admitted.set(peer, { caller, admission });
      return null;
    }
    const { allowance } = admission;
    return answerWritten(answer, {
      date: date(),
      cacheControl: cacheControlFor(caller),
      allowance: allowance === undefined ? undefined : allowanceFields(allowance),
      ifNoneMatch: headerIn(peer.headers, 'if-none-match'),
    });
  };
  return {
    give: (peer) => {
      const plans = peer.target === undefined ? undefined : kept.get(peer.target);
      return plans === undefined ? null : give(plans, peer);
    },
    keepFor: (peer) => {
      const target = peer?.target;
      if (target === undefined || target.length > LONGEST_TARGET) return undefined;
      return (plan, answer) => {
        const plans = kept.get(target) ?? new Map<PlanName, WeakRef<Written>>();
        plans.set(plan, new WeakRef(answer));
        kept.set(target, plans);
        if (kept.size > MOST_TARGETS) kept.delete(kept.keys().next().value!);
      };
    },
    admittedOf: (peer) => (peer === undefined ? undefined : admitted.get(peer)),
  };
}

/** A source that cannot be asked whether it does: asking it anew will say why. */
async function holds({ stillTrue }: Written): Promise<boolean> {
  try {
    return stillTrue !== null && (await stillTrue());
  } catch {
    return false;
  }
}
