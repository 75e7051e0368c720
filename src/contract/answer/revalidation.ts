/**
 * Answers that may be given again without asking for them anew: their source says for how long it would still give this very object to
 * the same question. What is not said so of must be asked for each time.
 */

/** Resolves to whether the source, asked the same question now, would give the same object again. */
export type StillTrue = () => Promise<boolean>;

const checks = new WeakMap<object, StillTrue>();

/** The same answer, of which can be found out from now on whether it still holds. */
export function lasting<T extends object>(answer: T, stillTrue: StillTrue): T {
  checks.set(answer, stillTrue);
  return answer;
}

/** Null where the source does not say. */
export function stillTrueOf(answer: object): StillTrue | null {
  return checks.get(answer) ?? null;
}
