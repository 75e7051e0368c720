/** Splits long computations, so that the process can answer other requests in between. */

/** Like `list.map(change)`, but yields to the event loop after every `piece` rows. */
export async function mapInPieces<T, U>(list: readonly T[], piece: number, change: (row: T) => U): Promise<U[]> {
  const made: U[] = [];
  for (let from = 0; from < list.length; from += piece) {
    if (from > 0) await yieldToEventLoop();
    for (const row of list.slice(from, from + piece)) made.push(change(row));
  }
  return made;
}

/** Resolves after Node.js has handled the pending events. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
