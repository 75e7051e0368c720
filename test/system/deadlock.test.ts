/** Two sessions wait for each other, and Postgres ends the transaction that has an answer. The answer is stored all the same. */
import { expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { createOutageRetry } from '../../src/ingest/request/outage-retry.ts';
import { startBackfill } from '../../src/store/backfill/backfill.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { createClient } from '../../src/store/connection/connect.ts';
import { createScriptedWorld, TODAY } from '../support/scripted-world.ts';
import { until } from '../support/until.ts';

test('an answer whose transaction a deadlock ended is stored again without another request', async () => {
  const { world, upstream } = await createScriptedWorld();
  const { sql, url } = world.database;
  const other = createClient({ url, max: 1 });
  try {
    const { session } = await world.open();
    const span = { from: TODAY - 33 * DAY, to: TODAY - 3 * DAY };
    const slot = { coinId: 'btc-bitcoin', quote: 'usd', interval: '24h' } as const;
    const [seriesId] = await wantSeries(sql, { ...slot, coinIds: [slot.coinId], span, priority: 0 });
    const startedAt = world.clock.now();
    const backfillId = await startBackfill(sql, {
      ...{ spec: {}, span, interval: '24h', quote: 'usd', plannedRequests: 1, owner: 'here:1' },
      requestedAt: startedAt,
      startedAt,
    });
    const { signal } = new AbortController();
    const retry = createOutageRetry({ clock: world.clock, signal });
    const job = { kind: 'backfill', backfillId, seriesId: seriesId!, ...slot, ...span, askedSince: startedAt } as const;
    let storing: ReturnType<typeof session.ingestChunk> | undefined;
    // Postgres ends the session that detects the deadlock first: the chunk, which waits first.
    await other`set deadlock_timeout = '3s'`;
    await other
      .begin(async (tx) => {
        await tx`lock table ops.fetch in share mode`;
        storing = session.ingestChunk(job, { retry });
        storing.catch(() => undefined);
        const waits = () =>
          sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        await until(async () => (await waits()).length > 0);
        await tx`select from market.series where id = ${seriesId!} for update`;
      })
      // On a slow machine this session may be ended.
      .catch(() => undefined);
    expect(await storing).toMatchObject({ kind: 'stored', requests: 1, stored: 30 });
    expect(upstream.ohlcv()).toHaveLength(1);
    expect(await sql`select from ops.fetch where series_id = ${seriesId!}`).toHaveLength(1);
  } finally {
    await other.end({ timeout: 5 });
    await world.close();
  }
});
