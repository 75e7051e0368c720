/** `chandler serve` with locks, a lost database, or callers that hold every connection; the other cases are in `market-server.test.ts`. */
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { CONNECTION_LIMITS } from '../../../src/service/http/listen.ts';
import { runCommand } from '../../support/cli.ts';
import { createRelay } from '../../support/relay.ts';
import { database, METRICS, seed, send, start, testLocked, testNeverEnding, UNLIMITED, useServers } from './serving.ts';

useServers();

describe('chandler serve', () => {
  testLocked('nobody asks');
  testLocked('a service waits');
  testNeverEnding(['serve']);

  test('while neither key nor answer can be looked up, a caller with a key gets the same 503 as everyone', async () => {
    await seed();
    await database.sql`
      insert into market.ticker (coin_id, updated_at, at, seen_at, rank, position, price)
      values ('btc-bitcoin', now(), now(), now(), 1, 1, 42.5)`;
    const made = await runCommand(['keys', 'create', '--plan', 'unlimited', '--json'], {
      env: { DATABASE_URL: database.url },
    });
    const { key } = JSON.parse(made.out) as { key: string };
    const relay = await createRelay(database.url);
    const serving = start(['serve'], { DATABASE_URL: relay.url });
    await serving.ready();
    const path = `${await serving.url()}/v1/tickers/btc-bitcoin`;
    const ask = async () => {
      const { status, headers } = await fetch(path, { headers: { Authorization: key } });
      return [status, headers.get('access-control-allow-origin'), headers.has('retry-after')];
    };
    for (let i = 0; i < 2; i++) expect(await ask()).toEqual([200, '*', false]);
    relay.cut();
    // For longer than a key is valid without a lookup.
    for (let i = 0; i < 12; i++) {
      expect(await ask()).toEqual([503, '*', true]);
      await delay(250);
    }
    relay.mend();
    await vi.waitFor(async () => expect(await ask()).toEqual([200, '*', false]), { timeout: 60_000, interval: 250 });
    await serving.stop();
    // One line for each cause, whichever caller met it, and at the end the count of the others. No stack.
    const failed = serving
      .said()
      .split('\n')
      .flatMap((line) => (/"a request failed"/.test(line) ? [JSON.parse(line)] : []));
    const causes = new Set(failed.map(({ cause }) => cause));
    expect(failed.filter(({ count }) => count === undefined)).toHaveLength(causes.size);
    expect(failed.length).toBeLessThanOrEqual(2 * causes.size);
    expect(failed.reduce((sum, { count = 1 }) => sum + count, 0)).toBeGreaterThanOrEqual(10);
    expect(serving.said()).not.toMatch(/"stack"/);
    await relay.close();
  });

  test('a caller whose requests cannot be counted because of a lock gets 503', async () => {
    await seed();
    const serving = start(['serve'], {});
    await serving.ready();
    const url = await serving.url();
    await database.sql.begin(async (tx) => {
      await tx`lock table ops.api_usage in share mode`;
      const answer = await fetch(`${url}/v1/coins`);
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    });
    expect((await fetch(`${url}/v1/coins`)).status).toBe(200);
  });

  test('a key has one rate limit, however many processes serve it', async () => {
    await seed();
    const create = ['keys', 'create', '--plan', 'unlimited', '--requests-per-second', '10', '--json'];
    const made = await runCommand(create, { env: { DATABASE_URL: database.url } });
    const { key } = JSON.parse(made.out) as { key: string };
    const urls = await Promise.all(
      [start(['serve'], {}), start(['serve'], {})].map(async (serving) => {
        await serving.ready();
        return serving.url();
      }),
    );
    const began = performance.now();
    let answered = 0;
    let due = 0;
    let pausedAt = began;
    while (due < 30) {
      // A pause adds as many permits as the rate allows in it, but never more than those of one second.
      due += 10 * Math.min(1, (performance.now() - pausedAt) / 1_000);
      // Many at once, because a slow machine answers few rounds.
      const asked = urls.flatMap((url) => Array.from({ length: 10 }, () => `${url}/v1/coins/btc-bitcoin`));
      const answers = await Promise.all(asked.map((url) => fetch(url, { headers: { Authorization: key } })));
      answered += answers.filter(({ status }) => status === 200).length;
      pausedAt = performance.now();
      // Ten times the allowed rate is enough to show the limit; a higher rate only keeps the machine busy.
      await delay(200);
    }
    const seconds = (performance.now() - began) / 1_000;
    expect(answered).toBeGreaterThanOrEqual(30);
    expect(answered).toBeLessThanOrEqual(10 + 10 * seconds + 10);
  });
});

describe('the paths for operators', () => {
  test('have an address of their own, where they are answered while callers hold every connection of the other address', async () => {
    const serving = start(['serve'], {
      ...UNLIMITED,
      CHANDLER_OPERATIONS_LISTEN: '127.0.0.1:0',
      CHANDLER_CONNECTIONS_PER_ADDRESS: 'unlimited',
    });
    const url = await serving.url();
    const operations = await vi.waitFor(() => {
      const [, found] = /"operationsUrl":"([^"]+)"/.exec(serving.said()) ?? [];
      expect(found).toBeDefined();
      return found!;
    }, 60_000);
    await vi.waitFor(async () => expect((await fetch(`${operations}/ready`)).status).toBe(200), 60_000);
    expect(await (await fetch(`${operations}/metrics`)).text()).toContain(METRICS);
    expect((await fetch(`${operations}/v1/coins`)).status).toBe(404);
    const refused = await fetch(`${operations}/ready`, { method: 'DELETE' });
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    for (const path of ['/health', '/ready', '/metrics', '/backfills']) {
      expect([path, (await fetch(`${url}${path}`)).status]).toEqual([path, 404]);
    }
    expect((await fetch(`${url}/v1/coins`)).status).toBe(200);
    const { hostname, port } = new URL(url);
    const held: net.Socket[] = [];
    // A hundred at a time, because the kernel queues only a few hundred that are not accepted yet.
    while (held.length < CONNECTION_LIMITS.maxConnections) {
      const more = Array.from({ length: 100 }, () =>
        net.connect({ host: hostname, port: Number(port) }).on('error', () => undefined),
      );
      await Promise.all(more.map((socket) => once(socket, 'connect')));
      held.push(...more);
    }
    // There is no connection left for a caller …
    await vi.waitFor(() => expect(send(url, 'GET /v1/coins')).rejects.toThrow('ECONNRESET'), 60_000);
    // … but there is one for a probe.
    expect((await fetch(`${operations}/ready`)).status).toBe(200);
    expect((await fetch(`${operations}/health`)).status).toBe(200);
    for (const socket of held) socket.destroy();
    expect(await serving.stop()).toBe(0);
  });
});
