import { afterEach, beforeEach, expect, test } from 'vitest';
import { createClient } from '../../../src/store/connection/connect.ts';
import { migrate } from '../../../src/store/migration/migrate.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
/** Roles belong to the whole server, so each test uses its own names. */
let name: string;
beforeEach(async () => {
  database = await createTestDatabase();
  await migrate(database);
  name = `ana_${database.url.slice(-8)}`;
});
afterEach(async () => {
  await analyst('drop', name);
  await database.drop();
});

const analyst = (...argv: string[]) => runCommand(['analyst', ...argv], { env: { DATABASE_URL: database.url } });
const json = async (...argv: string[]) => JSON.parse((await analyst(...argv, '--json')).out);
const listed = async () => (await json('list')).find((one: { name: string }) => one.name === name);

test('a login of an analyst reads in UTC, changes nothing, and its long statements are cancelled', async () => {
  const { code, out } = await analyst('create', name, '--statement-timeout', '2s', '--connections', '3');
  expect(code).toBe(0);
  const [address] = out.split('\n');
  expect(out).toContain('Copy the address now');
  const url = new URL(address!);
  expect(url.username).toBe(name);
  const theirs = createClient({ url: url.href, max: 1 });
  try {
    expect(await theirs`select count(*)::int as n from market.candles`).toEqual([{ n: 0 }]);
    await expect(theirs`select from ops.fetch`).rejects.toThrow('permission denied');
    await expect(theirs`create table market.mine (x int)`).rejects.toThrow(/read-only|permission denied/);
    await expect(theirs`select pg_sleep(60)`).rejects.toThrow('statement timeout');
    // A login that may raise its other limits must not be able to fill the disk.
    expect(await theirs`show temp_file_limit`).toEqual([{ tempFileLimit: '2GB' }]);
    await expect(theirs`set temp_file_limit = -1`).rejects.toThrow('permission denied');
    expect(await listed()).toEqual({
      name,
      connections: 3,
      statementTimeoutMs: 2_000,
      sessions: 1,
      isOurs: true,
    });
    // For a client that does not set the time zone, like psql.
    const [role] = await database.sql<{ settings: string[] }[]>`
      select setconfig as settings from pg_db_role_setting where setrole = ${name}::regrole`;
    expect(role!.settings).toContain('TimeZone=UTC');
  } finally {
    await theirs.end();
  }
});

test('the limits of a login hold in every warehouse of the server', async () => {
  const other = await createTestDatabase();
  try {
    const { url } = await json('create', name, '--statement-timeout', '2s');
    const elsewhere = new URL(url);
    elsewhere.pathname = new URL(other.url).pathname;
    const theirs = createClient({ url: elsewhere.href, max: 1 });
    try {
      expect(await theirs`show statement_timeout`).toEqual([{ statementTimeout: '2s' }]);
      expect(await theirs`show default_transaction_read_only`).toEqual([{ defaultTransactionReadOnly: 'on' }]);
    } finally {
      await theirs.end();
    }
    const { out } = await runCommand(['analyst', 'list', '--json'], { env: { DATABASE_URL: other.url } });
    expect(JSON.parse(out)).toContainEqual(expect.objectContaining({ name, statementTimeoutMs: 2_000 }));
  } finally {
    await other.drop();
  }
});

test('the server stores no password that could be used to log in, and no statement contains one', async () => {
  const { url } = await json('create', name);
  const { password } = new URL(url);
  const [row] = await database.sql<
    { stored: string }[]
  >`select rolpassword as stored from pg_authid where rolname = ${name}`;
  expect(row!.stored).toMatch(/^SCRAM-SHA-256\$4096:/);
  expect(row!.stored).not.toContain(password);
  expect((await analyst('list')).out).not.toContain(password);
});

test('drop ends the sessions of a login, removes it and frees its name', async () => {
  const { url } = await json('create', name);
  const theirs = createClient({ url, max: 1 });
  try {
    await theirs`select 1`;
    expect((await analyst('drop', name)).out).toBe(`${name} is removed; its session was ended.\n`);
    await expect(theirs`select 1`).rejects.toThrow();
  } finally {
    await theirs.end();
  }
  expect(await listed()).toBeUndefined();
  expect((await analyst('create', name)).code).toBe(0);
});

