/** `chandler serve` as its operator starts it, with faulty clients and with a database that fails. */
import { once } from 'node:events';
import net from 'node:net';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, test, vi } from 'vitest';
import { routeOf } from '../../../src/background/http/market-http-metrics.ts';
import { createClient } from '../../../src/store/connection/connect.ts';
import { openReader } from '../../../src/store/connection/reader.ts';
import { runCommand } from '../../support/cli.ts';
import { createEmptyDatabase } from '../../support/database.ts';
import { database, METRICS, seed, send, start, testLocked, testNeverEnding, UNLIMITED, useServers } from './serving.ts';

useServers();

test('while there is no database, every request gets a 503 that web pages can read and no cache keeps', async () => {
  const serving = start(['serve'], { ...UNLIMITED, DATABASE_URL: 'postgres://u@127.0.0.1:1/x' });
  const answer = await fetch(`${await serving.url()}/v1/coins`);
  expect([answer.status, await answer.json()]).toEqual([
    503,
    { error: 'the database is starting; try again in a few seconds' },
  ]);
  const headers = [
    'access-control-allow-origin',
    'vary',
    'x-content-type-options',
    'content-security-policy',
    'cache-control',
    'retry-after',
  ].map((name) => answer.headers.get(name));
  expect(headers).toEqual([
    '*',
    'Accept-Encoding, Authorization',
    'nosniff',
    "default-src 'none'; frame-ancestors 'none'",
    'no-store',
    '5',
  ]);
  expect(answer.headers.get('access-control-expose-headers')).toContain('Retry-After');
  const asked = await fetch(`${await serving.url()}/v1/coins`, { method: 'OPTIONS' });
  expect([asked.status, asked.headers.get('access-control-allow-headers')]).toEqual([
    204,
    // The headers that MCP clients send as well: a page keeps this answer for a day, whatever it requests then.
    'Authorization, Content-Type, If-None-Match, MCP-Protocol-Version, Mcp-Method, Mcp-Name',
  ]);
});

test('offers an MCP client that knows only the address the tools of a warehouse, and SQL when SQL is enabled', async () => {
  await seed();
  const names = async (env: Record<string, string>) => {
    const serving = start(['serve'], env);
    await serving.ready();
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL('/rpc', await serving.url())));
    const { tools } = await client.listTools();
    return { client, last: tools.map(({ name }) => name).slice(31) };
  };
  const without = await names({});
  expect(without.last).toEqual(['getOHLCV', 'getCoverage', 'getGaps', 'explainCandle']);
  const { structuredContent } = await without.client.callTool({ name: 'getCoverage', arguments: {} });
  expect(structuredContent).toMatchObject({ result: [{ coin_id: 'btc-bitcoin', slots_covered: 5 }] });
  expect((await without.client.callTool({ name: 'getGaps', arguments: {} })).structuredContent).toEqual({ result: [] });
  // An old candle, without a key: its story is refused like the candle itself.
  const old = { coinId: 'btc-bitcoin', interval: '24h', time: '2024-01-01' };
  expect(await without.client.callTool({ name: 'explainCandle', arguments: old })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/^402: Getting historical OHLCV data/) }],
  });
  await without.client.close();
  const withSql = await names({ ...UNLIMITED, CHANDLER_SERVE_SQL: 'on' });
  expect(withSql.last).toEqual(['getOHLCV', 'getCoverage', 'getGaps', 'explainCandle', 'runSql']);
  const statement = 'select coin_id, count(*) from candles group by 1';
  const answer = await withSql.client.callTool({ name: 'runSql', arguments: { statement } });
  expect(answer.structuredContent).toEqual({
    columns: ['coin_id', 'count'],
    rows: [['btc-bitcoin', 5]],
    truncated: false,
  });
  // The role that serves may read the tables that the story is made from.
  const story = await withSql.client.callTool({ name: 'explainCandle', arguments: old });
  expect(story.structuredContent).toMatchObject({ time_open: '2024-01-01T00:00:00Z' });
  expect(JSON.stringify(story.structuredContent)).toContain('The slot is final');
  const wrong = await withSql.client.callTool({ name: 'explainCandle', arguments: { ...old, time: 'soon' } });
  expect(wrong).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/^400: invalid parameters: time must be/) }],
  });
  await withSql.client.close();
});

