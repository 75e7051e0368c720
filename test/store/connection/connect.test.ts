import http from 'node:http';
import net from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, openDatabase } from '../../../src/store/connection/connect.ts';
import { isDatabaseUnavailable } from '../../../src/store/connection/database-unavailable.ts';
import { explainDatabaseError, maskUrl, StoreError } from '../../../src/store/connection/store-error.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const changed = (change: (url: URL) => void) => {
  const url = new URL(database.url);
  change(url);
  return url.href;
};
const failure = async (url: string) => {
  const error = await openDatabase({ url, max: 1 }).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(StoreError);
  return (error as StoreError).message;
};

async function listen(server: net.Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as net.AddressInfo).port;
}

describe('openDatabase', () => {
  test('uses UTC, sets an application name, and returns counts as numbers', async () => {
    const named = await openDatabase({ url: database.url, max: 1, applicationName: 'chandler backfill' });
    const [row] = await named.sql`
      select current_setting('TimeZone') as zone, current_setting('application_name') as name, count(*) as n from market.coin`;
    expect(row).toEqual({ zone: 'UTC', name: 'chandler backfill', n: 0 });
    await named.close();
  });

  test('commits to the quota ledger without waiting for data that is being stored', async () => {
    const busy = await openDatabase({ url: database.url, max: 1 });
    const held = await busy.sql.reserve();
    try {
      const waits = busy.sql`select`.then(() => 'the pool');
      expect(await Promise.race([waits, busy.ledger`select`.then(() => 'the ledger')])).toBe('the ledger');
    } finally {
      held.release();
      await busy.close();
    }
  });

  test('returns every double bit for bit', async () => {
    const values = [1e-12, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, 3167.8487468375165, 9.51111762014774e-6, 2 ** 53];
    const [row] = await database.sql`select ${values}::float8[] as back`;
    expect(row?.back).toEqual(values);
  });

  test.each([
    [
      'not an address',
      'nonsense',
      /^DATABASE_URL 'nonsense' is not an address; DATABASE_URL should look like postgres:/,
    ],
    ['another protocol', 'mysql://u:secret@h/db', /^DATABASE_URL 'mysql:\/\/u:\*\*\*@h\/db' is not a Postgres address/],
    ['no database', 'postgres://u:secret@h:5432/', /^DATABASE_URL 'postgres:\/\/u:\*\*\*@h:5432\/' names no database/],
    [
      'a stray percent sign',
      'postgres://u:se%ret@h/db',
      /has a % that is not followed by two hex digits; write % as %25/,
    ],
    [
      'a host that does not exist',
      'postgres://u:secret@no-such-host.invalid/db',
      /the host no-such-host\.invalid of DATABASE_URL cannot be found/,
    ],
    [
      'nobody listening',
      'postgres://u:secret@127.0.0.1:1/db',
      /no Postgres answers at 127\.0\.0\.1:1 \(connection refused\); start it/,
    ],
  ])('explains %s in one sentence without the password', async (_, url, sentence) => {
    const message = await failure(url);
    expect(message).toMatch(sentence);
    expect(message).not.toMatch(/secret|se%ret/);
    expect(message).not.toContain('\n');
  });

  test('distinguishes a wrong password, an unknown user and an unknown database', async () => {
    const { username } = new URL(database.url);
    expect(
      await failure(
        changed((url) => {
          url.pathname = '/nothing_here';
        }),
      ),
    ).toMatch(/^the database 'nothing_here' does not exist on .*; make it with: createdb -h .* -p \d+ nothing_here/);
    // A server that trusts every login accepts any password.
    const open = await openDatabase({
      url: changed((url) => {
        url.password = 'wrong';
      }),
      max: 1,
    }).catch((e: unknown) => e);
    if (open instanceof StoreError) {
      expect(open.message).toMatch(new RegExp(`refuses the password of user '${username}'`));
      expect(open.message).not.toContain("'wrong'");
    } else await (open as TestDatabase).close();
  });

  test('explains in one sentence that a server closed the connection', async () => {
    const rude = net.createServer((socket) => socket.end());
    const port = await listen(rude);
    expect(await failure(`postgres://u@127.0.0.1:${port}/db`)).toMatch(
      /the connection to Postgres at 127\.0\.0\.1:\d+ was lost/,
    );
    rude.close();
  });

  test('explains that the server at the address is not Postgres', async () => {
    const web = http.createServer();
    const port = await listen(web);
    expect(await failure(`postgres://u@127.0.0.1:${port}/db`)).toMatch(
      /^what answers at 127\.0\.0\.1:\d+ is not Postgres; correct/,
    );
    web.close();
  });

  test('reconnects after the server has terminated every connection', async () => {
    const pool = await openDatabase({ url: database.url, max: 3, applicationName: 'to be cut' });
    await Promise.all([1, 2, 3].map(() => pool.sql`select pg_sleep(0.05)`));
    await database.sql`
      select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'to be cut' and datname = current_database()`;
    const answers = [];
    while (answers.length < 20) {
      const rows = await pool.sql`select 1 as one`.catch(() => null);
      if (rows) answers.push(rows[0]);
    }
    expect(answers).toHaveLength(20);
    await pool.close();
  });
});

