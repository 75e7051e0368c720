/** What `chandler log` shows: every change, who made it, and no secret. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { describeSettings } from '../../../src/background/service/recorded-start.ts';
import { commandLine } from '../../../src/cli/shell/audited.ts';
import { takeLock } from '../../../src/store/connection/lock.ts';
import { readAuditEntries } from '../../../src/views/dashboard/audit-entries.ts';
import { runCommand } from '../../support/cli.ts';
import { copyDatabase } from '../../support/copy-database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createEarlierDatabase } from '../../support/earlier-database.ts';
import { begin, chandler, commands, database, env, goOnIn, log, ME, testChanges, useWarehouse } from './log.ts';

useWarehouse();

test('the log has every command that changes something, with its user and result, and none that only reads', async () => {
  expect((await chandler('log')).out).toContain('No command has changed anything yet');
  await chandler('backfill', 'btc-bitcoin', '--start', '-9d', '--end', '-5d', '--yes');
  await chandler('backfill', 'btc-bitcoin', '--start', '-90d', '--detach', '--yes');
  await chandler('backfill', 'btc-bitcoin', '--start', '-90d', '--dry-run');
  const [{ id }] = JSON.parse((await chandler('backfills', 'list', '--json')).out);
  await chandler('backfills', 'pause', String(id));
  await chandler('backfills', 'priority', String(id), '7');
  await chandler('backfills', 'cancel', String(id));
  await chandler('backfills', 'cancel', String(id));
  await chandler('track', 'add', 'btc-bitcoin', '--interval', '24h');
  await chandler('track', 'remove', 'btc-bitcoin');
  await chandler('keys', 'create', '--plan', 'pro', '--name', 'the desk');
  await chandler('status');
  await chandler('verify');
  await chandler('migrate');
  const entries = await log();
  expect(entries.map((entry: { command: string; message: string | null }) => [entry.command, entry.message])).toEqual([
    ['backfill btc-bitcoin --start -9d --end -5d --yes', null],
    ['backfill btc-bitcoin --start -90d --detach --yes', null],
    [`backfills pause ${id}`, null],
    [`backfills priority ${id} 7`, null],
    [`backfills cancel ${id}`, null],
    [`backfills cancel ${id}`, `backfill ${id} is cancelled and cannot be cancelled`],
    ['track add btc-bitcoin --interval 24h', null],
    ['track remove btc-bitcoin', null],
    ["keys create --plan pro --name 'the desk'", null],
    ['migrate', null],
  ]);
  for (const entry of entries) expect(entry).toMatchObject({ actor: ME, endedAt: expect.any(String) });
  expect(await log('--limit', '2')).toEqual(entries.slice(-2));
  const { out } = await chandler('log');
  expect(out).toMatch(/done in/);
  expect(out).not.toMatch(/chandler_\w{8}_/);
  expect(await chandler('log', '--since', '+3d')).toMatchObject({ code: 2 });
});

test('the log has a repair by SQL with the user of the database', async () => {
  await chandler('backfill', 'btc-bitcoin', '--start', '-9d', '--end', '-5d', '--yes');
  const [series] = await database.sql<{ id: number }[]>`
    select id from market.series where not isempty(covered) limit 1`;
  await database.sql`select ops.uncover(${series!.id}::integer)`;
  const last = (await log()).at(-1);
  expect(last.command).toMatch(/^ops\.uncover: btc-bitcoin usd 24h, \{\[/);
  expect(last.actor).toMatch(/^\w+ \(chandler test\)$/);
});

describe('SQL in the log', () => {
  beforeEach(begin);

  test('is left out when it only reads', async () => {
    await chandler(
      'sql',
      'select * from ops.track; set work_mem to default; show work_mem; table ops.track; values (1)',
    );
    await chandler('sql', 'begin; select * from ops.track; commit; explain delete from ops.track');
    await chandler('sql', '-- delete\n(select 1) union (select 2)');
    expect(await commands()).toEqual([]);
  });

  testChanges([
    'update ops.track set priority = 3',
    'with gone as (delete from ops.track returning *) select * from gone',
    '/* harmless */ create table market.mine (x int)',
  ]);

  test('from a pipe is recorded once with its text and the error that ended it', async () => {
    const stdin =
      'update ops.track set priority = 3;\nselect 1;\ndelete from ops.track;\nselect 1/0;\ndelete from market.coin';
    expect(await runCommand(['sql'], { env: env(), stdin })).toMatchObject({ code: 1 });
    expect(await commands()).toEqual([[commandLine(['sql', stdin]), 'division by zero']]);
  });

  test('is recorded without its passwords', async () => {
    const role = `reader_${randomUUID().slice(0, 8)}`;
    await chandler('sql', `create role ${role} password 'hunter2''s'; drop role ${role}`);
    await chandler('sql', "comment on table ops.track is 'postgres://me:hunter2@db/x'");
    const all = JSON.stringify(await log());
    expect(all).toContain(`create role ${role} password`);
    expect(all).toContain('postgres://me:***@db/x');
    expect(all).not.toContain('hunter2');
  });

  test('in psql is recorded as a session, except when psql only describes something', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'psql-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    await writeFile(path.join(folder, 'psql'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    const inPsql = (statement: string) =>
      runCommand(['sql', statement], { env: { ...env(), PATH: `${folder}:${process.env.PATH}` } });
    expect(await inPsql('\\d market.candles')).toMatchObject({ code: 0 });
    expect(await inPsql('\\i mend.sql')).toMatchObject({ code: 0 });
    expect(await commands()).toEqual([["sql '\\i mend.sql'", null]]);
  });
});

