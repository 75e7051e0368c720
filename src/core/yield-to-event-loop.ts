/** Long work of the processor, in pieces, so that others are answered in between. */

/** The same as `list.map(change)`, in so many rows at a time. */
export async function mapInPieces<T, U>(list: readonly T[], piece: number, change: (row: T) => U): Promise<U[]> {
  const made: U[] = [];
  for (let from = 0; from < list.length; from += piece) {
    if (from > 0) await othersFirst();
    for (const row of list.slice(from, from + piece)) made.push(change(row));
  }
  return made;
}

/** Resolves when what has arrived meanwhile was dealt with. */
export function othersFirst(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
