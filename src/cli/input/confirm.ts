/** Asks a yes-or-no question on a terminal. */
import { createInterface } from 'node:readline/promises';
import type { Io } from '../shell/io.ts';

/** True when both standard input and standard error are terminals. */
export function canAsk(io: Io): boolean {
  return io.in.isTTY === true && io.err.isTerminal;
}

/** True only for yes; Ctrl-D counts as no. Rejects with the reason of `signal` when it is aborted. Check `canAsk` first. */
export async function confirm(io: Io, question: string, signal: AbortSignal): Promise<boolean> {
  const lines = createInterface({ input: io.in, output: io.err.stream, terminal: false });
  const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    const answer = await Promise.race([lines.question(`${question} [y/N] `, { signal }), closed]);
    return /^\s*y(es)?\s*$/i.test(answer);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    lines.close();
  }
}
