/** Services of docker-compose.yml as processes here: their commands, their environment, their health checks. Only addresses differ. */
import { type ChildProcess, spawn } from 'node:child_process';
import { vi } from 'vitest';
import { ensureBuilt } from './build.ts';
import { type ComposeFile, environmentOf, type Service, type Variables } from './compose-file.ts';

/** What stands in the file → what it is here. */
export type Addresses = Readonly<Record<string, string>>;

export type Ended = { readonly code: number | null; readonly signal: NodeJS.Signals | null };
export type Composed = {
  readonly name: string;
  readonly output: () => string;
  /** Of the port for operators where there is one, else of the only one, as it says itself: `127.0.0.1:41234`. */
  readonly address: () => Promise<string>;
  /** The exit code of its health check. */
  readonly health: () => Promise<number | null>;
  readonly ended: Promise<Ended>;
  /** As Compose does it: SIGTERM, and SIGKILL when its time to stop is over. */
  readonly stop: () => Promise<Ended>;
};

export type Starter = (name: string, addresses?: Addresses) => Promise<Composed>;

export function createStarter(file: ComposeFile, variables: Variables): Starter {
  return async (name, addresses = {}) => {
    const service = file.services[name]!;
    const dist = await ensureBuilt();
    const here = (text: string) =>
      Object.entries(addresses).reduce((all, [there, address]) => all.replaceAll(there, address), text);
    const environment = Object.entries(environmentOf(service, variables)).map(([key, value]) => [key, here(value)]);
    // The image adds NODE_ENV, and so many processes on one machine cannot all have its port.
    const child = spawn(process.execPath, [`${dist}/main.js`, ...service.command.map(here)], {
      cwd: '/',
      env: { PATH: process.env.PATH, NODE_ENV: 'production', ...Object.fromEntries(environment) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return composed(name, service, child);
  };
}

function composed(name: string, service: Service, child: ChildProcess): Composed {
  let text = '';
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (part: Buffer) => (text += part));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal }));
  });
  const address = () =>
    vi.waitFor(
      () => {
        const isApart = 'CHANDLER_OPERATIONS_LISTEN' in service.environment;
        const said = isApart ? /\/ready.* at http:\/\/(127\.0\.0\.1:\d+)/ : /at http:\/\/(127\.0\.0\.1:\d+)/;
        const found = said.exec(text)?.[1];
        if (found === undefined) throw new Error(`${name} listens nowhere:\n${text}`);
        return found;
      },
      { timeout: 60_000, interval: 50 },
    );
  return {
    name,
    output: () => text,
    address,
    ended,
    health: async () => runCheck(service, await address()),
    stop: async () => {
      const patience = setTimeout(() => child.kill('SIGKILL'), Number.parseInt(service.stop_grace_period!, 10) * 1000);
      child.kill('SIGTERM');
      const end = await ended;
      clearTimeout(patience);
      return end;
    },
  };
}

function runCheck({ healthcheck }: Service, address: string): Promise<number | null> {
  const [kind, program, ...args] = healthcheck!.test;
  if (kind !== 'CMD' || program !== 'node') throw new Error(`not a check of Chandler: ${healthcheck!.test.join(' ')}`);
  const child = spawn(
    process.execPath,
    args.map((arg) => arg.replace(/127\.0\.0\.1:80(81|90)/, address)),
    { stdio: 'ignore' },
  );
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
}
