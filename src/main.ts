#!/usr/bin/env node
/** The program: gives the command line its streams, clock, environment and signals, and exits with its code. */
import { EXIT, Interrupted } from './cli/shell/exit.ts';
import { createIo } from './cli/shell/io.ts';
import { tuneV8 } from './cli/shell/v8.ts';
import { systemClock } from './clock.ts';

// The S3 client would warn the operator that its later versions need a newer Node. That warning is for Chandler's developers, who choose its version.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';

// `serve` and `simulate` are not tuned: every request leaves garbage, and a small young generation would be collected all the time.
const command = process.argv[2];
if (command !== 'serve' && command !== 'simulate') tuneV8(command);

const interruption = new AbortController();
/** Number of child programs on this terminal, like psql. While one runs, it handles Ctrl-C. */
let children = 0;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (children > 0 && signal === 'SIGINT') return;
    // The first signal asks the command to stop, the second one ends the process at once.
    if (interruption.signal.aborted) process.exit(EXIT.interrupted);
    interruption.abort(new Interrupted(`interrupted by ${signal}`));
  });
}

// Loaded after tuning, because V8 keeps the memory that loading takes (170 MB from Node 24 on).
const { runCli } = await import('./cli/program.ts');
const { explain } = await import('./cli/shell/explain-error.ts');
const io = createIo({ stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: process.env });
const code = await runCli(process.argv.slice(2), {
  io,
  clock: systemClock,
  env: process.env,
  signal: interruption.signal,
  withoutInterrupts: async (work) => {
    children++;
    try {
      return await work();
    } finally {
      children--;
    }
  },
});
// Waits until everything is written, except to a reader that has gone.
for (const { stream, isClosed } of [io.out, io.err]) {
  if (!isClosed() && !stream.destroyed) await new Promise((resolve) => stream.write('', resolve));
}
const failure = io.failure();
if (failure !== null) {
  io.err.write(`error: standard output cannot be written: ${explain(failure).message}\n`);
  await new Promise((resolve) => io.err.stream.write('', resolve));
}
process.exit(failure !== null && code === EXIT.done ? EXIT.failed : code);
