/** Services of docker-compose.yml as processes of this machine: with their commands, environments and health checks. Only addresses differ. */
import { type ChildProcess, spawn } from 'node:child_process';
import { vi } from 'vitest';
import { ensureBuilt } from './build.ts';
import { type ComposeFile, environmentOf, type Service, type Variables } from './compose-file.ts';

/** Address in the file → address here. */
export type Addresses = Readonly<Record<string, string>>;

export type Ended = { readonly code: number | null; readonly signal: NodeJS.Signals | null };
export type Composed = {
  readonly name: string;
  readonly output: () => string;
  /** The address that the service reports, such as `127.0.0.1:41234`: of the port for operators if it has one, else of its only port. */
  readonly address: () => Promise<string>;
  /** The exit code of its health check. */
  readonly health: () => Promise<number | null>;
  readonly ended: Promise<Ended>;
  /** Stops it as Compose does: SIGTERM, and SIGKILL after the grace period. */
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
    // The image sets NODE_ENV. Processes on one machine cannot share the port of the image.
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
