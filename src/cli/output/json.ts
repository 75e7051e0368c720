/** What `--json` prints: instants as ISO 8601, open ends as null. */
import type { Instant } from '../../clock.ts';
import { maskPasswords } from '../../log.ts';
import { explain } from '../shell/explain-error.ts';
import type { Output } from '../shell/io.ts';

/** One value, on one line. */
export function printJson(out: Output, value: unknown): void {
  out.write(`${JSON.stringify(value)}\n`);
}

/** What a command with `--json` prints when it fails before it has printed anything; standard error says it in words. */
export function printJsonError(out: Output, message: string, exitCode: number): void {
  if (!out.isBegun()) printJson(out, { error: message, exitCode });
}

/**
 * An array, an element a line as they come, so that any number of them takes no memory. Stops when the reader has gone,
 * unless the values are to be read `toTheEnd` whether anybody sees them or not. When reading them fails halfway, the last
 * element is `{"error": …}`, so that half an array is never taken for a whole one.
 */
export async function printJsonArray(
  out: Output,
  values: AsyncIterable<unknown>,
  { toTheEnd = false } = {},
): Promise<void> {
  let count = 0;
  try {
    for await (const value of values) {
      if (out.isClosed() && !toTheEnd) return;
      out.write(`${count++ === 0 ? '[' : ',\n'}${JSON.stringify(value)}`);
    }
  } catch (error) {
    if (count > 0) out.write(`,\n${JSON.stringify({ error: maskPasswords(explain(error).message) })}]\n`);
    throw error;
  }
  out.write(count === 0 ? '[]\n' : ']\n');
}

export function toIso(at: Instant | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
