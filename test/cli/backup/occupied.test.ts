/** `chandler restore` into a database that has a warehouse: an empty one is replaced, any other is not. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { migrate } from '../../../src/store/migration/migrate.ts';
import { beginLake } from '../../../src/store/work/lake.ts';
import { runCommand } from '../../support/cli.ts';
import { backup, client, folder, original, restore, run, seriesOf, target, useDatabases } from './occupied.ts';

useDatabases();

describe.skipIf(client === null)('a warehouse that holds nothing', () => {
  test('is replaced when a service has made it in an empty database', async () => {
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
    // It has begun a lake, which is empty.
    await beginLake(target.sql, { id: randomUUID(), place: '/lake' });
    const { code, out, err } = await restore();
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain('removed the warehouse that was there: it was empty\n');
    expect(await seriesOf(target)).toBe(2);
  });

  test('is kept when the backup cannot be restored', async () => {
    await migrate(target);
    const file = path.join(folder, 'other.dump');
    writeFileSync(file, 'create table x ()');
    expect((await run(target, ['restore', file])).code).toBe(1);
    expect(await seriesOf(target)).toBe(0);
  });

  test('is kept while a service runs on it', async () => {
    await backup();
    await migrate(target);
    await target.sql`
      insert into ops.instance (owner, roles, started_at, heartbeat_at) values ('vm:4080', '{http}', now(), now())`;
    const { code, err } = await restore();
    expect(code).toBe(2);
    expect(err).toContain('which is empty, but a service uses it: vm:4080; stop it');
    expect(await seriesOf(target)).toBe(0);
  });
});

describe.skipIf(client === null)('a warehouse that holds anything is kept, and the error names what it holds', () => {
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
    expect(err).toContain(
      `has a warehouse of 0 series already, with rows in ${table}, and a restore never replaces data`,
    );
    expect(err).toContain(`psql "$DATABASE_URL" -c 'drop schema market, ops cascade'`);
    expect(await target.sql.unsafe(`select from ${table}`)).not.toHaveLength(0);
  });
});

test.skipIf(client === null)('what ran at the time of the backup does not run in the restored warehouse', async () => {
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
