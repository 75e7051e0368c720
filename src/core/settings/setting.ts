/** The result of reading a setting from its text. */

export type Read<T> = { readonly ok: T } | Problem;

/** What is wrong with a value, and what is allowed. */
export type Problem = {
  /** The rest of the sentence that begins with the name and the value; or, with `isWhole`, the whole sentence. */
  readonly problem: string;
  readonly isWhole?: boolean;
  /** Shown instead of the value, which is secret. */
  readonly shown?: string;
};
