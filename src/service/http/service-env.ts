/** What travels with a request inside the service. */
import type { Peer } from '../../contract/interface/handler.ts';
import type { Admission, Caller } from '../../contract/plan/access.ts';
import type { PlanName } from '../../contract/plan/plans.ts';
import type { CachedResponse } from './response-cache.ts';

/** A caller and what came of asking for admission: so that nobody is counted twice for one request. */
export type Admitted = { readonly caller: Caller; readonly admission: Admission };

export type ServiceEnv = {
  Bindings: Partial<Peer> & {
    /** Set when the caller was admitted, or refused, before the routes. */
    admitted?: Admitted | undefined;
  };
  Variables: {
    caller: Caller;
    plan: PlanName;
    /** The value of the `Date` header. */
    date: string;
    /** The `RateLimit-*` headers of a caller with a limit. */
    allowance?: Readonly<Record<string, string>>;
    /** Caches the answer to this request; not set where it may not be cached. */
    store?: (response: CachedResponse) => void;
  };
};
