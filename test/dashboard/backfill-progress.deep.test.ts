/** The progress of a backfill that learns while it runs how much is left. */
import { expect, test } from 'vitest';
import { become, closers, open, record, service, stateOf, until, world } from '../ingest/backfill/backfill-runner.ts';

test('a backfill planned as one request, which finds the history limit, knows what is left as soon as it has found it', async () => {
  const wall = { overrides: { historyDepthMs: null } };
  await open({ plan: 'free', simulator: { seed: 5, coins: 12, latencyMs: 20, unlimited: true, limits: wall } });
  try {
    const id = await record(['btc-bitcoin']);
    await world.database.sql`update ops.backfill set planned_requests = 1, left_requests = 1 where id = ${id}`;
    await service('a:1', { candlesPerRequest: 10 });
    const seen: { spent: number; left: number | null; progress: number | null }[] = [];
    await until(async () => {
      const { state, spent, leftRequests, progress } = await stateOf(id);
      if (state === 'running') seen.push({ spent, left: leftRequests, progress });
      expect(state).toBe('done');
    });
    const late = seen.filter(({ spent }) => spent > 3 && spent < 80);
    expect(late.length).toBeGreaterThan(3);
    for (const { spent, left, progress } of late) {
      expect([spent, left! > 80 - spent]).toEqual([spent, true]);
      expect(progress).toBeLessThan(0.95);
    }
    await become(id, 'done');
  } finally {
    for (const close of closers.splice(0)) await close();
    await world.close();
  }
});
