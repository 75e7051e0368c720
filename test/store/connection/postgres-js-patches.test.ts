/** What the patches of postgres.js promise: a lost connection loses no result and leaves nothing behind. */
import net from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, type Sql } from '../../../src/store/connection/connect.ts';
import { createTestDatabase, type TestDatabase, testAdminUrl } from '../../support/database.ts';
import { until } from '../../support/until.ts';
import { testLost } from './postgres-js-patches.ts';

testLost(['terminated']);

describe('after a result ends halfway, the next result is complete', () => {
  const ROWS = 'from generate_series(1, 1000) n';
  let database: TestDatabase;
  let sql: Sql;
  beforeAll(async () => {
    database = await createTestDatabase();
    sql = createClient({ url: database.url, max: 1, applicationName: 'midst' });
  });
  afterAll(async () => {
    await sql.end({ timeout: 0 });
    await database.drop();
  });

  /** Fails after some hundred rows have been read. */
  const fail = () => expect(sql.unsafe(`select 1 / (500 - n), repeat('x', 2000) ${ROWS}`)).rejects.toThrow(/zero/);
  const one = [{ one: 1 }];

  test('when an error ended it', async () => {
    await fail();
    expect(await sql`select 1 as one`).toEqual(one);
    await fail();
    const [row] = await sql`select 1 as one where ${true}`;
    expect(row).toEqual({ one: 1 });
  });

  test('when the connection was lost', async () => {
    const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    const cut = sql.unsafe(
      `select repeat('x', 2000), case when n = 500 then pg_terminate_backend(${row!.pid}) end ${ROWS}`,
    );
    await expect(cut).rejects.toThrow();
    // A statement that is sent before the client notices the close fails with the connection.
    await expect.poll(() => sql`select 1 as one`.catch(() => null)).toEqual(one);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['as lists of values', async () => [...(await sql`select 1 as one`.values())].map(([value]) => ({ one: value }))],
    ['of several statements', async () => (await sql.unsafe('select 1 as one; select 2').simple())[0]],
    ['in pieces', pieces],
    ['in pieces that are called for', called],
    ['on a connection kept for oneself', reserved],
  ])('however it is read: %s', async (_, read) => {
    await fail();
    expect(await read()).toEqual(one);
  });

  async function pieces(): Promise<unknown> {
    const all: unknown[] = [];
    for await (const piece of sql`select 1 as one`.cursor(10)) all.push(...piece);
    return all;
  }

  async function called(): Promise<unknown> {
    const all: unknown[] = [];
    await sql`select 1 as one`.cursor(10, (piece) => void all.push(...piece));
    return all;
  }

  async function reserved(): Promise<unknown> {
    const mine = await sql.reserve();
    try {
      return await mine`select 1 as one`;
    } finally {
      mine.release();
    }
  }
});

test('ending a client does not wait for a statement that was lost with its connection', async () => {
  const database = await createTestDatabase({ max: 1 });
  try {
    const sql = createClient({ url: database.url, max: 3, applicationName: 'lost' });
    const lost = Promise.allSettled(Array.from({ length: 3 }, () => sql`select pg_sleep(600)`));
    await until(async () => {
      const [row] = await database.sql<{ n: number }[]>`
        select count(*)::int as n from pg_stat_activity where application_name = 'lost' and state = 'active'`;
      return row!.n === 3;
    });
    await database.sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lost'`;
    expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    await expect.poll(() => sql`select 1 as one`.catch(() => null)).toEqual([{ one: 1 }]);
    // A wait for this timeout would fail the test.
    await sql.end({ timeout: 600 });
  } finally {
    await database.drop();
  }
});

