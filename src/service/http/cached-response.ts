/** An answer as it is sent, whoever asks, and what may be done with it. */

import type { StillTrue } from '../../contract/answer/revalidation.ts';
import type { Admission, Caller } from '../../contract/plan/access.ts';
import type { PlanName } from '../../contract/plan/plans.ts';

export type Written = {
  readonly type: string;
  readonly text: string;
  readonly byteLength: number;
  readonly etag: string;
  /** Those that it has with and without the text, whoever asks. */
  readonly headers: readonly string[];
  readonly encoded: () => Uint8Array;
  readonly packed: () => Promise<Uint8Array>;
  /** Null: nobody can tell without asking for it again. */
  readonly stillTrue: StillTrue | null;
};

/** Puts an answer where it may be given again to all who have this plan. */
export type Keep = (plan: PlanName, answer: Written) => void;

/** Who asks, and what came of it: nobody is counted twice for one request. */
export type Admitted = { readonly caller: Caller; readonly admission: Admission };
