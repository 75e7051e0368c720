/**
 * Somebody may write what no program writes: steps of evidence whose times add up to more than Postgres has, and so on. A statement then fails
 * for all series that it reads. So these are read one by one, and only those that fail are not proved.
 */

/** What Postgres says of values that it cannot compute with. */
const DATA_EXCEPTION = /^22/;

/** Why rows cannot be read, as a sentence without a full stop; null: the error says nothing of rows. */
export function whyUnreadable(error: unknown): string | null {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const isOfData = (typeof code === 'string' && DATA_EXCEPTION.test(code)) || error instanceof RangeError;
  return isOfData ? String(message) : null;
}

/** Reads the page at once, or else one by one; `instead`: what is said of one that cannot be read. */
export async function readEach<T, R>(
  page: readonly T[],
  read: (page: readonly T[]) => Promise<R[]>,
  instead: (one: T, why: string) => R[],
): Promise<R[]> {
  try {
    return await read(page);
  } catch (error) {
    const why = whyUnreadable(error);
    if (why === null) throw error;
    if (page.length === 1) return instead(page[0]!, why);
    const all: R[] = [];
    for (const one of page) all.push(...(await readEach([one], read, instead)));
    return all;
  }
}
