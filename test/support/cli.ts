/** Runs command lines in this process, with streams instead of a terminal. */
import { PassThrough, Readable } from 'node:stream';
import { runCli } from '../../src/cli/program.ts';
import { createIo } from '../../src/cli/shell/io.ts';
import { type Clock, systemClock } from '../../src/clock.ts';

export type CommandOptions = {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
  /** The text on standard input; by default an empty pipe. */
  readonly stdin?: string;
  /** The width of the terminal that both outputs are; by default they are pipes. */
  readonly columns?: number;
  /** Called with everything that standard output has received so far. */
  readonly onOutput?: (text: string) => void;
  /** The same for standard error. */
  readonly onError?: (text: string) => void;
};

export type CommandResult = { readonly code: number; readonly out: string; readonly err: string };

export async function runCommand(argv: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const [stdout, out] = sink(options.columns, options.onOutput);
  const [stderr, err] = sink(options.columns, options.onError);
  const code = await runCli(argv, {
    io: createIo({
      stdin: Readable.from(options.stdin === undefined ? [] : [options.stdin]),
      stdout,
      stderr,
      env: options.env,
    }),
    clock: options.clock ?? systemClock,
    env: options.env ?? {},
    signal: options.signal ?? new AbortController().signal,
    withoutInterrupts: (work) => work(),
  });
  return { code, out: out(), err: err() };
}

/** A stream that keeps what is written to it; a terminal if it has a width. */
export function sink(columns?: number, onOutput?: (text: string) => void): [PassThrough, () => string] {
  let text = '';
  const stream = new PassThrough();
  stream.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
    onOutput?.(text);
  });
  const terminal = columns === undefined ? {} : { isTTY: true, columns };
  return [Object.assign(stream, terminal), () => text];
}
