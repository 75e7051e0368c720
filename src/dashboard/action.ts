/** What an operator can do on the dashboard. It is shown with its price first, and done when the operator confirms it. */
import type { Instant } from '../clock.ts';

/** The arguments, as they are in the address. */
export type Arguments = URLSearchParams;

/** One action with its arguments, as it would be done now. Nothing has changed yet. */
export type Intended = {
  /** What is asked of the operator: `Cancel backfill 12?` */
  readonly question: string;
  /** On the button that confirms it: `Cancel backfill 12`. */
  readonly verb: string;
  /** What it means and what it does not. */
  readonly sentences: readonly string[];
  /** Requests to the upstream that it causes; 0: none. */
  readonly requests: number;
  /** When these will be done, earliest and latest, as far as it can be foreseen. */
  readonly done?: { readonly from: Instant; readonly to: Instant } | null;
  /** The command that does the same, for the audit log. */
  readonly command: readonly string[];
  /** Where the operator goes on. */
  readonly next: string;
  /** A secret comes of it, so one form does it once: the answer is shown again only by sending the form again. */
  readonly makesSecret?: true;
  /** Does it. Resolves to what was done, in sentences. @throws ActionFailed when it cannot be done */
  readonly act: (actor: string) => Promise<readonly string[] | ShownOnce>;
};

/** What was done, and a secret that came of it: shown in the answer, and kept nowhere. */
export type ShownOnce = { readonly done: readonly string[]; readonly secret: string };

/** @throws BadAddress when the arguments are wrong, ActionFailed when there is nothing to do or it is not possible now */
export type Action = (given: Arguments) => Promise<Intended>;

/** It cannot be done; the message says why, and what would be possible. */
export class ActionFailed extends Error {}
