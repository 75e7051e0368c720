/** `chandler restore` into a database that has a warehouse: one that holds nothing goes, any other one stays. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { migrate } from '../../../src/store/migration/migrate.ts';
import { runCommand } from '../../support/cli.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { findTestClient } from '../../support/postgres-client.ts';
import { startCli } from '../../support/program.ts';
import { fillProved } from '../../support/proved-warehouse.ts';

const client = await findTestClient();
let folder: string;
let original: TestDatabase;
let target: TestDatabase;
beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'chandler-occupied-'));
  [original, target] = await Promise.all([createTestDatabase(), createEmptyDatabase()]);
  await fillProved(original.sql);
});
afterEach(async () => {
  await Promise.all([original.drop(), target.drop()]);
  rmSync(folder, { recursive: true, force: true });
});

const run = (database: TestDatabase, args: string[]) =>
  runCommand(args, { env: { DATABASE_URL: database.url, PATH: client!.path } });
const backup = async () => expect(await run(original, ['backup', folder])).toMatchObject({ code: 0, err: '' });
const restore = () => run(target, ['restore', folder]);
const attestation = () => path.join(folder, readdirSync(folder).find((name) => name.endsWith('.jsonl'))!);
const seriesOf = async ({ sql }: TestDatabase) => (await sql`select from market.series`).length;

describe.skipIf(client === null)('a warehouse that holds nothing', () => {
  test('is replaced: a service has made it in the empty database', async () => {
    await backup();
    const stop = new AbortController();
    const service = runCommand(['service', '--role', 'http'], {
      env: { DATABASE_URL: target.url, CHANDLER_LISTEN: '127.0.0.1:0' },
      signal: stop.signal,
      onError: (said) => {
        if (/"ready"/.test(said)) stop.abort();
      },
    });
    expect((await service).code).toBe(0);
    expect(await seriesOf(target)).toBe(0);
    const { code, out, err } = await restore();
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain('removed the warehouse that was there: it held nothing\n');
    expect(await seriesOf(target)).toBe(2);
  });

  test('is replaced: a plan that failed has made it', async () => {
    await backup();
    // Nothing listens there.
    const env = { DATABASE_URL: target.url, CHANDLER_BASE_URL: 'http://127.0.0.1:1/v1' };
    const planned = await runCommand(['plan', 'btc-bitcoin', '--start', '-30d'], { env });
    expect(planned.code).toBe(2);
    expect(await target.sql`select status from ops.fetch`).toEqual([{ status: null }]);
    expect(await restore()).toMatchObject({ code: 0, err: '' });
    expect(await seriesOf(target)).toBe(2);
  });

  test('is replaced also where somebody has made the schemas before', async () => {
    await backup();
    await target.sql.unsafe('create schema market; create schema ops');
    await migrate(target);
    expect(await restore()).toMatchObject({ code: 0, err: '' });
    await target.sql.unsafe('drop schema market, ops cascade; create schema market');
    // Whoever may not make schemas gets them made, empty.
    expect(await restore()).toMatchObject({ code: 0, err: '' });
  });

  test('stays when the backup cannot be restored', async () => {
    await migrate(target);
    const file = path.join(folder, 'other.dump');
    writeFileSync(file, 'create table x ()');
    expect((await run(target, ['restore', file])).code).toBe(1);
    expect(await seriesOf(target)).toBe(0);
  });

  test('stays while a service runs on it', async () => {
    await backup();
    await migrate(target);
    await target.sql`
      insert into ops.instance (owner, roles, started_at, heartbeat_at) values ('vm:4080', '{http}', now(), now())`;
    const { code, err } = await restore();
    expect(code).toBe(2);
    expect(err).toContain('which holds nothing, but a service runs on it: vm:4080; stop it');
    expect(await seriesOf(target)).toBe(0);
  });

  test('stays when something of somebody else would go with it', async () => {
    await backup();
    await migrate(target);
    await target.sql.unsafe('create view public.mine as select * from market.series');
    const { code, err } = await restore();
    expect(code).toBe(2);
    expect(err).toContain('which holds nothing, but something in other schemas depends on it');
    expect(await target.sql`select * from public.mine`).toHaveLength(0);
  });
});

describe.skipIf(client === null)('a warehouse that holds anything stays, and the error names it', () => {
  test.each([
    [
      'a coin',
      'market.coin',
      `insert into market.coin (id, name, symbol, rank, is_new, is_active, first_seen_at, last_seen_at, rank_seen_at)
       values ('btc-bitcoin', 'Bitcoin', 'BTC', 1, false, true, now(), now(), now())`,
    ],
    ['a key of a caller', 'ops.api_key', null],
    [
      'an answered request, also where the answer was a refusal',
      'ops.fetch',
      `insert into ops.fetch (sent_at, as_of, account_id, endpoint, attempt, status, outcome, duration_ms, rows, stored, revised, quarantined, bytes)
       values (now(), now(), 'a', 'coins', 1, 401, 'unauthorized', 1, 0, 0, 0, 0, 0)`,
    ],
  ])('%s', async (_, table, statement) => {
    await backup();
    await migrate(target);
    if (statement === null) expect((await run(target, ['keys', 'create', '--plan', 'starter'])).code).toBe(0);
    else await target.sql.unsafe(statement);
    const { code, err } = await restore();
    expect(code).toBe(2);
    expect(err).toContain(`has a warehouse of 0 series already, with rows in ${table}, and a restore replaces nothing`);
    expect(err).toContain(`psql "$DATABASE_URL" -c 'drop schema market, ops cascade'`);
    expect(await target.sql.unsafe(`select from ${table}`)).not.toHaveLength(0);
  });
});

describe.skipIf(client === null)('a restore that was killed after the load', () => {
  test('is named by the next one, with what it still lacks', async () => {
    // Getting ready never ends.
    await original.sql.unsafe(`
      create function ops.wait() returns trigger language plpgsql as $$ begin perform pg_sleep(3600); return null; end $$;
      create trigger wait before update on ops.account for each statement execute function ops.wait()`);
    await backup();
    const { process: child, ended } = await startCli(['restore', folder], {
      DATABASE_URL: target.url,
      PATH: client!.path,
    });
    const begun = async () => {
      const [there] = await target.sql`select to_regclass('ops.audit') is not null as is`;
      expect(there!.is).toBe(true);
      expect(await target.sql`select from ops.audit where command like 'restore %'`).toHaveLength(1);
    };
    await vi.waitFor(begun, { timeout: 60_000, interval: 20 });
    child.kill('SIGKILL');
    await ended;
    // What Postgres still does for it would wait for an hour.
    await target.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and state = 'active' and wait_event = 'PgSleep'`;

    const { code, err } = await restore();
    expect(code).toBe(2);
    expect(err).toContain('has a warehouse of 2 series already, and a restore replaces nothing');
    expect(err).toContain('has loaded all of its backup, but its proof is missing');
    expect(err).toContain(`(restore ${folder}, `);
    expect(err).toContain(`chandler migrate, then chandler verify, then chandler verify --against ${attestation()}`);
    await target.sql.unsafe('drop function ops.wait() cascade');
    for (const command of [['migrate'], ['verify'], ['verify', '--against', attestation()]])
      expect(await run(target, command)).toMatchObject({ code: 0 });
  });

  test('is not what a whole one is taken for', async () => {
    await backup();
    expect((await restore()).code).toBe(0);
    const { code, err } = await restore();
    expect(code).toBe(2);
    expect(err).not.toContain('proof');
  });
});

test.skipIf(client === null)('what ran when the backup was made does not run in what is restored', async () => {
  await original.sql`
    insert into ops.instance (owner, roles, started_at, heartbeat_at) values ('old:4080', '{worker}', now(), now())`;
  await original.sql`insert into ops.audit (at, actor, command) values (now(), 'me@old', 'service --role worker')`;
  await backup();
  expect((await restore()).code).toBe(0);
  expect((await run(target, ['status'])).out).not.toContain('old:4080');
  const log = JSON.parse((await run(target, ['log', '--json'])).out) as Record<string, unknown>[];
  const message = 'had not ended when the backup was made';
  expect(log.slice(-3)).toMatchObject([
    { command: 'service --role worker', endedAt: expect.any(String), message },
    { command: `backup ${folder}`, endedAt: expect.any(String), message },
    { command: `restore ${folder}`, endedAt: expect.any(String), message: null },
  ]);
});
