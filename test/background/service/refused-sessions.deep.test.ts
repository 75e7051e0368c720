/** A database that ends all sessions and refuses new ones, for a reason that is no outage: it was renamed, or the login is wrong. */
import { expect, test, vi } from 'vitest';
import { createClient } from '../../../src/store/connection/connect.ts';
import { testAdminUrl } from '../../support/database.ts';
import { setScene, useServer } from './service.ts';

useServer();

test('a service says once that its database refuses it, and works again afterwards', async (context) => {
  const { database, start } = await setScene(context);
  const admin = createClient({ url: testAdminUrl(), max: 1 });
  context.onTestFinished(() => admin.end({ timeout: 0 }));
  const name = new URL(database.url).pathname.slice(1);
  const service = start([], { LOG_LEVEL: 'debug' });
  await service.line(/^ready/);
  const stands = (status: number) =>
    vi.waitFor(async () => expect(await service.get('/ready')).toMatchObject({ status }), { timeout: 60_000 });
  await stands(200);
  await admin.unsafe(`alter database ${name} allow_connections false`);
  await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
  await stands(503);
  const refusals = (level: string) =>
    service.lines().filter((line) => line.level === level && JSON.stringify(line).includes('not currently accepting'))
      .length;
  await vi.waitFor(() => expect(refusals('debug')).toBeGreaterThan(20), { timeout: 60_000 });
  // The first one, and their count once a minute.
  expect(refusals('warn')).toBeLessThanOrEqual(3);
  await admin.unsafe(`alter database ${name} allow_connections true`);
  await stands(200);
  await service.line(/^the database recovered/);
});

// As when the password of its login is changed at the server, or the schema has another owner: nothing that it stores gets through.
test('a service that cannot write its heartbeat, although no connection is lost, is not ready until it can again', async (context) => {
  const { database, start } = await setScene(context);
  const service = start();
  await service.line(/^ready/);
  const stands = (status: number) =>
    vi.waitFor(async () => expect(await service.get('/ready')).toMatchObject({ status }), { timeout: 60_000 });
  await stands(200);
  await database.sql.unsafe(`
    create function public.refuse() returns trigger language plpgsql as $$
    begin raise insufficient_privilege using message = 'permission denied for table instance'; end $$;
    create trigger refuse before insert or update on ops.instance execute function public.refuse()`);
  await service.line(/^the heartbeat: permission denied/);
  await stands(503);
  await database.sql`drop trigger refuse on ops.instance`;
  await service.line(/^the heartbeat recovered/);
  await stands(200);
});
