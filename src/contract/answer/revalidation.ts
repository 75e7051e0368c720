/** Lets an answer carry a check whether it is still current, so that the response cache can send it again. */

/** Resolves to whether the source, asked the same question now, would give an equal answer. */
export type IsCurrent = () => Promise<boolean>;

const checks = new WeakMap<object, IsCurrent>();

/** The same answer, which from now on says whether it is current. */
export function revalidatedBy<T extends object>(answer: T, isCurrent: IsCurrent): T {
  checks.set(answer, isCurrent);
  return answer;
}

/** Null where the source does not say: such an answer is never sent from a cache. */
export function isCurrentOf(answer: object): IsCurrent | null {
  return checks.get(answer) ?? null;
}
