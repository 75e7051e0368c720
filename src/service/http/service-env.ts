/** What travels with a request inside the service. */

import type { Peer } from '../../contract/interface/handler.ts';
import type { Caller } from '../../contract/plan/access.ts';
import type { PlanName } from '../../contract/plan/plans.ts';
import type { Admitted, Keep } from './cached-response.ts';

export type ServiceEnv = {
  Bindings: Partial<Peer> & {
    /** Where that was found out before. */
    admitted?: Admitted | undefined;
    /** Told of an answer that may be given again. */
    keep?: Keep | undefined;
  };
  /** `date` as the header of that name has it. */
  Variables: {
    caller: Caller;
    plan: PlanName;
    date: string;
    /** `RateLimit-*`, names and values in turn, where the caller has a limit. */
    allowance?: readonly string[];
  };
};
