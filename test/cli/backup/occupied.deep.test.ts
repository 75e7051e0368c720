/** `chandler restore` into a database that has a warehouse, rarer cases: schemas that another user made, and a restore that was killed. */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { migrate } from '../../../src/store/migration/migrate.ts';
import { runCommand } from '../../support/cli.ts';
import { startCli } from '../../support/program.ts';
import { backup, client, folder, original, restore, run, seriesOf, target, useDatabases } from './occupied.ts';

useDatabases();

const attestation = () => path.join(folder, readdirSync(folder).find((name) => name.endsWith('.jsonl'))!);

describe.skipIf(client === null)('a warehouse that holds nothing', () => {
  test('is replaced when a failed plan has made it', async () => {
    await backup();
    // Nothing listens there.
    const env = { DATABASE_URL: target.url, CHANDLER_BASE_URL: 'http://127.0.0.1:1/v1' };
    const planned = await runCommand(['plan', 'btc-bitcoin', '--start', '-30d'], { env });
    expect(planned.code).toBe(2);
    expect(await target.sql`select status from ops.fetch`).toEqual([{ status: null }]);
    expect(await restore()).toMatchObject({ code: 0, err: '' });
    expect(await seriesOf(target)).toBe(2);
  });

  test('is replaced also when another user has made the schemas before', async () => {
    await backup();
    await target.sql.unsafe('create schema market; create schema ops');
    await migrate(target);
    expect(await restore()).toMatchObject({ code: 0, err: '' });
    await target.sql.unsafe('drop schema market, ops cascade; create schema market');
    // A user who may not make schemas gets them from another user, empty.
    expect(await restore()).toMatchObject({ code: 0, err: '' });
  });

  test('is not replaced when objects of another user would be dropped with it', async () => {
    await backup();
    await migrate(target);
    await target.sql.unsafe('create view public.mine as select * from market.series');
    const { code, err } = await restore();
    expect(code).toBe(2);
    expect(err).toContain('which is empty, but something in other schemas depends on it');
    expect(await target.sql`select * from public.mine`).toHaveLength(0);
  });
});

describe.skipIf(client === null)('a restore that was killed after the load', () => {
  test('is named by the next restore, with the steps that are missing', async () => {
    // The last step of the restore never ends.
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
    // What Postgres still runs for it would wait for an hour.
    await target.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and state = 'active' and wait_event = 'PgSleep'`;

    const { code, err } = await restore();
    expect(code).toBe(2);
    expect(err).toContain('has a warehouse of 2 series already, and a restore never replaces data');
    expect(err).toContain('a restore has loaded a whole backup into it but has not verified it');
    expect(err).toContain(`(restore ${folder}, `);
    expect(err).toContain(`chandler migrate, then chandler verify, then chandler verify --against ${attestation()}`);
    await target.sql.unsafe('drop function ops.wait() cascade');
    for (const command of [['migrate'], ['verify'], ['verify', '--against', attestation()]])
      expect(await run(target, command)).toMatchObject({ code: 0 });
  });

  test('is not assumed when the restore was complete', async () => {
    await backup();
    expect((await restore()).code).toBe(0);
    const { code, err } = await restore();
    expect(code).toBe(2);
    expect(err).not.toContain('proof');
  });
});