describe('the first statement after a lost connection does not fail with the old error', () => {
  test.each<[string, (sql: Sql) => Promise<unknown>]>([
    ['a statement', (sql) => sql`select ${1}::int as one`],
    ['a statement as text', (sql) => sql.unsafe('select 1 as one')],
    ['a transaction', (sql) => sql.begin((tx) => tx`select 1 as one`)],
    [
      'a result in pieces',
      async (sql) => {
        const all: unknown[] = [];
        for await (const piece of sql`select 1 as one`.cursor(10)) all.push(...piece);
        return all;
      },
    ],
  ])('%s', async (_, run) => {
    const database = await createTestDatabase({ max: 1 });
    const sql = createClient({ url: database.url, max: 1, applicationName: 'old' });
    try {
      const lost = sql`select pg_sleep(600)`.catch(({ code }: { code: string }) => code);
      await until(async () => {
        const ended = await database.sql`
          select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'old' and state = 'active'`;
        return ended.length === 1;
      });
      expect(await lost).toBe('CONNECTION_CLOSED');
      expect(await run(sql)).toEqual([{ one: 1 }]);
    } finally {
      await Promise.all([sql.end({ timeout: 0 }), database.drop()]);
    }
  });

  test('that came just before the connection was lost', async () => {
    const database = await createTestDatabase({ max: 1 });
    const { hostname, port } = new URL(database.url);
    // Cuts a connection between an error and the message that the server is ready for the next statement.
    const READY_BYTES = 6;
    let isCut = false;
    const proxy = net.createServer((client) => {
      const server = net.connect({ host: hostname, port: Number(port) });
      client.on('data', (sent) => server.write(sent)).on('close', () => server.destroy());
      server.on('data', (got) => {
        if (isCut || !got.includes('22012')) return void client.write(got);
        isCut = true;
        client.end(got.subarray(0, -READY_BYTES));
      });
      for (const socket of [client, server]) socket.on('error', () => undefined);
      server.on('close', () => client.destroy());
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const url = new URL(database.url);
    url.host = `127.0.0.1:${(proxy.address() as net.AddressInfo).port}`;
    const sql = createClient({ url: url.href, max: 1 });
    try {
      // Its parameter is described first: only then does the server send the error alone.
      await expect(sql`select 1 / ${0}::int`).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
      expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
    } finally {
      await sql.end({ timeout: 0 });
      await new Promise((resolve) => proxy.close(resolve));
      await database.drop();
    }
  });

  test('a transaction whose own work fails with such an error is not repeated', async () => {
    const database = await createTestDatabase({ max: 1 });
    try {
      let runs = 0;
      const fails = database.sql.begin(async () => {
        runs++;
        throw Object.assign(new Error('of another client'), { severity: 'FATAL' });
      });
      await expect(fails).rejects.toThrow('of another client');
      expect(runs).toBe(1);
    } finally {
      await database.drop();
    }
  });
});

test('a statement is settled while the server refuses new sessions after it lost one, and the client works again afterwards', async () => {
  const database = await createTestDatabase({ max: 1 });
  const admin = createClient({ url: testAdminUrl(), max: 1 });
  const sql = createClient({ url: database.url, max: 1, applicationName: 'refused' });
  const name = new URL(database.url).pathname.slice(1);
  try {
    const lost = sql`select pg_sleep(600)`.catch(() => 'lost');
    await until(async () => {
      const [row] = await admin<{ n: number }[]>`
        select count(*)::int as n from pg_stat_activity where application_name = 'refused' and state = 'active'`;
      return row!.n === 1;
    });
    await admin.unsafe(`alter database ${name} allow_connections false`);
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'refused'`;
    expect(await lost).toBe('lost');
    for (let again = 0; again < 3; again++)
      await expect(sql`select 1 as one`).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
    await admin.unsafe(`alter database ${name} allow_connections true`);
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  } finally {
    await Promise.all([sql.end({ timeout: 0 }), admin.end({ timeout: 0 })]);
    await database.drop();
  }
});

test('a client that is ended while it connects leaves no connection behind', async () => {
  const met: net.Socket[] = [];
  const server = net.createServer((socket) => void met.push(socket.on('error', () => undefined).resume()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  // A wait for the connect timeout would fail the test.
  const sql = createClient({ url: `postgres://u:p@127.0.0.1:${port}/x?connect_timeout=600`, max: 1 });
  const asking = sql`select 1`.catch(() => 'ended');
  await new Promise((resolve) => setImmediate(resolve));
  const ending = sql.end({ timeout: 0 });
  await null;
  // The timeout of `end` passes before this process learns that the connection is open.
  const until = performance.now() + 20;
  while (performance.now() < until);
  await ending;
  expect(await asking).toBe('ended');
  // The server closes when all of its connections have closed.
  await new Promise((resolve) => server.close(resolve));
  expect(met.every((socket) => socket.destroyed)).toBe(true);
});