test('wrong names are explained, and a login that somebody else made is not dropped', async () => {
  for (const wrong of ['pg_me', 'chandler_me', 'Ana', 'a b', 'analyst', "x'; drop role analyst"]) {
    const { code, err } = await analyst('create', wrong);
    expect([wrong, code]).toEqual([wrong, 2]);
    expect(err).toContain('lower-case letters');
  }
  await analyst('create', name);
  expect(await analyst('create', name)).toMatchObject({ code: 2, err: expect.stringContaining('choose another name') });
  expect(await analyst('drop', `${name}x`)).toMatchObject({
    code: 2,
    err: expect.stringContaining(`did you mean ${name}?`),
  });
  await database.sql.unsafe(`create role ${name}_by_hand login in role analyst`);
  try {
    expect(await analyst('drop', `${name}_by_hand`)).toMatchObject({ code: 2 });
    expect((await json('list')).map((one: { name: string }) => one.name)).toContain(`${name}_by_hand`);
  } finally {
    await database.sql.unsafe(`drop role ${name}_by_hand`);
  }
});

test('a user who is not a superuser but may create roles can make and remove logins', async () => {
  const keeper = `${name}_keeper`;
  await database.sql.unsafe(
    `create role ${keeper} login createrole password 'guess'; grant analyst to ${keeper} with admin option; grant usage on schema ops, market to ${keeper}; grant select, insert, update on all tables in schema ops to ${keeper}; grant select on all tables in schema market to ${keeper}`,
  );
  const url = new URL(database.url);
  Object.assign(url, { username: keeper, password: 'guess' });
  const asKeeper = (...argv: string[]) => runCommand(['analyst', ...argv], { env: { DATABASE_URL: url.href } });
  try {
    const made = await asKeeper('create', name, '--json');
    expect(made).toMatchObject({ code: 0, err: '' });
    const theirs = createClient({ url: JSON.parse(made.out).url, max: 1 });
    await theirs`select 1`;
    expect(await asKeeper('drop', name)).toMatchObject({
      code: 0,
      out: `${name} is removed; its session was ended.\n`,
    });
    await theirs.end();
  } finally {
    await database.sql.unsafe(`drop owned by ${keeper}; drop role ${keeper}`);
  }
});

test('doctor warns of what logins can do to Chandler when no superuser has migrated', async () => {
  const readers = async () => {
    const { out } = await runCommand(['doctor', '--json'], { env: { DATABASE_URL: database.url } });
    return JSON.parse(out).find((check: { name: string }) => check.name === 'readers');
  };
  const { url } = await json('create', name);
  const theirs = createClient({ url, max: 1 });
  const { sql } = database;
  try {
    expect(await readers()).toMatchObject({ state: 'ok', found: expect.stringContaining('can hold up nothing') });
    await expect(theirs`select pg_advisory_lock(1)`).rejects.toThrow('permission denied');

    // The rights of a new database.
    await sql`grant execute on function pg_advisory_lock(bigint), lo_create(oid) to public`;
    await sql`drop event trigger chandler_refuse_readers`;
    await theirs`select pg_advisory_lock(1)`;
    const another = await analyst('create', `${name}_b`);
    expect(another.err).toMatch(
      /^Warning: login .* can take advisory locks .*\n {2}as a superuser, in this database: select/,
    );
    await analyst('drop', `${name}_b`);
    expect(await readers()).toEqual({
      name: 'readers',
      state: 'warn',
      found: expect.stringMatching(
        /may connect to this database, and can take advisory locks that BullMQ needs, fill the disk with large objects, hold up others with statements that are refused only after they wait for a lock$/,
      ),
      fix: 'as a superuser, in this database: select ops.admit_no_harm()',
    });

    await sql`select ops.admit_no_harm()`;
    expect(await readers()).toMatchObject({ state: 'ok' });
  } finally {
    await theirs.end();
  }
});
