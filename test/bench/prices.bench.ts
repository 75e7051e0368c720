/** Storing answers of 5,000 prices compared with raw binary COPY of the same rows into a table of the same shape; bytes on disk; verify. */
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MAX_PRICES } from '../../src/contract/plan/plans.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { copyPrices } from './binary-copy.ts';
import { makeSeries, type PreparedChunk, prepareChunks, storePrepared } from './prepared.ts';
import { median, spread, table, thousands, timed, verdict } from './rounds.ts';

const ROUNDS = 7;
const SERIES = 10;
const CHUNKS_EACH = 4;
const ROWS = SERIES * CHUNKS_EACH * MAX_PRICES;
const TO = Date.UTC(2025, 0, 1);
const SPAN = { from: TO - CHUNKS_EACH * MAX_PRICES * HOUR, to: TO };
const AS_OF = Date.UTC(2025, 5, 1);

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase({ max: 1 });
  await database.sql`create table market.price_copied (like market.price including all)`;
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

async function fresh(prefix: string): Promise<PreparedChunk[]> {
  const ids = await makeSeries(database.sql, prefix, SERIES, 'prices-1h', SPAN);
  return prepareChunks(ids, 'prices-1h', SPAN, MAX_PRICES);
}

const copyAll = (chunks: readonly PreparedChunk[]) =>
  timed(async () => {
    for (const { series, candles } of chunks) await copyPrices(client, 'market.price_copied', series, candles);
  });
const storeAll = (chunks: readonly PreparedChunk[], asOf: number) =>
  timed(async () => {
    for (const chunk of chunks) await storePrepared(database.sql, chunk, asOf);
  });

it('stores answers of 5,000 prices at 0.40 of the speed of raw binary COPY or better', async () => {
  const rounds: { copy: number; store: number; again: number }[] = [];
  let grown = 0;
  for (let round = 0; round <= ROUNDS; round++) {
    const [copied, stored] = [await fresh(`copy${round}`), await fresh(`store${round}`)];
    // The second one profits from the caches and checkpoints of the first, so they take turns.
    const early = round % 2 === 0 ? await copyAll(copied) : null;
    const store = await storeAll(stored, AS_OF);
    const copy = early ?? (await copyAll(copied));
    const before = await sizeOfPrices();
    const again = await storeAll(stored, AS_OF + DAY);
    grown += (await sizeOfPrices()) - before;
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
      `store path of prices, ${SERIES} fresh series × ${CHUNKS_EACH} answers × ${thousands(MAX_PRICES)} rows, one connection, median of ${ROUNDS} (Postgres ${server!.version}, fsync ${server!.fsync})`,
      [
        ['raw binary COPY', perSecond('copy')],
        ['prices + coverage + evidence + fetch row', perSecond('store')],
        ['ratio (≥ 0.40)', `${spread(ratios)} ${verdict(median(ratios) >= 0.4)}`],
        ['the same rows again, later', `${perSecond('again')}, the table grew by ${thousands(grown)} bytes`],
      ],
    ),
  );
  const [stored] = await database.sql<{ n: number }[]>`select count(*)::int as n from market.price`;
  expect(stored!.n).toBe(ROWS * (ROUNDS + 1));
  expect(grown).toBe(0);
});

async function sizeOfPrices(): Promise<number> {
  const [row] = await database.sql<{ bytes: number }[]>`
    select (pg_relation_size('market.price') + pg_indexes_size('market.price'))::float8 as bytes`;
  return row!.bytes;
}

/** Series whose answers alternate in a backfill. */
const SIDE_BY_SIDE = 16;

it('reports how many bytes a price needs, and how fast it is verified', async () => {
  const lean = await createTestDatabase({ max: 4 });
  const { sql } = lean;
  try {
    const ids = await makeSeries(sql, 'lean', 2 * SIDE_BY_SIDE, 'prices-1h', SPAN);
    const chunks = prepareChunks(ids, 'prices-1h', SPAN, MAX_PRICES);
    const group = SIDE_BY_SIDE * CHUNKS_EACH;
    for (let i = 0; i < chunks.length; i++) {
      const [start, turn] = [i - (i % group), i % group];
      const place = start + (turn % SIDE_BY_SIDE) * CHUNKS_EACH + Math.floor(turn / SIDE_BY_SIDE);
      await storePrepared(sql, chunks[place]!, AS_OF);
    }
    const sizes = async () => {
      const [size] = await sql<{ heap: number; key: number; evidence: number; fetches: number; rows: number }[]>`
        select pg_relation_size('market.price')::float8 as heap, pg_indexes_size('market.price')::float8 as key,
          pg_total_relation_size('market.evidence')::float8 as evidence, pg_total_relation_size('ops.fetch')::float8 as fetches,
          (select count(*)::float8 from market.price) as rows`;
      return size!;
    };
    const written = await sizes();
    await sql`reindex table market.price`;
    const rebuilt = await sizes();
    expect(written.rows).toBe(chunks.length * MAX_PRICES);
    await sql`vacuum analyze`;
    const reads: number[] = [];
    const verifies: number[] = [];
    for (let round = 0; round < 4; round++) {
      reads.push(await timed(() => sql`select count(*), sum(price) from market.price`));
      verifies.push(
        await timed(async () => {
          let found = 0;
          for await (const proof of verifySeries(sql, {}, AS_OF)) {
            expect(proof.differences).toEqual([]);
            found += proof.candles;
          }
          expect(found).toBe(written.rows);
        }),
      );
    }
    const each = (bytes: number) => (bytes / written.rows).toFixed(2);
    const row = written.heap / written.rows;
    const speed = (times: readonly number[]) => `${thousands((written.rows / median(times.slice(1))) * 1000)} prices/s`;
    console.info(
      table(`storage and proof of ${thousands(written.rows)} hourly prices in the order of a backfill, bytes a price`, [
        ['row with the columns of its key (≤ 75)', `${each(written.heap)} ${verdict(row <= 75)}`],
        ['index', `${each(written.key)}, rebuilt ${each(rebuilt.key)}`],
        ['evidence', each(written.evidence)],
        ['records of the requests, on top', each(written.fetches)],
        ['verified', `${speed(verifies)}; only counted and added up: ${speed(reads)}`],
      ]),
    );
  } finally {
    await lean.drop();
  }
});