test('Postgres ends a transaction in which the process stands still, and the error counts as a lost connection', async () => {
  const limits = async (url: string) => {
    const sql = createClient({ url, max: 1 });
    try {
      const [row] = await sql<
        { limit: string }[]
      >`select current_setting('idle_in_transaction_session_timeout') as limit`;
      return row!.limit;
    } finally {
      await sql.end({ timeout: 5 });
    }
  };
  expect(await limits(database.url)).toBe('1min');
  const own = `${database.url}?options=-c%20idle_in_transaction_session_timeout%3D20ms`;
  expect(await limits(own)).toBe('20ms');
  const sql = createClient({ url: own, max: 1 });
  try {
    const stoodStill = sql.begin(async (tx) => {
      const [me] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await until(async () => (await database.sql`select from pg_stat_activity where pid = ${me!.pid}`).length === 0);
      await tx`select`;
    });
    expect(isDatabaseUnavailable(await stoodStill.catch((error: unknown) => error))).toBe(true);
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  } finally {
    await sql.end({ timeout: 5 });
  }
});

test('Postgres checks idle connections with keep-alives, and drops a dead one within two minutes', async () => {
  const [row] = await database.sql`
    select current_setting('tcp_keepalives_idle')::int + current_setting('tcp_keepalives_interval')::int * current_setting('tcp_keepalives_count')::int as seconds`;
  expect(row).toEqual({ seconds: 90 });
});

describe('explainDatabaseError', () => {
  const url = 'postgres://me:secret@db.example:5433/warehouse';

  test('explains an error of Postgres, also when drizzle has wrapped it', async () => {
    const wrapped = await database.sql
      .begin('read only', (tx) => tx`create table market.x ()`)
      .catch((e: unknown) => new Error('Failed query', { cause: e }));
    expect(explainDatabaseError(wrapped, url)?.message).toBe(
      'Postgres at db.example:5433 is read-only (a standby?); point DATABASE_URL at the primary',
    );
  });

  test.each([
    [
      '53100',
      'the disk of Postgres at db.example:5433 is full; make room and run the command again; nothing stored is lost',
    ],
    ['53300', 'Postgres at db.example:5433 has no connection left; raise its max_connections, or run fewer processes'],
    [
      '57P03',
      'Postgres at db.example:5433 is starting up or shutting down; run the command again in a moment; nothing stored is lost',
    ],
    ['28P01', "Postgres at db.example:5433 refuses the password of user 'me'; correct it in DATABASE_URL"],
  ])('gives SQLSTATE %s its sentence', (code, sentence) => {
    expect(explainDatabaseError(Object.assign(new Error('x'), { code }), url)?.message).toBe(sentence);
  });

  test('explains a statement_timeout of the login, and not a statement that somebody cancelled', async () => {
    const timedOut = await database.sql
      .begin(async (tx) => {
        await tx`set local statement_timeout = 1`;
        await tx`select pg_sleep(60)`;
      })
      .catch((error: unknown) => error);
    expect(explainDatabaseError(timedOut, url)?.message).toBe(
      `Postgres at db.example:5433 ended a statement of user 'me' that took longer than its statement_timeout; raise or remove that limit: in the options of DATABASE_URL, or of the login, the database or the server`,
    );
    const cancelled = Object.assign(new Error('canceling statement due to user request'), { code: '57014' });
    expect(explainDatabaseError(cancelled, url)).toBeNull();
  });

  test('treats a statement that a standby cancelled as one that can be retried', async () => {
    const ended = await database.sql`do $$ begin
      raise exception using errcode = 'serialization_failure', message = 'canceling statement due to conflict with recovery';
    end $$`.catch((error: unknown) => error);
    expect(isDatabaseUnavailable(ended)).toBe(true);
    expect(explainDatabaseError(ended, url)?.message).toBe(
      'the standby at db.example:5433 ended a statement, to apply what the primary has removed; run the command again; for long statements set hot_standby_feedback = on there, or a longer max_standby_streaming_delay',
    );
  });

  test.each(['ENOSPC', 'EROFS'])('%s of a file that a command writes is not about the disk of Postgres', (code) => {
    expect(explainDatabaseError(Object.assign(new Error(code), { code, syscall: 'write' }), url)).toBeNull();
  });

  test('explains no error that is a bug of Chandler', () => {
    expect(explainDatabaseError(new TypeError('x is not a function'), url)).toBeNull();
    expect(explainDatabaseError(Object.assign(new Error('syntax error'), { code: '42601' }), url)).toBeNull();
    expect(explainDatabaseError('text', url)).toBeNull();
  });

  test('maskUrl masks secrets everywhere in an address', () => {
    expect(maskUrl('postgres://me:secret@h/db?sslpassword=secret&application_name=x')).toBe(
      'postgres://me:***@h/db?sslpassword=***&application_name=x',
    );
    expect(maskUrl('postgres//me:secret@h')).not.toContain('secret');
  });
});