test.each([
  ['a service', ['service', '--role', 'http']],
  ['serve', ['serve']],
])('%s logs which settings changed since its last start, without secret values', async (_, command) => {
  const run = async (more: Record<string, string>) => {
    const stop = new AbortController();
    const ended = runCommand(command, {
      env: { ...env(), CHANDLER_LISTEN: '127.0.0.1:0', ...more },
      signal: stop.signal,
      onError: (said) => {
        if (/"ready"/.test(said)) stop.abort();
      },
    });
    expect((await ended).code).toBe(0);
  };
  await run({ CHANDLER_WEBHOOK_URL: 'https://hooks.test/services/T0/first-secret' });
  await run({ CHANDLER_WEBHOOK_URL: 'https://hooks.test/services/T0/other-secret', CHANDLER_MONTHLY_REQUESTS: '5000' });
  const [first, second] = await log();
  expect(first).toMatchObject({ command: command.join(' '), changed: [], endedAt: expect.any(String) });
  expect(second.changed).toEqual([
    'CHANDLER_MONTHLY_REQUESTS not set → 5000',
    expect.stringMatching(/^CHANDLER_WEBHOOK_URL \(secret, fingerprint \w{8}\) → \(secret, fingerprint \w{8}\)$/),
  ]);
  const { out } = await chandler('log');
  expect(out).toContain('settings changed: CHANDLER_MONTHLY_REQUESTS not set → 5000');
  expect(JSON.stringify(await log()) + out).not.toMatch(/first-secret|other-secret/);
});

