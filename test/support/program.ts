/** Runs the program as its users do: as a process of its own, from the build. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ensureBuilt } from './build.ts';

export type CliResult = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
};

export type RunningCli = {
  readonly process: ChildProcess;
  readonly ended: Promise<CliResult>;
};

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Starts `chandler …args` with this environment and no other Chandler setting. `node`: the Node that runs it. */
export async function startCli(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  node: string = process.execPath,
): Promise<RunningCli> {
  const { main } = await built();
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(CHANDLER_|DATABASE_URL$|REDIS_URL$|LOG_LEVEL$|VITEST|NODE_OPTIONS$)/.test(name),
    ),
  );
  const child = spawn(node, [main, ...args], {
    cwd: ROOT,
    env: { ...clean, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (part: Buffer) => (out += part));
  child.stderr.on('data', (part: Buffer) => (err += part));
  const ended = new Promise<CliResult>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, out, err }));
  });
  return { process: child, ended };
}

export async function runCli(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CliResult> {
  return (await startCli(args, env)).ended;
}

/** Resolves when standard error prints this from now on, or the program has ended. */
export function untilSaid({ process: child }: RunningCli, what: RegExp): Promise<void> {
  let said = '';
  return new Promise((resolve) => {
    child.stderr!.on('data', (part: Buffer) => {
      said += part;
      if (what.test(said)) resolve();
    });
    child.once('close', () => resolve());
    // It has ended before: the caller continues and checks how.
    if (child.exitCode !== null || child.signalCode !== null) resolve();
  });
}

async function built(): Promise<{ main: string }> {
  const dist = await ensureBuilt();
  return { main: `${typeof dist === 'string' ? dist : `${ROOT}/dist`}/main.js` };
}
