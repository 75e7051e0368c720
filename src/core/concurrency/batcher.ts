/** Joins the calls that arrive while a batch is under way into the next batch: one statement for all of them. */

/**
 * `run` gets the items of a batch in the order of the calls, and resolves to one result for each, in the same order. Batches run one
 * after the other. A call never joins a batch that has begun, so its result includes what was committed before the call.
 * When `run` rejects, every call of that batch rejects.
 */
export function createBatcher<T, R>(run: (items: readonly T[]) => Promise<readonly R[]>): (item: T) => Promise<R> {
  type Batch = { readonly items: T[]; readonly results: Promise<readonly R[]> };
  let next: Batch | null = null;
  let last: Promise<unknown> = Promise.resolve();
  const openBatch = (): Batch => {
    const items: T[] = [];
    const results = last.then(() => {
      next = null;
      return run(items);
    });
    last = results.catch(() => undefined);
    return { items, results };
  };
  return async (item) => {
    next ??= openBatch();
    const { items, results } = next;
    const index = items.push(item) - 1;
    return (await results)[index]!;
  };
}
