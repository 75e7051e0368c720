/** The store path (candles, coverage and the record of the request, one connection) compared with raw binary COPY of the same rows. */
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { copyCandles } from './binary-copy.ts';
import { makeSeries, type PreparedChunk, prepareChunks, ROWS_PER_CHUNK, storePrepared } from './prepared.ts';
import { median, spread, table, thousands, timed, verdict } from './rounds.ts';

const ROUNDS = 7;
const SERIES = 40;
const CHUNKS_EACH = 10;
const ROWS = SERIES * CHUNKS_EACH * ROWS_PER_CHUNK;
const TO = Date.UTC(2025, 0, 1);
const SPAN = { from: TO - CHUNKS_EACH * ROWS_PER_CHUNK * DAY, to: TO };
const AS_OF = Date.UTC(2025, 5, 1);

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase({ max: 1 });
  await ensurePartitions(database.sql, '24h', SPAN);
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

async function fresh(prefix: string): Promise<PreparedChunk[]> {
  return prepareChunks(await makeSeries(database.sql, prefix, SERIES, '24h', SPAN), '24h', SPAN);
}

const copyAll = (chunks: readonly PreparedChunk[]) =>
  timed(async () => {
    for (const { series, candles } of chunks) await copyCandles(client, series, candles);
  });
const storeAll = (chunks: readonly PreparedChunk[], asOf: number) =>
  timed(async () => {
    for (const chunk of chunks) await storePrepared(database.sql, chunk, asOf);
  });

it('stores answers at 0.40 of the speed of raw binary COPY or better', async () => {
  const rounds: { copy: number; store: number; again: number }[] = [];
  let grown = 0;
  for (let round = 0; round <= ROUNDS; round++) {
    const [copied, stored] = [await fresh(`copy${round}`), await fresh(`store${round}`)];
    // The second one profits from the caches and checkpoints of the first, so they take turns.
    const copyFirst = round % 2 === 0;
    const early = copyFirst ? await copyAll(copied) : null;
    const store = await storeAll(stored, AS_OF);
    const copy = early ?? (await copyAll(copied));
    const before = await candleBytes();
    const again = await storeAll(stored, AS_OF + DAY);
    grown += (await candleBytes()) - before;
    // The first round warms up.
    if (round > 0) rounds.push({ copy, store, again });
  }
  const perSecond = (name: 'copy' | 'store' | 'again') =>
    `${thousands((ROWS / median(rounds.map((r) => r[name]))) * 1000)} rows/s`;
  const ratios = rounds.map((r) => r.copy / r.store);
  const [server] = await database.sql<{ version: string; fsync: string }[]>`
    select current_setting('server_version') as version, current_setting('fsync') as fsync`;
  console.info(
    table(
      `store path, ${SERIES} fresh series × ${CHUNKS_EACH} chunks × ${ROWS_PER_CHUNK} rows, one connection, median of ${ROUNDS} (Postgres ${server!.version}, fsync ${server!.fsync})`,
      [
        ['raw binary COPY', perSecond('copy')],
        ['candles + coverage + evidence + fetch row', perSecond('store')],
        ['ratio (≥ 0.40)', `${spread(ratios)} ${verdict(median(ratios) >= 0.4)}`],
        ['the same rows again, later', `${perSecond('again')}, tables grew by ${thousands(grown)} bytes`],
      ],
    ),
  );
  expect(await candles()).toBe(2 * ROWS * (ROUNDS + 1));
  expect(grown).toBe(0);
});

