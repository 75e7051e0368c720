/** `market.candles_as_known`: an answer that could be stored only later was not known before it was stored. */
import { expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import type { ChunkJob } from '../../src/ingest/queue/chunk-job.ts';
import type { OutageRetry } from '../../src/ingest/request/outage-retry.ts';
import { startBackfill } from '../../src/store/backfill/backfill.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { createScriptedWorld, NOW, TODAY } from '../support/scripted-world.ts';

test('an answer that waits for an unavailable database is known from when it was stored, not from when it arrived', async () => {
  const { world, upstream } = await createScriptedWorld();
  try {
    const { session } = await world.open();
    const { sql } = world.database;
    const span = { from: TODAY - 33 * DAY, to: TODAY - 3 * DAY };
    const [seriesId] = await wantSeries(sql, {
      coinIds: ['btc-bitcoin'],
      quote: 'usd',
      interval: '24h',
      span,
      priority: 0,
    });
    const startedAt = world.clock.now();
    const backfillId = await startBackfill(sql, {
      spec: {},
      span,
      interval: '24h',
      quote: 'usd',
      plannedRequests: 1,
      owner: 'here:1',
      requestedAt: startedAt,
      startedAt,
    });
    const job: ChunkJob = {
      kind: 'backfill',
      backfillId,
      seriesId: seriesId!,
      coinId: 'btc-bitcoin',
      quote: 'usd',
      interval: '24h',
      ...span,
      askedSince: startedAt,
    };
    // The database is unavailable for two hours from when the answer arrives.
    let isAway = false;
    const retry: OutageRetry = async (work) => {
      if (isAway) world.clock.advanceTo(NOW + 2 * HOUR);
      return work(false);
    };
    upstream.script = async (request, simulated) => {
      const answer = await simulated(request);
      isAway = request.url.includes('/ohlcv');
      return answer;
    };
    const sent = world.clock.now();
    expect(await session.ingestChunk(job, { retry })).toMatchObject({ kind: 'stored', stored: 30 });
    const known = async (at: number) => (await sql`select from market.candles_as_known(${at}::timestamptz)`).length;
    expect(await known(sent + HOUR)).toBe(0);
    expect(await known(NOW + 2 * HOUR + 60_000)).toBe(30);
  } finally {
    await world.close();
  }
});
