/** The streams of a command, behind an interface so that a test can replace the terminal. */
import type { Readable, Writable } from 'node:stream';
import { createMask } from '../../log.ts';
import type { Environment } from '../../settings.ts';
import { secretsIn } from './secrets.ts';

export type Output = {
  /** Writes `text` with the configured secrets masked. */
  write(text: string): void;
  readonly isTerminal: boolean;
  /** Whether this is a terminal on which a line can be redrawn. */
  readonly canRedraw: boolean;
  /** Bold if styles are wanted (https://no-color.org). */
  bold(text: string): string;
  /** While the last line is being redrawn, written text replaces it, and the line is drawn again below the text. */
  setRedrawing(isRedrawing: boolean): void;
  /** The terminal's width in cells. Undefined when there is no terminal. */
  columns(): number | undefined;
  /** Resolves when the reader has taken what was written, or has gone. Writers of long output must wait for it. */
  drained(): Promise<void>;
  /** True once the reader has gone (`chandler gaps | head`). */
  isClosed(): boolean;
  /** True once anything was written. */
  isBegun(): boolean;
  /** For libraries that write to the stream themselves. */
  readonly stream: Writable;
};

export type Io = {
  readonly out: Output;
  readonly err: Output;
  readonly in: Readable & { readonly isTTY?: boolean };
  /** Why standard output could not be written, for example because the disk of its file is full. Null when that did not happen. */
  failure(): Error | null;
};

type TerminalStream = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export function createIo(streams: {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: TerminalStream;
  readonly stderr: TerminalStream;
  /** Contains `TERM`, `NO_COLOR`, and the secrets that must never be shown. */
  readonly env?: Environment;
}): Io {
  const { stdin, stdout, stderr, env = {} } = streams;
  let failure: Error | null = null;
  const out = createOutput(stdout, env, (error) => {
    failure = error;
  });
  // A program that can tell nothing any more, not even in its log, ends.
  const err = createOutput(stderr, env, (error) => {
    throw error;
  });
  return { out, err, in: stdin, failure: () => failure };
}

function createOutput(stream: TerminalStream, env: Environment, onFailure: (error: Error) => void): Output {
  let closed = false;
  let begun = false;
  let redrawing = false;
  const masked = createMask(secretsIn(env));
  const isTerminal = stream.isTTY === true;
  const canRedraw = isTerminal && env.TERM !== 'dumb';
  const isPlain = !canRedraw || (env.NO_COLOR ?? '') !== '';
  stream.on('error', (error: NodeJS.ErrnoException) => {
    closed = true;
    if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_DESTROYED') onFailure(error);
  });
  return {
    write: (text) => {
      begun = true;
      if (!closed) stream.write(redrawing ? `\r\x1b[K${masked(text)}` : masked(text));
    },
    isTerminal,
    canRedraw,
    bold: (text) => (isPlain ? text : `\x1b[1m${text}\x1b[0m`),
    setRedrawing: (isRedrawing) => {
      redrawing = isRedrawing;
    },
    // A pseudo-terminal may have no size.
    columns: () => (isTerminal ? stream.columns || undefined : undefined),
    drained: async () => {
      if (closed || !stream.writableNeedDrain) return;
      await new Promise<void>((resolve) => {
        const end = () => {
          for (const event of ['drain', 'close', 'error']) stream.off(event, end);
          resolve();
        };
        for (const event of ['drain', 'close', 'error']) stream.on(event, end);
      });
    },
    isClosed: () => closed,
    isBegun: () => begun,
    stream,
  };
}
