#!/usr/bin/env node
/** The program: gives the command line its streams, clock, environment and signals, and exits with its code. */
import { EXIT, Interrupted } from './cli/shell/exit.ts';
import { createIo } from './cli/shell/io.ts';
import { tuneV8 } from './cli/shell/v8.ts';
import { systemClock } from './clock.ts';

// The client of S3 would tell the operator that its later versions need a newer Node: that is for us, who choose its version.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';

// The servers are not tuned: every request leaves garbage, which a small young generation would collect all the time.
const command = process.argv[2];
if (command !== 'serve' && command !== 'simulate') tuneV8(command);

const interruption = new AbortController();
/** Child programs on this terminal, like psql: while one runs, it handles Ctrl-C. */
let children = 0;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (children > 0 && signal === 'SIGINT') return;
    // The first signal lets the command stop by itself, the second one stops it at once.
    if (interruption.signal.aborted) process.exit(EXIT.interrupted);
    interruption.abort(new Interrupted(`interrupted by ${signal}`));
  });
}

// Loaded after tuning, as the memory that loading takes stays (170 MB from Node 24 on).
const { runCli } = await import('./cli/program.ts');
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
// Waits until everything is written, unless the reader has gone.
for (const { stream, isClosed } of [io.out, io.err]) {
  if (!isClosed() && !stream.destroyed) await new Promise((resolve) => stream.write('', resolve));
}
process.exit(code);
