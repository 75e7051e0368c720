/** What an operator can do on the dashboard. The dashboard first shows it with its cost, and does it when the operator confirms. */
import type { Instant } from '../clock.ts';

/** The arguments, as they are in the address. */
export type Arguments = URLSearchParams;

/** One action with its arguments, as it would run now. Nothing has changed yet. */
export type Intended = {
  /** The question to the operator: `Cancel backfill 12?` */
  readonly question: string;
  /** The text of the button that confirms it: `Cancel backfill 12`. */
  readonly verb: string;
  /** What the action means and what it does not. */
  readonly sentences: readonly string[];
  /** Number of requests to the upstream that it causes. */
  readonly requests: number;
  /** When these requests will be done, earliest and latest, if Chandler can forecast that. */
  readonly done?: { readonly from: Instant; readonly to: Instant } | null;
  /** The command that does the same, for the audit log. */
  readonly command: readonly string[];
  /** The address of the page that follows. */
  readonly next: string;
  /** The action creates a secret. A form does it only once, because the browser sends the form again to show the answer again. */
  readonly makesSecret?: true;
  /** Runs the action. Resolves to sentences about what was done. @throws ActionFailed when it cannot be done */
  readonly act: (actor: string) => Promise<readonly string[] | ShownOnce>;
};

/** What was done, and the secret that it created. The answer shows the secret, and Chandler stores it nowhere. */
export type ShownOnce = { readonly done: readonly string[]; readonly secret: string };

/** @throws BadAddress when the arguments are wrong, ActionFailed when there is nothing to do or when it is not possible now */
export type Action = (given: Arguments) => Promise<Intended>;

/** The action cannot be done. The message says why, and what would be possible. */
export class ActionFailed extends Error {}
