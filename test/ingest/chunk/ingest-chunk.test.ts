/** Storing chunk by chunk: a request asks for exactly the span that its permit of the quota was taken for. */
import { afterEach, expect, test } from 'vitest';
import { formatTime } from '../../../src/contract/time.ts';
import { DAY } from '../../../src/core/interval.ts';
import type { Span } from '../../../src/core/span.ts';
import type { ChunkJob } from '../../../src/ingest/queue/chunk-job.ts';
import { startBackfill } from '../../../src/store/backfill/backfill.ts';
import { parseRange, toMultirange } from '../../../src/store/values/multirange.ts';
import { makeSeriesOf } from '../../bench/prepared.ts';
import { countLedgerWrites } from '../../support/ledger-writes.ts';
import { createScriptedWorld, NOW, TODAY } from '../../support/scripted-world.ts';
import type { World } from '../../support/world.ts';

const COINS = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'];
const CHUNKS_EACH = 3;
const FROM = TODAY - 1_200 * DAY;
const WHOLE = { from: FROM, to: FROM + CHUNKS_EACH * 366 * DAY };

let world: World;
afterEach(() => world?.close());

test('a permit is used for the span it was taken for, however many chunks wait for one at the same time', async () => {
  const made = await createScriptedWorld();
  world = made.world;
  const { sql } = world.database;
  const { session } = await world.open();
  const seriesIds = await makeSeriesOf(sql, COINS, '24h', WHOLE);
  const backfillId = await startBackfill(sql, {
    spec: {},
    span: WHOLE,
    interval: '24h',
    quote: 'usd',
    plannedRequests: 9,
    owner: 'here:1',
    requestedAt: NOW,
    startedAt: NOW,
  });
  // A different part of each chunk is stored already, so no two chunks lack the same slots.
  const chunks = COINS.flatMap((coinId, coin) =>
    Array.from({ length: CHUNKS_EACH }, (_, i) => {
      const from = FROM + i * 366 * DAY;
      const missing: Span = { from: from + (10 * (CHUNKS_EACH * coin + i) + 1) * DAY, to: from + 366 * DAY };
      return { coinId, seriesId: seriesIds[coin]!, from, to: missing.to, missing };
    }),
  );
  for (const seriesId of seriesIds) {
    const covered = chunks.filter((chunk) => chunk.seriesId === seriesId);
    const spans = covered.map(({ from, missing }) => ({ from, to: missing.from }));
    await sql`update market.series set covered = ${toMultirange(spans)}::tstzmultirange where id = ${seriesId}`;
  }
  const asked: { coinId: string; start: string | null; end: string | null }[] = [];
  made.upstream.script = (request) => {
    const { pathname, searchParams } = new URL(request.url);
    const coinId = COINS.find((id) => pathname.includes(`/${id}/ohlcv`));
    if (coinId !== undefined) asked.push({ coinId, start: searchParams.get('start'), end: searchParams.get('end') });
    return null;
  };
  const writes = await countLedgerWrites(sql);
  const outcomes = await Promise.all(
    chunks.map(({ missing: _, ...chunk }) => {
      const job: ChunkJob = { kind: 'backfill', backfillId, quote: 'usd', interval: '24h', askedSince: NOW, ...chunk };
      return session.ingestChunk(job);
    }),
  );
  for (const outcome of outcomes) expect(outcome).toMatchObject({ kind: 'stored', requests: 1 });
  expect(await writes(), 'statements of the ledger: the permits were taken together').toBeLessThan(chunks.length);
  const expected = chunks.map(({ coinId, missing }) => ({
    coinId,
    start: formatTime(missing.from),
    end: formatTime(missing.to - DAY),
  }));
  const inOrder = <T>(all: readonly T[]) => all.map((one) => JSON.stringify(one)).sort();
  expect(inOrder(asked)).toEqual(inOrder(expected));
  const recorded = await sql<{ seriesId: number; span: string }[]>`
    select series_id as "seriesId", span::text from ops.fetch where endpoint = 'ohlcv'`;
  expect(inOrder(recorded.map(({ seriesId, span }) => ({ seriesId, ...parseRange(span) })))).toEqual(
    inOrder(chunks.map(({ seriesId, missing }) => ({ seriesId, ...missing }))),
  );
  const [counted] = await sql<{ spent: number }[]>`
    select month_spent::int as spent from ops.quota_spent where name = ${`backfill ${backfillId}`}`;
  expect(counted!.spent).toBe(chunks.length);
  expect(await sql`select from market.gaps`).toHaveLength(0);
});
