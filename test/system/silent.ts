/** A Postgres or a Redis that falls silent: it closes and refuses nothing, and sends nothing any more. Real processes, with a relay between. */
import { expect, type TestContext, test } from 'vitest';
import { stopwatch } from '../../src/clock.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createRelay, type Relay } from '../support/relay.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts';
import { startUpstream } from '../support/simulated-upstream.ts';

/** What each test has for itself. It mostly waits for a timeout, so all tests run at once. */
type Scene = {
  readonly database: TestDatabase;
  relayTo(url: string): Promise<Relay>;
  start(role: string, env: Record<string, string>, program?: 'service' | 'serve'): Promise<Started>;
  /** Starts a service while what it needs is silent. The service has reported nothing yet. */
  launch(role: string, env: Record<string, string>, program?: 'service' | 'serve'): Promise<ServiceProcess>;
};

type Started = {
  readonly service: ServiceProcess;
  get(path: string): Promise<{ readonly status: number; readonly text: string; readonly ms: number }>;
};

export async function setScene({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): Promise<Scene> {
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

export const HOW_SOON = { timeout: 35_000, interval: 250 };

/** Sends SIGTERM and waits at most ten seconds. */
export async function stopsInTime(service: ServiceProcess): Promise<void> {
  const begun = stopwatch();
  expect(await service.stop()).toBe(0);
  expect(stopwatch() - begun).toBeLessThan(10_000);
}

/** Tests a service with this role. */
export function testStopsInTime(role: 'all' | 'http'): void {
  test(`does not keep ${role} from ending within ten seconds, however soon it is told to`, async (context) => {
    const { database, relayTo, start } = await setScene(context);
    const relay = await relayTo(database.url);
    const { service } = await start(role, { DATABASE_URL: relay.url });
    relay.freeze();
    await stopsInTime(service);
  });
}
