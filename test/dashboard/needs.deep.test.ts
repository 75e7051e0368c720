/** What Home says about a lock that another session holds for a long time. */
import { describe, expect, test, vi } from 'vitest';
import { database, look, NOTHING, seedBackfill, useDatabase } from './needs.ts';

useDatabase();

describe('requests that are held', () => {
  test('by a lock of another session are shown with that session on Home, the quota page and the page of the backfill', async () => {
    const id = await seedBackfill({ state: 'running', span: '[2024-01-01,2024-01-04)' });
    await database.sql.begin(async (tx) => {
      const [me] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await tx`lock table market.price in access exclusive mode`;
      const named = `ession ${me!.pid} (user `;
      // A lock that is held for a moment is not reported.
      await vi.waitFor(async () => expect(await look()).toContain(named), { timeout: 60_000, interval: 1_000 });
      expect(await look()).not.toContain(NOTHING);
      for (const path of ['/ui/quota', '/ui/system', `/ui/backfills/${id}`]) expect(await look(path)).toContain(named);
      expect(await look(`/ui/backfills/${id}`)).toContain('it may wait for the lock');
    });
    expect(await look()).not.toContain('holds a lock');
  });
});
