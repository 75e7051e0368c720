/** Asks a question that is answered by yes or no; only where somebody can answer. */
import { createInterface } from 'node:readline/promises';
import type { Io } from '../shell/io.ts';

/** True when both ends of the conversation are a terminal. */
export function canAsk(io: Io): boolean {
  return io.in.isTTY === true && io.err.isTerminal;
}

/** False for anything but a clear yes, for Ctrl-D too; rejects with the signal's reason when it is aborted. Check `canAsk` first. */
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
