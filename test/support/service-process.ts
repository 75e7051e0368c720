/** `chandler service` in a process of its own: its log, its vitals, and its end. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { type RunningCli, startCli } from './program.ts';

export type LogLine = { readonly msg: string; readonly level: string; readonly [field: string]: unknown };

/** As `vitals.mjs` writes it, at most a second old. */
export type Vitals = {
  readonly upMs: number;
  readonly rssMb: number;
  readonly cpuMs: number;
  readonly delays: number;
  /** How late the event loop fired a timer. */
  readonly delayP50Ms: number;
  readonly delayP99Ms: number;
  readonly delayMaxMs: number;
};

export type ServiceProcess = {
  readonly role: string;
  readonly pid: number;
  /** Resolves when it has logged such a line; rejects when it ends first. */
  said(like: RegExp): Promise<LogLine>;
  /** Its log lines above the level info: warnings and errors. */
  readonly complaints: readonly LogLine[];
  /** Null in its first second, and if it is `UNWATCHED`. */
  vitals(): Vitals | null;
  /** Sends SIGTERM. Resolves to the exit code. */
  stop(): Promise<number | null>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
};

/** An environment without vitals, which need a quarter of what an idle service needs. */
export const UNWATCHED = { NODE_OPTIONS: '' };

const PRELOAD = new URL('vitals.mjs', import.meta.url).href;
/** How many lines `said` remembers, because it may be called a little late. */
const REMEMBERED = 50;

export async function startServiceProcess(
  role: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  program: 'service' | 'serve' = 'service',
): Promise<ServiceProcess> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-service-'));
  const file = path.join(folder, 'vitals.json');
  const cli: RunningCli = await startCli([program, ...(program === 'service' ? ['--role', role] : []), ...args], {
    CHANDLER_LISTEN: '127.0.0.1:0',
    NODE_OPTIONS: `--import ${PRELOAD}`,
    VITALS_FILE: file,
    ...env,
  });
  const { process: child, ended } = cli;
  const remembered: LogLine[] = [];
  const complaints: LogLine[] = [];
  const waiting = new Set<(line: LogLine) => void>();
  readline.createInterface({ input: child.stderr! }).on('line', (text) => {
    if (!text.startsWith('{')) return;
    const line = JSON.parse(text) as LogLine;
    remembered.push(line);
    if (remembered.length > REMEMBERED) remembered.shift();
    if (line.level !== 'info' && line.level !== 'debug') complaints.push(line);
    for (const tell of waiting) tell(line);
  });
  const gone = ended.finally(() => rmSync(folder, { recursive: true, force: true }));
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    return (await gone).code;
  };
  return {
    role,
    pid: child.pid!,
    complaints,
    said: (like) =>
      new Promise((resolve, reject) => {
        const known = remembered.find(({ msg }) => like.test(msg));
        if (known) return resolve(known);
        const tell = (line: LogLine) => {
          if (!like.test(line.msg)) return;
          waiting.delete(tell);
          resolve(line);
        };
        waiting.add(tell);
        gone.then(({ code, signal, err }) =>
          reject(new Error(`${role} ended (${code ?? signal}): ${err.slice(-2_000)}`)),
        );
      }),
    vitals: () => {
      try {
        return JSON.parse(readFileSync(file, 'utf8')) as Vitals;
      } catch {
        return null;
      }
    },
    stop: () => end('SIGTERM'),
    kill: async () => void (await end('SIGKILL')),
  };
}
