/**
 * Reads series whose rows somebody may have filled with values that Postgres cannot compute with, for example times that add up to more than its
 * last date. Such a row makes the statement fail for all series that it reads. So verify then reads them one by one, and reports those that fail.
 */

/** The class of Postgres' error codes for values that it cannot compute with. */
const DATA_EXCEPTION = /^22/;

/** Why rows cannot be read, as a sentence without a full stop; null when the error is not about values of rows. */
function whyUnreadable(error: unknown): string | null {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const isOfData = (typeof code === 'string' && DATA_EXCEPTION.test(code)) || error instanceof RangeError;
  return isOfData ? String(message) : null;
}

/** Reads the page at once, or one by one if that fails. `instead` returns the result for one that cannot be read. */
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

/**
 * Null stands in these columns only after somebody has removed their constraint. Nothing can be computed from it.
 * @throws RangeError which `readEach` takes for an error about values of rows
 */
export function refuseNulls<T>(table: string, rows: readonly T[], columns: readonly (keyof T & string)[]): void {
  for (const column of columns)
    if (rows.some((row) => row[column] === null))
      throw new RangeError(`a column of ${table} that is never null is null: ${column}`);
}
