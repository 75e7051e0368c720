/** The progress of a backfill, as pages and commands show it: never 100% while it goes on. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { renewClaim } from '../../src/store/backfill/backfill-queue.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import { runCommand } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { NOW, type Visit, visit } from './visiting.ts';

describe('a backfill with nothing left of its plan', () => {
  let database: TestDatabase;
  let page: Visit;
  beforeEach(async () => {
    database = await createTestDatabase();
    page = await visit(database);
  });
  afterEach(async () => {
    await page.close();
    await database.drop();
    expect(page.errors).toEqual([]);
  });

  async function seed(state: string, message: string | null = null): Promise<number> {
    const [row] = await database.sql<{ id: number }[]>`
      insert into ops.backfill (requested_at, started_at, heartbeat_at, owner, state, spec, span, interval, quote, planned_requests,
        left_requests, is_detached, coin_ids, message, progress, finished_at)
      values (now(), now(), now(), 'host:1', ${state}, '{}', tstzrange('2020-01-01', '2021-01-01'), '24h', 'usd', 1, 0, true,
        '{btc-bitcoin}', ${message}, 0.999, case when ${state} = 'done' then now() end)
      returning id`;
    return row!.id;
  }

  test.each([
    ['running', null, 'none known, it looks for more'],
    ['queued', null, 'none known, it looks again'],
    ['queued', 'another backfill', 'others fetch it'],
    ['paused', null, 'none known; resume it to look again'],
  ])('that is %s (%s) is shown with: %s', async (state, message, left) => {
    const id = await seed(state, message);
    const env = { DATABASE_URL: database.url };
    const { out: list } = await runCommand(['backfills', 'list'], { env });
    const { out: show } = await runCommand(['backfills', 'show', String(id)], { env });
    const screens = await Promise.all(['/', '/ui/backfills', `/ui/backfills/${id}`].map((path) => page.look(path)));
    for (const text of [list, show, ...screens.map((screen) => screen.text)]) {
      expect(text).toContain(left);
      expect(text).toContain('99.9%');
      expect(text).not.toMatch(/100%|\b0 (requests )?left|\| 0 \| [^|]*\| *pause/);
    }
  });

  test('that left everything to other backfills, which failed, has no progress', async () => {
    const id = await seed('queued');
    const { sql } = database;
    await sql`update ops.backfill set progress = 0, planned_requests = 100 where id = ${id}`;
    const progressOf = async () => (await readBackfills(sql, { all: true, id }))[0]!.progress;
    expect(await progressOf()).toBe(0);
    await sql`update ops.backfill set state = 'running' where id = ${id}`;
    for (const leftRequests of [100, 75]) {
      const known = { leftRequests, finish: null, chunks: null };
      await renewClaim(sql, { id, owner: 'host:1', now: NOW, claimedAt: NOW, known });
      expect(await progressOf()).toBe(1 - leftRequests / 100);
    }
  });

  test('that is done is shown as 100%', async () => {
    const id = await seed('done');
    expect((await page.look('/ui/backfills?all=true')).text).toContain('| 100% | 0 | |');
    expect((await page.look(`/ui/backfills/${id}`)).text).toContain('100%');
  });
});
