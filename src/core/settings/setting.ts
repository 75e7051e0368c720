/** The result of reading a setting from its text. */

export type ParsedSetting<T> = { readonly ok: T } | Problem;

/** What is wrong with a value, and what is allowed. */
export type Problem = {
  /** The end of a sentence that begins with the name and the value; with `isWhole`, the whole sentence. */
  readonly problem: string;
  readonly isWhole?: boolean;
  /** Text to show instead of the value, because the value is secret. */
  readonly shown?: string;
};
