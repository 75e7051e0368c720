/** What travels with a request inside the service. */
import type { Caller } from '../contract/access.ts';
import type { Peer } from '../contract/handler.ts';
import type { PlanName } from '../contract/plans.ts';

export type ServiceEnv = {
  Bindings: Partial<Peer>;
  /** `date` as the header of that name has it. */
  Variables: {
    caller: Caller;
    plan: PlanName;
    date: string;
    /** `RateLimit-*`, names and values in turn, where the caller has a limit. */
    allowance?: readonly string[];
  };
};
