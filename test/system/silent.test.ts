/** A Postgres or a Redis that falls silent: nothing is closed, nothing is refused, nothing comes any more. Real processes, a relay between. */
import { describe, expect, type TestContext, test, vi } from 'vitest';
import { stopwatch } from '../../src/clock.ts';
import { createTestDatabase, type TestDatabase, testRedisUrl } from '../support/database.ts';
import { createRelay, type Relay } from '../support/relay.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts';
import { startUpstream } from '../support/simulated-upstream.ts';

/** What one test has for itself: most of its time it waits for something to be given up, so all of them run at once. */
type Scene = {
  readonly database: TestDatabase;
  relayTo(url: string): Promise<Relay>;
  start(role: string, env: Record<string, string>, program?: 'service' | 'serve'): Promise<Started>;
  /** Started while what it needs is silent: it has said nothing yet. */
  launch(role: string, env: Record<string, string>, program?: 'service' | 'serve'): Promise<ServiceProcess>;
};

type Started = {
  readonly service: ServiceProcess;
  get(path: string): Promise<{ readonly status: number; readonly text: string; readonly ms: number }>;
};

async function setScene({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): Promise<Scene> {
  const upstream = await startUpstream({ seed: 5, coins: 20 });
  const database = await createTestDatabase();
  const relays: Relay[] = [];
  const running: ServiceProcess[] = [];
  onTestFinished(async () => {
    for (const one of running) await one.kill();
    for (const relay of relays) await relay.close();
    await upstream.close();
    await database.drop();
  });
  const launch: Scene['launch'] = async (role, env, program = 'service') => {
    const service = await startServiceProcess(role, { CHANDLER_BASE_URL: upstream.baseUrl, ...env }, [], program);
    running.push(service);
    return service;
  };
  return {
    database,
    launch,
    relayTo: async (url) => {
      const relay = await createRelay(url);
      relays.push(relay);
      return relay;
    },
    start: async (role, env, program) => {
      const service = await launch(role, env, program);
      const { url } = await service.said(/^serving/);
      await service.said(/^ready/);
      const get: Started['get'] = async (path) => {
        const begun = stopwatch();
        const answer = await fetch(`${url}${path}`);
        return { status: answer.status, text: await answer.text(), ms: stopwatch() - begun };
      };
      return { service, get };
    },
  };
}

const HOW_SOON = { timeout: 35_000, interval: 250 };

/** SIGTERM, and at most ten seconds. */
async function stopsInTime(service: ServiceProcess): Promise<void> {
  const begun = stopwatch();
  expect(await service.stop()).toBe(0);
  expect(stopwatch() - begun).toBeLessThan(10_000);
}

describe('a database that falls silent', { timeout: 120_000, concurrent: true }, () => {
  test('is told of, does not hang the figures, and is used again when it is back', async (context) => {
    const { database, relayTo, start } = await setScene(context);
    const relay = await relayTo(database.url);
    const { service, get } = await start('all', { DATABASE_URL: relay.url });
    relay.freeze();
    expect(await get('/metrics')).toMatchObject({ status: 200, text: expect.stringMatching(/^process_cpu/m) });
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 503 }), HOW_SOON);
    expect(JSON.parse((await get('/health')).text).incidents).toContainEqual(
      expect.objectContaining({ what: 'the database', message: expect.stringMatching(/does not answer/) }),
    );
    const { status, text, ms } = await get('/metrics');
    expect(status).toBe(200);
    expect(text).toMatch(/^chandler_ready 0$/m);
    expect(ms).toBeLessThan(6_500);
    relay.mend();
    await service.said(/^the database recovered/);
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 200 }), HOW_SOON);
  });

  test.for(['all', 'http'])(
    'does not keep %s from ending within ten seconds, however soon it is told to',
    async (role, context) => {
      const { database, relayTo, start } = await setScene(context);
      const relay = await relayTo(database.url);
      const { service } = await start(role, { DATABASE_URL: relay.url });
      relay.freeze();
      await stopsInTime(service);
    },
  );

  test('before it was open does not keep the service from ending either', async (context) => {
    const { database, launch, relayTo } = await setScene(context);
    const relay = await relayTo(database.url);
    relay.freeze();
    const service = await launch('all', { DATABASE_URL: relay.url });
    await service.said(/^serving/);
    await stopsInTime(service);
  });

  test('is told of by serve, which ends in time', async (context) => {
    const { database, relayTo, start } = await setScene(context);
    const relay = await relayTo(database.url);
    const { service, get } = await start('', { DATABASE_URL: relay.url }, 'serve');
    relay.freeze();
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 503 }), HOW_SOON);
    expect(await get('/v1/global')).toMatchObject({ status: 503 });
    relay.mend();
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 200 }), HOW_SOON);
    relay.freeze();
    await stopsInTime(service);
  });
});

describe.skipIf(testRedisUrl() === null)('a Redis that falls silent', { timeout: 120_000, concurrent: true }, () => {
  test('is told of, is used again when it is back, and does not keep the service from ending', async (context) => {
    const { database, relayTo, start } = await setScene(context);
    const relay = await relayTo(testRedisUrl()!);
    const { service, get } = await start('all', { DATABASE_URL: database.url, REDIS_URL: relay.url });
    relay.freeze();
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 503 }), HOW_SOON);
    expect(JSON.parse((await get('/health')).text).incidents).toContainEqual(
      expect.objectContaining({ what: 'the queue' }),
    );
    relay.mend();
    await service.said(/^the queue recovered/);
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 200 }), HOW_SOON);
    relay.freeze();
    await stopsInTime(service);
  });
});