describe('chandler serve', () => {
  test('answers like the upstream, with provenance headers, and counts requests in its metrics', async () => {
    await seed();
    const serving = start();
    await serving.ready();
    const url = await serving.url();
    const answer = await fetch(`${url}/v1/coins/btc-bitcoin/ohlcv/historical?start=2024-01-01&end=2024-01-05`);
    expect([answer.status, ((await answer.json()) as unknown[]).length]).toEqual([200, 5]);
    expect((await fetch(`${url}/v1/tickers/nono-nowhere`)).status).toBe(404);
    const rpc = await fetch(`${url}/rpc`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
    });
    expect(((await rpc.json()) as { result: { tools: unknown[] } }).result.tools.length).toBeGreaterThan(18);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toContain('chandler_served_requests_total{route="/v1/coins/{}/ohlcv/historical",status="200"} 1');
    expect(metrics).toContain('chandler_served_requests_total{route="/v1/tickers/{}",status="404"} 1');
    expect(metrics).toMatch(/chandler_served_cache_total\{cache="response",result="miss"\} 1/);
    expect(await serving.stop()).toBe(0);
  });

  test('a key is admitted with the limits of its plan and gets its allowance; an unknown key is refused', async () => {
    await seed();
    const env = { DATABASE_URL: database.url };
    const create = await runCommand(['keys', 'create', '--plan', 'starter', '--monthly-requests', '2', '--json'], {
      env,
    });
    const { key, prefix } = JSON.parse(create.out) as { key: string; prefix: string };
    const serving = start(['serve'], {});
    await serving.ready();
    const url = await serving.url();
    const ask = (authorization?: string, path = '/v1/coins') =>
      fetch(`${url}${path}`, authorization === undefined ? {} : { headers: { Authorization: authorization } });
    const first = await ask(`Bearer ${key}`);
    expect([first.status, first.headers.get('ratelimit-limit'), first.headers.get('ratelimit-remaining')]).toEqual([
      200,
      '2',
      '1',
    ]);
    expect(first.headers.get('cache-control')).toContain('private');
    expect((await ask(key)).status).toBe(200);
    const third = await ask(`Bearer ${key}`);
    expect([third.status, await third.json()]).toEqual([402, { error: 'you have reached maximum request limit' }]);
    expect(Number(third.headers.get('retry-after'))).toBeGreaterThan(0);
    // A caller that has spent its month may still ask how much it has spent.
    expect(await (await ask(`Bearer ${key}`, '/v1/users/me')).json()).toMatchObject({
      plan: 'starter',
      usage: { current_month: { requests_made: 2, requests_left: 0 } },
    });
    expect((await ask('Bearer not-one-of-ours')).status).toBe(403);
    // Without a key the limits of the free plan apply: candles of the last day, and at most a thousand requests.
    const free = await ask(undefined, '/v1/coins/btc-bitcoin/ohlcv/historical?start=2024-01-01&limit=5');
    expect([free.status, free.headers.get('ratelimit-limit')]).toEqual([402, '1000']);
    expect(((await free.json()) as { error: string }).error).toContain('is not allowed in this plan');
    const counted = await runCommand(['keys', 'list'], { env });
    expect(counted.out).toContain(prefix);
    expect(serving.said()).not.toContain(key);
    await serving.stop();
  });

  test('a cached answer follows the same rules as a new one: counted once, current, and by plan', async () => {
    await seed();
    const env = { DATABASE_URL: database.url };
    const keyOf = async (...args: string[]) =>
      JSON.parse((await runCommand(['keys', 'create', '--json', ...args], { env })).out) as {
        key: string;
        prefix: string;
      };
    const rich = await keyOf('--plan', 'enterprise', '--monthly-requests', '5');
    const poor = await keyOf('--plan', 'free', '--monthly-requests', '4');
    await database.sql`
      insert into market.ticker (coin_id, updated_at, at, seen_at, rank, position, price, circulating_supply)
      values ('btc-bitcoin', now(), now(), now(), 1, 1, 42.5, 19000000)`;
    const serving = start(['serve'], {});
    await serving.ready();
    const path = `${await serving.url()}/v1/tickers/btc-bitcoin?quotes=USD`;
    const ask = (key: string, headers: Record<string, string> = {}) =>
      fetch(path, { headers: { Authorization: key, ...headers } });
    const read = async (answer: Response) => {
      const { circulating_supply, quotes } = (await answer.json()) as {
        circulating_supply?: number;
        quotes: { USD: { price: number } };
      };
      return [circulating_supply, quotes.USD.price, answer.headers.get('ratelimit-remaining')];
    };
    const first = await ask(rich.key);
    const etag = first.headers.get('etag')!;
    const again = await ask(rich.key);
    const headersOf = ({ headers }: Response) =>
      [...headers.keys()].filter((name) => !['keep-alive', 'connection'].includes(name)).sort();
    expect(headersOf(again)).toEqual(headersOf(first));
    expect([again.headers.get('etag'), again.headers.get('cache-control')]).toEqual([etag, 'private, max-age=60']);
    expect([await read(first), await read(again)]).toEqual([
      [19_000_000, 42.5, '4'],
      [19_000_000, 42.5, '3'],
    ]);
    // A caller on another plan sees less, whoever sent the same request before.
    expect(await read(await ask(poor.key))).toEqual([undefined, 42.5, '3']);
    expect(await read(await ask(poor.key))).toEqual([undefined, 42.5, '2']);
    const known = await ask(rich.key, { 'If-None-Match': etag });
    expect([known.status, await known.text(), known.headers.get('ratelimit-remaining')]).toEqual([304, '', '2']);
    // The change is committed, the very next answer shows it, and that answer is counted once.
    await database.sql`update market.ticker set price = 43.5`;
    expect(await read(await ask(rich.key, { 'If-None-Match': etag }))).toEqual([19_000_000, 43.5, '1']);
    expect((await fetch(path, { method: 'HEAD', headers: { Authorization: rich.key } })).headers.get('etag')).not.toBe(
      etag,
    );
    const spent = await ask(rich.key);
    expect([spent.status, await spent.json()]).toEqual([402, { error: 'you have reached maximum request limit' }]);
    expect((await ask('not-one-of-ours')).status).toBe(403);
    const metrics = await (await fetch(`${await serving.url()}/metrics`)).text();
    const told = (status: number) =>
      new RegExp(`chandler_served_requests_total\\{route="/v1/tickers/\\{\\}",status="${status}"\\} (\\d+)`).exec(
        metrics,
      )?.[1];
    expect([told(304), told(402)]).toEqual(['1', '1']);
    await runCommand(['keys', 'revoke', poor.prefix], { env });
    await vi.waitFor(async () => expect((await ask(poor.key)).status).toBe(403), { timeout: 60_000, interval: 700 });
    await serving.stop();
  });

  test('a cached answer is not sent while the database cannot confirm that it is current', async () => {
    await seed();
    await database.sql`
      insert into market.ticker (coin_id, updated_at, at, seen_at, rank, position, price)
      values ('btc-bitcoin', now(), now(), now(), 1, 1, 42.5)`;
    const serving = start();
    await serving.ready();
    const path = `${await serving.url()}/v1/tickers/btc-bitcoin`;
    for (let i = 0; i < 3; i++) expect((await fetch(path)).status).toBe(200);
    await database.sql`alter table ops.version rename to version_gone`;
    expect((await fetch(path)).status).toBe(500);
    await database.sql`alter table ops.version_gone rename to version`;
    expect((await fetch(path)).status).toBe(200);
  });

  test('one address cannot have more connections than the limit', async () => {
    const serving = start(['serve'], { ...UNLIMITED, CHANDLER_CONNECTIONS_PER_ADDRESS: '2' });
    const port = Number(new URL(await serving.url()).port);
    const open = async () => {
      const socket = net.connect(port, '127.0.0.1');
      await once(socket, 'connect');
      return socket;
    };
    const [first, second] = [await open(), await open()];
    const [said] = await once(await open(), 'data');
    expect(String(said)).toContain('429 Too Many Requests');
    first.destroy();
    second.destroy();
  });

  test('behind a trusted proxy each caller is counted separately; the header is ignored from any other address', async () => {
    const asked = async (env: Record<string, string>) => {
      const serving = start(['serve'], env);
      await serving.ready();
      const url = await serving.url();
      for (const from of ['198.51.100.1', '198.51.100.2'])
        await fetch(`${url}/v1/coins`, { headers: { 'X-Forwarded-For': from } });
      await serving.stop();
      const rows = await database.sql<{ subject: string }[]>`delete from ops.api_usage returning subject`;
      return rows.map((row) => row.subject).sort();
    };
    expect(await asked({})).toEqual(['address:127.0.0.1']);
    expect(await asked({ CHANDLER_TRUSTED_PROXIES: '127.0.0.0/8' })).toEqual([
      'address:198.51.100.1',
      'address:198.51.100.2',
    ]);
  });

  test('waits for a database that is not migrated yet, and reports that', async () => {
    const empty = await createEmptyDatabase();
    try {
      const serving = start(['serve'], { ...UNLIMITED, DATABASE_URL: empty.url });
      const url = await serving.url();
      const answer = await fetch(`${url}/v1/coins`);
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
      expect((await fetch(`${url}/ready`)).status).toBe(503);
      expect((await fetch(`${url}/health`)).status).toBe(200);
      expect((await runCommand(['migrate'], { env: { DATABASE_URL: empty.url } })).code).toBe(0);
      await serving.ready();
      expect(await (await fetch(`${url}/v1/coins`)).json()).toEqual([]);
      await serving.stop();
    } finally {
      await empty.drop();
    }
  });

  test('answers all others while another session locks a table, and those who need that table with 503', async () => {
    await seed();
    await database.sql`
      insert into market.ticker (coin_id, updated_at, at, seen_at, rank, position, price)
      values ('btc-bitcoin', now(), now(), now(), 1, 1, 42.5)`;
    const serving = start(['serve']);
    await serving.ready();
    const url = await serving.url();
    const ask = async (path: string) => {
      const { status, headers } = await fetch(`${url}${path}`);
      return [status, headers.get('retry-after')];
    };
    await database.sql.begin(async (tx) => {
      await tx`lock table market.ticker in access exclusive mode`;
      // More callers than connections.
      const kept = Array.from({ length: 20 }, () => ask('/v1/tickers/btc-bitcoin'));
      await vi.waitFor(async () => {
        const waiting = await tx`select from pg_locks where relation = 'market.ticker'::regclass and not granted`;
        expect(waiting.length).toBeGreaterThan(1);
      }, 60_000);
      expect(await ask('/v1/coins')).toEqual([200, null]);
      expect(await Promise.all(kept)).toEqual(Array(20).fill([503, '5']));
    });
    expect(await ask('/v1/tickers/btc-bitcoin')).toEqual([200, null]);
  });

  test('reads with a role that can only read', async () => {
    await seed();
    const reader = await openReader({ url: database.url, max: 1 });
    try {
      expect(reader.hasRole).toBe(true);
      const { sql } = reader;
      expect(await sql`select current_user as me`).toEqual([{ me: 'chandler_server' }]);
      await expect(sql`update market.coin set name = 'x'`).rejects.toThrow(/read-only|permission denied/);
      await sql`set default_transaction_read_only = off`;
      await expect(sql`update market.coin set name = 'x'`).rejects.toThrow('permission denied');
      await expect(sql`select * from ops.account`).rejects.toThrow('permission denied');
      await expect(sql`select * from ops.fetch`).rejects.toThrow('permission denied');
    } finally {
      await reader.close();
    }
  });

  test('works with the address of a user that can only read', async () => {
    await seed();
    const name = `reader_${Math.random().toString(36).slice(2, 10)}`;
    await database.sql.unsafe(`create role ${name} login password 'guess-me-not' in role chandler_server`);
    const url = new URL(database.url);
    url.username = name;
    url.password = 'guess-me-not';
    const serving = start(['serve'], {
      ...UNLIMITED,
      DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing',
      CHANDLER_SERVE_DATABASE_URL: url.href,
    });
    await serving.ready();
    const answer = await fetch(`${await serving.url()}/v1/coins/btc-bitcoin/ohlcv/historical?start=2024-01-01&limit=5`);
    expect((await answer.json()) as unknown[]).toHaveLength(5);
    expect(serving.said()).not.toContain('guess-me-not');
    await serving.stop();
    await database.sql.unsafe(`drop role ${name}`);
  });

  test('on a read-only database serves without limits, and is not ready where it must count requests', async () => {
    await seed();
    const standby = { DATABASE_URL: `${database.url}?options=-c%20default_transaction_read_only%3Don` };
    const unlimited = start(['serve'], { ...UNLIMITED, ...standby });
    await unlimited.ready();
    const path = '/v1/coins/btc-bitcoin/ohlcv/historical?start=2024-01-01&limit=5';
    expect((await fetch(`${await unlimited.url()}${path}`)).status).toBe(200);
    const counting = start(['serve'], standby);
    const url = await counting.url();
    await vi.waitFor(
      async () => {
        const answer = await fetch(`${url}/ready`);
        expect(answer.status).toBe(503);
        expect(await answer.text()).toMatch(/read-only \(a standby\?\).*CHANDLER_SERVE_LIMITS=off/);
      },
      { timeout: 60_000 },
    );
    expect((await fetch(`${url}${path}`)).status).toBe(503);
    // Neither was it ready for a moment at its start.
    expect([unlimited.said(), counting.said()].map((said) => said.includes('"msg":"ready"'))).toEqual([true, false]);
  });

  test('an error names the setting that has the wrong address, not the other one', async () => {
    const url = new URL(database.url);
    url.username = 'nobody-here';
    const serving = start(['serve'], { ...UNLIMITED, CHANDLER_SERVE_DATABASE_URL: url.href });
    await vi.waitFor(
      () => expect(serving.said()).toMatch(/user .nobody-here.*correct .* in CHANDLER_SERVE_DATABASE_URL/),
      60_000,
    );
    expect(await serving.stop()).toBe(2);
  });

  test('answers 503 with Retry-After while connections are lost, and serves again afterwards', async () => {
    await seed();
    const serving = start();
    await serving.ready();
    const path = `${await serving.url()}/v1/coins/btc-bitcoin/ohlcv/historical?start=2024-01-01&limit=5`;
    const admin = createClient({ url: database.url, max: 1 });
    for (let i = 0; i < 5; i++) {
      const [, answer] = await Promise.all([
        admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'chandler%' and pid <> pg_backend_pid()`,
        fetch(path),
      ]);
      expect([200, 503]).toContain(answer.status);
    }
    await admin.end();
    await vi.waitFor(async () => expect((await fetch(path)).status).toBe(200), { timeout: 60_000 });
  });

  testLocked('callers wait');

  test('a service with the role http serves the same', async () => {
    await seed();
    const serving = start(['service', '--role', 'http']);
    await serving.ready();
    const answer = await fetch(`${await serving.url()}/v1/coins/btc-bitcoin/ohlcv/historical?start=2024-01-01&limit=5`);
    expect((await answer.json()) as unknown[]).toHaveLength(5);
  });
});

describe('clients', () => {
  test('that send too many headers are refused', async () => {
    const serving = start();
    const url = await serving.url();
    const answer = await fetch(`${url}/health`, { headers: { 'X-Long': 'x'.repeat(20_000) } });
    expect(answer.status).toBe(431);
  });

  // A service gives such clients less time than `chandler serve`, which is in `market-server.deep.test.ts`.
  testNeverEnding(['service', '--role', 'http']);
});

describe('the paths for operators', () => {
  test.each([
    '/v1/%2e%2e/metrics',
    '/docs/../metrics',
    '/v1/.%2E/metrics',
    '/v1/../v1/./coins',
    '/v1/..',
    'http://127.0.0.1/v1/../metrics',
  ])('are not reached through dot segments: %s is refused', async (target) => {
    const url = await start().url();
    for (const method of ['GET', 'HEAD', 'POST']) {
      const answer = await send(url, `${method} ${target}`);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).not.toContain(METRICS);
    }
    expect(await send(url, `GET ${target}`)).toContain(
      '"the path must not have a segment . or .. in it, also not as %2e"',
    );
  });

  test.each([
    'http://127.0.0.1/metrics',
    'HTTP://x/metrics',
    'https://127.0.0.1:1/health',
    '//127.0.0.1/metrics',
    '//metrics',
  ])('are compared with the target as it was sent: %s is not one of them', async (target) => {
    const url = await start().url();
    const answer = await send(url, `GET ${target}`);
    expect(answer).not.toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).not.toContain(METRICS);
    // A correct target is found, also with a query, and with dots that are no segment.
    expect(await send(url, 'GET /metrics?x=/../y')).toContain(METRICS);
    expect(await send(url, 'GET /v1/coins/..btc..?x=..')).not.toMatch(/^HTTP\/1\.1 400 /);
  });
});

test('the metrics have few route labels, whatever paths are requested', () => {
  expect(
    [
      '/v1/tickers',
      '/v1/tickers/a/',
      '/v1/coins/latest/ohlcv/latest',
      '/v1/contracts/eth/0x1/historical',
      '/v1/../x',
      '/rpc',
      '/%00',
    ].map(routeOf),
  ).toEqual([
    '/v1/tickers',
    '/v1/tickers/{}',
    '/v1/coins/{}/ohlcv/latest',
    '/v1/contracts/{}/{}/historical',
    'other',
    '/rpc',
    'other',
  ]);
});
