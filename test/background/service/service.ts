/** Services as their operator starts them, against a simulator over HTTP, each test with a database of its own. */
import { afterAll, beforeAll, expect, type TestContext, test, vi } from 'vitest';
import { stopwatch, systemClock } from '../../../src/clock.ts';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase, testRedisUrl } from '../../support/database.ts';
import { lookOften } from '../../support/quick-looks.ts';
import { createRelay } from '../../support/relay.ts';

let looksOften: (stop: AbortSignal) => void = () => undefined;
let server: Listening;

export function useServer(): void {
  looksOften = lookOften();
  beforeAll(async () => {
    const simulator = createSimulator({
      market: 'made-up',
      coins: 12,
      clock: systemClock,
      unlimited: true,
      onError: (error) => {
        throw error;
      },
    });
    server = await listen(simulator.fetch, { host: '127.0.0.1', port: 0 });
  });
  afterAll(() => server.close());
}

type Line = { readonly msg: string; readonly level: string; readonly [field: string]: unknown };
type Service = {
  lines(): Line[];
  /** Resolves to the first line that matches. */
  line(like: RegExp): Promise<Line>;
  get(path: string): Promise<{ readonly status: number; readonly text: string }>;
  stop(): Promise<number>;
};

/** The objects of one test. A test mostly waits for a service, so many tests run at once. */
export type Scene = {
  readonly database: TestDatabase;
  readonly env: Readonly<Record<string, string>>;
  start(argv?: readonly string[], more?: Record<string, string>): Service;
  chandler(...argv: string[]): Promise<string>;
  json(...argv: string[]): ReturnType<typeof JSON.parse>;
};

export async function setScene({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): Promise<Scene> {
  const database = await createTestDatabase();
  const env = {
    DATABASE_URL: database.url,
    CHANDLER_BASE_URL: `${server.url}/v1`,
    CHANDLER_PLAN: 'pro',
    CHANDLER_LISTEN: '127.0.0.1:0',
  };
  const services: Service[] = [];
  onTestFinished(async () => {
    for (const service of services) await service.stop();
    await database.drop();
  });
  const chandler = async (...argv: string[]) => {
    const { code, out, err } = await runCommand(argv, { env });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    return out;
  };
  return {
    database,
    env,
    chandler,
    json: async (...argv) => JSON.parse(await chandler(...argv, '--json')),
    start: (argv = [], more = {}) => {
      const service = startService(['service', ...argv], { ...env, ...more });
      services.push(service);
      return service;
    },
  };
}

function startService(argv: readonly string[], env: Readonly<Record<string, string>>): Service {
  const stop = new AbortController();
  looksOften(stop.signal);
  let text = '';
  const ended = runCommand(argv, {
    env,
    signal: stop.signal,
    onError: (all) => {
      text = all;
    },
  });
  const lines = () =>
    text
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Line);
  const service: Service = {
    lines,
    line: (like) =>
      vi.waitFor(
        () => {
          const found = lines().find(({ msg }) => like.test(msg));
          expect(found, `no line like ${like} in\n${text}`).toBeDefined();
          return found!;
        },
        { timeout: 60_000, interval: 25 },
      ),
    get: async (path) => {
      const { url } = await service.line(/^serving/);
      const answer = await fetch(`${url}${path}`);
      return { status: answer.status, text: await answer.text() };
    },
    stop: async () => {
      stop.abort();
      return (await ended).code;
    },
  };
  return service;
}

/** For each thing that is away: its real address, and the settings with which a service reaches it at another address. */
const AWAY = {
  'the database': { target: ({ url }: TestDatabase) => url, settings: (url: string) => ({ DATABASE_URL: url }) },
  'the queue': { target: () => testRedisUrl()!, settings: (url: string) => ({ REDIS_URL: url }) },
} as const;

export function testAway(role: 'all' | 'http', what: keyof typeof AWAY): void {
  const { target, settings } = AWAY[what];
  test(`of role ${role} is not ready while ${what} is away`, async (context) => {
    const { database, start } = await setScene(context);
    const relay = await createRelay(target(database));
    try {
      const service = start(['--role', role], settings(relay.url));
      await service.line(/^ready/);
      const stands = async (status: number, isReady: 0 | 1) => {
        await vi.waitFor(async () => expect(await service.get('/ready')).toMatchObject({ status }), {
          timeout: 60_000,
        });
        expect((await service.get('/metrics')).text).toMatch(new RegExp(`^chandler_ready ${isReady}$`, 'm'));
      };
      await stands(200, 1);
      relay.cut();
      await stands(503, 0);
      expect(JSON.parse((await service.get('/ready')).text).incidents).toContainEqual(
        expect.objectContaining({ what }),
      );
      relay.mend();
      await stands(200, 1);
      await service.stop();
    } finally {
      await relay.close();
    }
  });
}

export function testStartedWhileDown(what: 'the database' | 'the queue'): void {
  test(`is started while ${what} is down, continues when it comes back, and ends in time when it is gone again`, async (context) => {
    const { database, start } = await setScene(context);
    const [variable, target] =
      what === 'the database' ? ['DATABASE_URL', database.url] : ['REDIS_URL', testRedisUrl()!];
    const relay = await createRelay(target);
    try {
      relay.cut();
      const service = start([], { [variable]: relay.url });
      await service.line(new RegExp(`^${what}: `));
      expect(await service.get('/ready')).toMatchObject({ status: 503 });
      relay.mend();
      await service.line(new RegExp(`^${what} recovered`));
      await service.line(/^ready/);
      await service.line(/^schedule coins: done/);
      relay.cut();
      await vi.waitFor(async () => expect(await service.get('/ready')).toMatchObject({ status: 503 }), {
        timeout: 60_000,
      });
      const begun = stopwatch();
      expect(await service.stop()).toBe(0);
      expect(stopwatch() - begun).toBeLessThan(10_000);
    } finally {
      relay.mend();
      await relay.close();
    }
  });
}
