/** What Home says of a lock that somebody else holds for a long time. */
import { describe, expect, test, vi } from 'vitest';
import { database, look, NOTHING, seedBackfill, useDatabase } from './needs.ts';

useDatabase();

describe('requests that are held', () => {
  test('by a lock of another session: Home, the quota and the backfill name that session', async () => {
    const id = await seedBackfill({ state: 'running', span: '[2024-01-01,2024-01-04)' });
    await database.sql.begin(async (tx) => {
      const [me] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await tx`lock table market.price in access exclusive mode`;
      const named = `ession ${me!.pid} (user `;
      // Nobody is told of a lock that is held for a moment.
      await vi.waitFor(async () => expect(await look()).toContain(named), { timeout: 60_000, interval: 1_000 });
      expect(await look()).not.toContain(NOTHING);
      for (const path of ['/ui/quota', '/ui/system', `/ui/backfills/${id}`]) expect(await look(path)).toContain(named);
      expect(await look(`/ui/backfills/${id}`)).toContain('it may wait for the lock');
    });
    expect(await look()).not.toContain('holds a lock');
  });
});
