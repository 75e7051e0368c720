/** Attaches a check to an answer that tests whether it is still current, so that the response cache can send it again. */

/** Resolves to true if the source would now return an equal answer to the same query. */
export type IsCurrent = () => Promise<boolean>;

const checks = new WeakMap<object, IsCurrent>();

/** Attaches the check to the answer, and returns the same answer. */
export function revalidatedBy<T extends object>(answer: T, isCurrent: IsCurrent): T {
  checks.set(answer, isCurrent);
  return answer;
}

/** The check of an answer; null when the source attached none. Such an answer is never sent from a cache. */
export function isCurrentOf(answer: object): IsCurrent | null {
  return checks.get(answer) ?? null;
}
