/** Prints JSON for `--json`. */
import { maskPasswords } from '../../log.ts';
import { explain } from './explain-error.ts';
import type { Output } from './io.ts';

/** One value, on one line. */
export function printJson(out: Output, value: unknown): void {
  out.write(`${JSON.stringify(value)}\n`);
}

/** Prints the error of a command with `--json`, unless it has already printed something. */
export function printJsonError(out: Output, message: string, exitCode: number): void {
  if (!out.isBegun()) printJson(out, { error: message, exitCode });
}

/**
 * Prints an array, one element per line as it arrives, so that memory use stays constant. Stops when the reader has gone, unless the values
 * must be read `toTheEnd`. When reading fails halfway, the last element is `{"error": …}`, so that nobody takes half an array for a whole
 * one.
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
