/**
 * The line to one server: every connection that this process has to it, looked after while the database is open. A host that freezes
 * or a network that drops packets closes nothing, so whoever waits for an answer would wait until the system gives up, a quarter of an
 * hour later. So the server is asked on a connection of its own whether it is there, which whatever it is busy with does not hold up; when
 * it does not say so, everything that has been silent meanwhile is hung up, and from then on it is a lost connection like any other.
 */
import type net from 'node:net';
import { systemClock } from '../../clock.ts';

export type Line = {
  /** Known from now on, until it is closed. */
  add(socket: net.Socket): void;
  /** Now; and the way to hang up all connections from which nothing has come since. */
  mark(): (reason: () => Error) => void;
};

/** How often the server is asked, and how long it may take to answer. */
const LOOK_MS = 5_000;
const DEADLINE_MS = 10_000;
/** A process that was itself held up finds the answer there when it looks once more. */
const BREATH_MS = 1_000;

export function createLine(): Line {
  const sockets = new Set<net.Socket>();
  /** Not by their `close`: what puts TLS around a socket takes its listeners away. */
  const forget = () => {
    for (const socket of sockets) if (socket.destroyed) sockets.delete(socket);
  };
  return {
    add: (socket) => {
      forget();
      sockets.add(socket);
    },
    mark: () => {
      forget();
      const before = new Map([...sockets].map((socket) => [socket, socket.bytesRead]));
      return (reason) => {
        for (const socket of sockets) if (socket.bytesRead === (before.get(socket) ?? 0)) socket.destroy(reason());
      };
    },
  };
}

export type Watched = {
  /** Sends a statement that takes no time. */
  readonly ask: () => Promise<unknown>;
  readonly at: string;
  /** One that is allowed so long to let us in may be silent for as long. */
  readonly connectMs: number;
  readonly signal: AbortSignal;
};

/** Until the signal. */
export async function watchLine(line: Line, { ask, at, connectMs, signal }: Watched): Promise<void> {
  const deadlineMs = Math.max(DEADLINE_MS, connectMs);
  // By the machine's time, whichever the rest goes by: it is about a real network.
  const sleep = (ms: number, until = signal) => systemClock.sleep(ms, until).catch(() => undefined);
  const silent = () =>
    Object.assign(new Error(`Postgres at ${at} has not answered for ${deadlineMs / 1000} s`), { code: 'ETIMEDOUT' });
  await sleep(LOOK_MS);
  while (!signal.aborted) {
    const hangUp = line.mark();
    const answered = new AbortController();
    const late = (async () => {
      await sleep(deadlineMs, AbortSignal.any([signal, answered.signal]));
      if (!signal.aborted && !answered.signal.aborted) await sleep(BREATH_MS);
      return false;
    })();
    const isThere = await Promise.race([ask().then(() => true, isAnswer), late]);
    answered.abort();
    if (signal.aborted) return;
    if (!isThere) hangUp(silent);
    await sleep(LOOK_MS);
  }
}

/** A refusal is one, too; a connection that could not be made because nobody says anything is none. */
function isAnswer(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return code !== 'CONNECT_TIMEOUT' && code !== 'ETIMEDOUT';
}
