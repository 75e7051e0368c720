/** Collects the calls that arrive while a batch runs into the next batch, so that one statement serves all of them. */

/** `run` returns this for a call that the batch could not serve. The call is then first in the next batch. */
export const SERVE_LATER = Symbol('serve later');

type Call<T, R> = {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
};

/**
 * `run` gets the items of a batch in the order of the calls, and resolves to one result for each, in the same order. A call never joins
 * a batch that has begun, so its result includes what was committed before the call. When `run` rejects, every call of that batch
 * rejects. Calls with different keys never share a batch; the batches of one key run one after the other.
 */
export function createBatcher<T, R>(
  run: (items: readonly T[]) => Promise<readonly (R | typeof SERVE_LATER)[]>,
  keyOf: (item: T) => string = () => '',
): (item: T) => Promise<R> {
  const queues = new Map<string, Call<T, R>[]>();

  const serve = async (key: string, queue: Call<T, R>[]): Promise<void> => {
    // Calls made in the same tick join the first batch.
    await Promise.resolve();
    while (queue.length > 0) {
      const batch = queue.splice(0);
      try {
        const results = await run(batch.map(({ item }) => item));
        queue.unshift(...batch.filter((_, i) => results[i] === SERVE_LATER));
        for (const [i, { resolve }] of batch.entries()) {
          const result = results[i];
          if (result !== SERVE_LATER) resolve(result as R);
        }
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    queues.delete(key);
  };

  return (item) =>
    new Promise((resolve, reject) => {
      const call = { item, resolve, reject };
      const key = keyOf(item);
      const queue = queues.get(key);
      if (queue) {
        queue.push(call);
        return;
      }
      const opened = [call];
      queues.set(key, opened);
      void serve(key, opened);
    });
}
