#!/usr/bin/env node
/** The program: gives the command line its streams, its clock, its environment and Ctrl-C, and exits with its code. */
import { EXIT, Interrupted } from './cli/shell/exit.ts';
import { createIo } from './cli/shell/io.ts';
import { tuneV8 } from './cli/shell/v8.ts';
import { systemClock } from './clock.ts';

// Who only answers makes garbage of every request: a young generation that is small would be looked through all the time.
if (process.argv[2] !== 'serve' && process.argv[2] !== 'simulate') tuneV8();

const interruption = new AbortController();
/** How many programs we share the terminal with: Ctrl-C is theirs then. */
let guests = 0;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (guests > 0 && signal === 'SIGINT') return;
    // The first one asks, the second one insists.
    if (interruption.signal.aborted) process.exit(EXIT.interrupted);
    interruption.abort(new Interrupted(`interrupted by ${signal}`));
  });
}

// Only now: what loading leaves behind counts, too (from Node 24 on that is 170 MB, and they stay).
const { runCli } = await import('./cli/program.ts');
const io = createIo({ stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: process.env });
const code = await runCli(process.argv.slice(2), {
  io,
  clock: systemClock,
  env: process.env,
  signal: interruption.signal,
  withoutInterrupts: async (work) => {
    guests++;
    try {
      return await work();
    } finally {
      guests--;
    }
  },
});
// What was written must have left before the process does; a reader that has gone is not waited for.
for (const { stream, isClosed } of [io.out, io.err]) {
  if (!isClosed() && !stream.destroyed) await new Promise((resolve) => stream.write('', resolve));
}
process.exit(code);