it('reports how many bytes a candle needs, its key included', async () => {
  const lean = await createTestDatabase({ max: 1 });
  const { sql } = lean;
  const sizes = async () => {
    const [size] = await sql<
      { heap: number; key: number; all: number; evidence: number; fetches: number; rows: number }[]
    >`
      select sum(pg_relation_size(relid))::float8 as heap, sum(pg_indexes_size(relid))::float8 as key,
        (sum(pg_total_relation_size(relid)) + pg_total_relation_size('market.evidence'))::float8 as all,
        pg_total_relation_size('market.evidence')::float8 as evidence, pg_total_relation_size('ops.fetch')::float8 as fetches,
        (select count(*)::float8 from market.candle) as rows
      from pg_partition_tree('market.candle') where isleaf`;
    return size!;
  };
  try {
    // A backfill ends on any day of a year, and its series alternate.
    const to = Date.UTC(2025, 6, 13);
    const span = { from: to - CHUNKS_EACH * ROWS_PER_CHUNK * DAY, to };
    await ensurePartitions(sql, '24h', span);
    const ids = await makeSeries(sql, 'lean', 15 * SIDE_BY_SIDE, '24h', span);
    const chunks = takingTurns(prepareChunks(ids, '24h', span));
    for (const chunk of chunks) await storePrepared(sql, chunk, AS_OF + 90 * DAY);
    const written = await sizes();
    const partitions = await sql<{ name: string }[]>`
      select relid::text as name from pg_partition_tree('market.candle_24h') where isleaf`;
    const reindexed = await timed(async () => {
      for (const { name } of partitions) await sql.unsafe(`reindex table concurrently ${name}`);
    });
    const rebuilt = await sizes();
    const each = (bytes: number) => (bytes / written.rows).toFixed(1);
    const line = ({ heap, key, evidence, all }: typeof written) =>
      `${each(all)} (heap ${each(heap)}, key ${each(key)}, evidence ${each(evidence)})`;
    console.info(
      table(
        `storage of ${thousands(written.rows)} daily candles in the order of a backfill, bytes per candle, evidence included (keys rebuilt: ≤ 135)`,
        [
          ['as written', line(written)],
          [
            'keys rebuilt',
            `${line(rebuilt)} ${verdict(rebuilt.all / written.rows <= 135)}, ${thousands((written.rows / reindexed) * 1000)} candles/s`,
          ],
          ['records of the requests, on top', each(written.fetches)],
        ],
      ),
    );
    expect(written.rows).toBe(chunks.length * ROWS_PER_CHUNK);
  } finally {
    await lean.drop();
  }
});

it('stores the evidence of a year of daily answers in few bytes', async () => {
  const [refreshed, days] = [60, 365];
  const lean = await createTestDatabase({ max: 1 });
  const { sql } = lean;
  try {
    const span = { from: TO - days * DAY, to: TO };
    await ensurePartitions(sql, '24h', span);
    const ids = await makeSeries(sql, 'daily', refreshed, '24h', span);
    for (let at = span.from; at < span.to; at += DAY) {
      const chunks = prepareChunks(ids, '24h', { from: at, to: at + DAY });
      for (const chunk of chunks) await storePrepared(sql, chunk, at + 3 * DAY);
      // Autovacuum starts when a fifth of the rows have changed; during the benchmark it would not start in time.
      await sql`vacuum market.evidence`;
    }
    const [size] = await sql<{ bytes: number; steps: number; rows: number }[]>`
      select pg_total_relation_size('market.evidence')::float8 as bytes, count(*)::int as rows,
        sum(coalesce(cardinality(step_seconds), 1))::int as steps from market.evidence`;
    const each = size!.bytes / (refreshed * days);
    console.info(
      table(`evidence of ${refreshed} series of daily candles, one answer a day, ${days} days`, [
        ['bytes per candle (≤ 10)', `${each.toFixed(1)} ${verdict(each <= 10)}`],
        ['rows, steps', `${size!.rows}, ${thousands(size!.steps)}`],
      ]),
    );
    expect(size!.steps).toBe(refreshed * days);
  } finally {
    await lean.drop();
  }
});

/** Series whose chunks alternate in a backfill. */
const SIDE_BY_SIDE = 16;

function takingTurns(chunks: readonly PreparedChunk[]): PreparedChunk[] {
  const group = SIDE_BY_SIDE * CHUNKS_EACH;
  return chunks.map((_, i) => {
    const [start, turn] = [i - (i % group), i % group];
    return chunks[start + (turn % SIDE_BY_SIDE) * CHUNKS_EACH + Math.floor(turn / SIDE_BY_SIDE)]!;
  });
}

async function candles(): Promise<number> {
  const [row] = await database.sql<{ n: number }[]>`select count(*)::int as n from market.candle`;
  return row!.n;
}

async function candleBytes(): Promise<number> {
  const [row] = await database.sql<{ bytes: number }[]>`
    select sum(pg_relation_size(relid) + pg_indexes_size(relid))::float8 as bytes
    from pg_partition_tree('market.candle') where isleaf`;
  return row!.bytes;
}
