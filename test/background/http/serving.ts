/** `chandler serve` and the service that serves, each test with a database of its own. */
import { once } from 'node:events';
import net from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { lookOften } from '../../support/quick-looks.ts';
import { seedSeries } from '../../support/warehouse.ts';

export const FIRST = Date.UTC(2024, 0, 1);
export let database: TestDatabase;
const running: Serving[] = [];
let looksOften: (stop: AbortSignal) => void = () => undefined;

/** Each test has a database of its own. */
export function useServers(): void {
  looksOften = lookOften();
  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(async () => {
    for (const serving of running.splice(0)) await serving.stop();
    await database.drop();
  });
}

type Serving = { url(): Promise<string>; said(): string; stop(): Promise<number>; ready(): Promise<void> };

/** Without limits, because most tests request old candles. */
export const UNLIMITED = { CHANDLER_SERVE_LIMITS: 'off' };

export function start(command = ['serve'], env: Record<string, string> = UNLIMITED): Serving {
  const stop = new AbortController();
  looksOften(stop.signal);
  let text = '';
  const ended = runCommand(command, {
    env: { DATABASE_URL: database.url, CHANDLER_LISTEN: '127.0.0.1:0', ...env },
    signal: stop.signal,
    onError: (all) => {
      text = all;
    },
  });
  const polling = { timeout: 60_000, interval: 25 };
  const serving: Serving = {
    said: () => text,
    url: () =>
      vi.waitFor(() => {
        const [, url] = /"url":"([^"]+)"/.exec(text) ?? [];
        expect(url, text).toBeDefined();
        return url!;
      }, polling),
    ready: async () => {
      const url = await serving.url();
      await vi.waitFor(async () => expect((await fetch(`${url}/ready`)).status).toBe(200), polling);
    },
    stop: async () => {
      stop.abort();
      return (await ended).code;
    },
  };
  running.push(serving);
  return serving;
}

export const seed = () =>
  seedSeries(database.sql, {
    coinId: 'btc-bitcoin',
    interval: '24h',
    wanted: [{ from: FIRST, to: FIRST + 5 * DAY }],
    covered: [{ from: FIRST, to: FIRST + 5 * DAY }],
    candles: [0, 1, 2, 3, 4].map((n) => FIRST + n * DAY),
  });

/** The status line and the body for a request line that no HTTP library would send. */
export const send = async (url: string, line: string) => {
  const { hostname, port } = new URL(url);
  const socket = net.connect({ host: hostname, port: Number(port) });
  socket.write(`${line} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`);
  let text = '';
  for await (const part of socket) text += part;
  return text;
};
export const METRICS = '# HELP chandler_served_requests_total';

const LOCKED = {
  'nobody asks': { command: ['serve'], lock: 'lock table market.candle in access exclusive mode', path: null },
  'callers wait': { command: ['serve'], lock: 'lock table ops.api_usage in share mode', path: '/v1/coins' },
  'a service waits': {
    command: ['service', '--role', 'http'],
    lock: 'lock table ops.instance in share mode',
    path: null,
  },
} as const;

export function testLocked(who: keyof typeof LOCKED): void {
  test(`is not ready while another session holds a lock, and names the lock: ${who}`, async () => {
    const { command, lock, path } = LOCKED[who];
    await seed();
    const serving = start([...command], {});
    await serving.ready();
    const url = await serving.url();
    const readiness = async () => {
      const answer = await fetch(`${url}/ready`);
      return { status: answer.status, body: await answer.json() };
    };
    const callers = new AbortController();
    await database.sql.begin(async (tx) => {
      const [{ pid }] = (await tx`select pg_backend_pid() as pid`) as unknown as [{ pid: number }];
      await tx.unsafe(lock);
      if (path !== null) void keepAsking(`${url}${path}`, callers.signal);
      await vi.waitFor(
        async () =>
          expect(await readiness()).toMatchObject({
            status: 503,
            body: {
              status: 'waiting',
              incidents: [
                {
                  what: 'a lock in the database',
                  message: expect.stringMatching(
                    new RegExp(
                      `^session ${pid} \\(user '\\w+', chandler test\\) holds a lock that .* pg_terminate_backend\\(${pid}\\)$`,
                    ),
                  ),
                },
              ],
            },
          }),
        { timeout: 60_000, interval: 100 },
      );
    });
    callers.abort();
    await serving.ready();
    expect(await readiness()).toMatchObject({ body: { incidents: [] } });
  });
}

export function testNeverEnding(command: string[]): void {
  test(`clients that never end their request do not keep the server from stopping (${command.join(' ')})`, async () => {
    const serving = start(command);
    const { hostname, port } = new URL(await serving.url());
    const socket = net.connect({ host: hostname, port: Number(port) });
    await once(socket, 'connect');
    socket.write('GET /v1/coins HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    const closed = once(socket, 'close');
    expect(await serving.stop()).toBe(0);
    await closed;
  });
}

async function keepAsking(url: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await fetch(url, { signal }).catch(() => undefined);
}
