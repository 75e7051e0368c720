/** A chunk of another backfill waits for quota. It stands before our chunks in the queue, and our run must not wait for it forever. */
import { expect, onTestFinished, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { startBackfill } from '../../../src/store/backfill/backfill.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { createWorld } from '../../support/world.ts';

test('a run ends when the quota is used up, also when a chunk of another backfill is the one that finds it used up', async () => {
  const world = await createWorld({
    speed: 100,
    startAt: Date.UTC(2026, 9, 5, 12),
    simulator: { seed: 1, coins: 3 },
    limits: { perDay: 2 },
  });
  onTestFinished(() => world.close());
  const { sql } = world.database;
  const chandler = await world.open({ candlesPerRequest: 10 });
  const [mine, other] = (await world.simulator.data.coins()).map((coin) => coin.id);
  const now = world.clock.now();
  const to = Date.UTC(2026, 9, 1);
  const target = { interval: '24h', quote: 'usd', span: { from: to - 50 * DAY, to } } as const;
  // Its process ended before it could record that: the backfill counts as running, and its chunk is in the queue.
  const abandoned = { ...target, coinIds: [other!] };
  await wantSeries(sql, { ...abandoned, priority: 0 });
  const backfillId = await startBackfill(sql, {
    ...abandoned,
    spec: {},
    plannedRequests: 5,
    owner: 'elsewhere:1',
    requestedBy: null,
    requestedAt: now,
    startedAt: now,
  });
  const [series] = await sql<{ id: number }[]>`select id from market.series where coin_id = ${other!}`;
  const leave = (priority: number) =>
    chandler.queue.add(
      [
        {
          kind: 'backfill',
          backfillId,
          seriesId: series!.id,
          coinId: other!,
          quote: 'usd',
          interval: '24h',
          from: to - 10 * DAY,
          to,
          askedSince: now,
        },
      ],
      priority,
    );
  await sql`update ops.quota set day_spent = 2`;
  await leave(5);
  const { end } = await chandler.backfill({
    ...target,
    coins: [mine!],
    ...target.span,
    concurrency: 1,
    maxWaitMs: 20_000,
  });
  expect(end).toMatchObject({ kind: 'stopped', reason: 'day' });
});