test('the fingerprints of secrets stay the same in another database, so that only a changed secret is logged', async () => {
  const serve = async ({ url }: TestDatabase, webhook: string) => {
    const stop = new AbortController();
    const ended = runCommand(['service', '--role', 'http'], {
      env: { ...env(), DATABASE_URL: url, CHANDLER_LISTEN: '127.0.0.1:0', CHANDLER_WEBHOOK_URL: webhook },
      signal: stop.signal,
      onError: (said) => {
        if (/"ready"/.test(said)) stop.abort();
      },
    });
    expect((await ended).code).toBe(0);
  };
  const changed = async () =>
    (await log())
      .filter(({ settings }: { settings?: object }) => settings !== undefined)
      .map((entry: { changed: string[] }) => entry.changed.filter((text) => !text.startsWith('DATABASE_URL ')));
  await serve(database, 'https://hooks.test/first-secret');
  const moved = await createTestDatabase();
  onTestFinished(() => moved.drop());
  await copyDatabase(database, moved);
  const before = database;
  onTestFinished(() => before.drop());
  goOnIn(moved);
  await serve(moved, 'https://hooks.test/first-secret');
  expect(await changed()).toEqual([[], []]);
  expect((await readAuditEntries(moved.sql, null)).rows[0]!.changedSettings).toEqual(['DATABASE_URL']);
  await serve(moved, 'https://hooks.test/other-secret');
  expect(await changed()).toEqual([[], [], [expect.stringMatching(/^CHANDLER_WEBHOOK_URL \(secret, fingerprint /)]]);
  // The salt of the fingerprints is no setting, and is not printed.
  const [{ salt }] = await moved.sql<
    [{ salt: string }]
  >`select settings->>'salt' as salt from ops.audit where settings is not null limit 1`;
  expect(salt).toMatch(/^[0-9a-f]{12}$/);
  expect(JSON.stringify(await log())).not.toContain(salt);
});

test('a new container with other settings logs which changed, although its host has another name', async () => {
  const start = (actor: string, plan: string) => database.sql`
    insert into ops.audit (at, actor, command, settings)
    values (now(), ${actor}, 'service --role worker', jsonb_build_object('CHANDLER_PLAN', ${plan}::text))`;
  await start('node@0123456789ab', 'free');
  await start('node@elsewhere', 'starter');
  await start('node@ba9876543210', 'pro');
  expect((await log()).map(({ changed }: { changed: string[] }) => changed)).toEqual([
    [],
    [],
    ['CHANDLER_PLAN free → pro'],
  ]);
});

test('the log has a migration, whichever command made it when it opened the database', async () => {
  const { database: earlier, newest } = await createEarlierDatabase();
  await database.drop();
  goOnIn(earlier);
  const stop = new AbortController();
  const ended = runCommand(['service', '--role', 'http', '--migrate'], {
    env: { ...env(), CHANDLER_LISTEN: '127.0.0.1:0' },
    signal: stop.signal,
    onError: (said) => {
      if (/"ready"/.test(said)) stop.abort();
    },
  });
  expect((await ended).code).toBe(0);
  expect((await log()).map(({ command }: { command: string }) => command)).toEqual([
    `migrate, by service --role http --migrate: ${newest}`,
    'service --role http --migrate',
  ]);
});

test.each([
  ['migrate', ['migrate'], /^migrate$/],
  ['a service that migrates', ['service', '--role', 'http', '--migrate'], /^migrate, by service/],
])('the log has a migration at the time at which it ran: %s', async (_, argv, like) => {
  const { database: earlier } = await createEarlierDatabase();
  await database.drop();
  goOnIn(earlier);
  const stop = new AbortController();
  let ended: Promise<{ readonly code: number }> | null = null;
  const waitedAt = await earlier.sql.begin(async (tx) => {
    await takeLock(tx, 'migrations');
    ended = runCommand(argv, {
      env: { ...env(), CHANDLER_LISTEN: '127.0.0.1:0' },
      signal: stop.signal,
      onError: (said) => {
        if (/"ready"/.test(said)) stop.abort();
      },
    });
    await vi.waitFor(
      async () =>
        expect(
          await earlier.sql`
            select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        ).toHaveLength(1),
      { timeout: 60_000 },
    );
    const [now] = await earlier.sql<{ at: number }[]>`select clock_timestamp() as at`;
    return now!.at;
  });
  expect((await ended!).code).toBe(0);
  const entries = await earlier.sql<{ command: string; at: number; endedAt: number }[]>`
    select command, at, ended_at from ops.audit`;
  const { at, endedAt } = entries.find(({ command }) => like.test(command))!;
  expect(at).toBeLessThanOrEqual(waitedAt);
  expect(endedAt).toBeGreaterThan(waitedAt);
});

test('serve on a read-only database serves, and says that its start is not recorded', async () => {
  const url = `${database.url}?options=-c%20default_transaction_read_only%3Don`;
  const stop = new AbortController();
  let said = '';
  const ended = runCommand(['serve'], {
    env: { CHANDLER_SERVE_DATABASE_URL: url, CHANDLER_LISTEN: '127.0.0.1:0', CHANDLER_SERVE_LIMITS: 'off' },
    signal: stop.signal,
    onError: (all) => {
      said = all;
      if (/"ready"/.test(all)) stop.abort();
    },
  });
  expect((await ended).code).toBe(0);
  expect(said).toContain('this start is not in the audit log');
  expect(await log()).toEqual([]);
});

test('passwords in addresses are not recorded', () => {
  const described = describeSettings(
    { DATABASE_URL: 'postgres://me:hunter2hunter2@db/chandler', CHANDLER_API_KEY: 'k-123456789' },
    'salt',
  );
  expect(described.DATABASE_URL).toBe('postgres://me:***@db/chandler');
  expect(described.CHANDLER_API_KEY).toMatch(/^\(secret, fingerprint [0-9a-f]{8}\)$/);
});
