/** A warehouse with every kind of evidence, and what verify finds after it was damaged. The damage is undone. */
import { DAY, isCandleInterval } from '../../../src/core/interval.ts';
import type { Span } from '../../../src/core/span.ts';
import { rollUp } from '../../../src/store/candle/rollup.ts';
import { writeDocuments } from '../../../src/store/catalogue/document.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { type SeriesProof, verifySeries } from '../../../src/views/operations/verify.ts';
import { verifyWarehouse } from '../../../src/views/verify/warehouse.ts';
import { makeSeries, prepareChunks, storePrepared } from '../../bench/prepared.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

export const FROM = Date.UTC(2023, 0, 1);
const SPAN = { from: FROM, to: FROM + 732 * DAY };
const AS_OF = Date.UTC(2025, 5, 1);
export const iso = (day: number) => new Date(FROM + day * DAY).toISOString();
export const slot = (n: number): Span => ({ from: FROM + n * DAY, to: FROM + (n + 1) * DAY });

/** Where the rows of a series are stored, for candles and for prices. */
export type Kept = {
  readonly interval: '24h' | 'prices-1d';
  readonly table: string;
  readonly time: string;
  /** Each number of a row: its column, and the column of market.revision with its old value. */
  readonly columns: readonly (readonly [column: string, inRevision: string])[];
  /** What identifies a row besides its time. */
  readonly key: string;
  readonly hash: string;
};

const VALUES = ['open', 'high', 'low', 'close', 'volume', 'market_cap'] as const;

export const CANDLES: Kept = {
  interval: '24h',
  table: 'market.candle',
  time: 'open_time',
  columns: VALUES.map((name) => [name, name]),
  key: 'series_id, interval',
  hash: `market.candle_hash(open_time, ${VALUES.join(', ')})`,
};

export const PRICES: Kept = {
  interval: 'prices-1d',
  table: 'market.price',
  time: 'time',
  columns: [
    ['price', 'close'],
    ['volume_24h', 'volume'],
    ['market_cap', 'market_cap'],
  ],
  key: 'series_id',
  hash: 'market.candle_hash(time, price, price, price, price, volume_24h, market_cap)',
};

export const BOTH: readonly (readonly [of: string, kept: Kept])[] = [
  ['candles', CANDLES],
  ['prices', PRICES],
];

/** Fills in a statement that works for both: `{rows}`, `{time}`, `{close}` and so on stand for the table and its columns. */
export function inWords(statement: string, { interval, table, time, columns, key, hash }: Kept): string {
  const column = (name: string) => columns.find(([, old]) => old === name)?.[0] ?? 'price';
  const prices = columns.map(([name]) => name).filter((name) => !/volume|market_cap/.test(name));
  const words: Readonly<Record<string, string>> = {
    rows: table,
    time,
    key,
    hash,
    interval,
    ...Object.fromEntries(VALUES.map((name) => [name, column(name)])),
    values: columns.map(([name]) => name).join(', '),
    'prices × 10': prices.map((name) => `${name} = ${name} * 10`).join(', '),
    'prices of o': prices.map((name) => `${name} = o.${name}`).join(', '),
  };
  return statement.replace(/\{([^{}[\]"]+)\}/g, (text, word: string) => words[word] ?? text);
}

export type Tampered = { readonly database: TestDatabase; readonly a: number; readonly b: number };

/** Answers of a year each, a late answer that changes two slots, four refreshes of one slot each, a span that was mended and requested again. */
export async function createWarehouse({ interval }: Kept = CANDLES): Promise<Tampered> {
  const database = await createTestDatabase();
  const { sql } = database;
  await ensurePartitions(sql, '24h', { from: SPAN.from, to: SPAN.to + 30 * DAY });
  await ensurePartitions(sql, '24h', { from: SPAN.from + 10_000 * DAY, to: SPAN.to + 10_000 * DAY });
  const ids = await makeSeries(sql, 'coin', 2, interval, SPAN);
  const [a, b] = [ids[0]!, ids[1]!];
  const chunks = prepareChunks(ids, interval, SPAN);
  for (const chunk of chunks) await storePrepared(sql, chunk, AS_OF);
  const last = chunks.find((chunk) => chunk.series.id === a && chunk.span.to === SPAN.to)!;
  const close = last.candles.close.map((value, i) => (i === 5 || i === 9 ? value! * 1.0001 : value));
  const changed = isCandleInterval(interval) ? { close } : { open: close, high: close, low: close, close };
  await storePrepared(sql, { ...last, candles: { ...last.candles, ...changed } }, AS_OF + DAY);
  for (let day = 0; day < 4; day++) {
    const span = { from: SPAN.to + day * DAY, to: SPAN.to + (day + 1) * DAY };
    await storePrepared(sql, prepareChunks([a], interval, span)[0]!, AS_OF + DAY + day);
  }
  await sql`select ops.uncover(${a}, ${iso(100)}::timestamptz, ${iso(110)}::timestamptz)`;
  await storePrepared(
    sql,
    prepareChunks([a], interval, { from: FROM + 100 * DAY, to: FROM + 110 * DAY })[0]!,
    AS_OF + 2 * DAY,
  );
  for (const version of [1, 2, 3]) {
    const text = `{"id":"sam","name":"Sam ${version}"}`;
    const documents = [{ id: 'sam', text, fingerprint: text }];
    await writeDocuments(sql, { kind: 'person', documents, at: AS_OF + version * DAY });
  }
  return { database, a, b };
}

/** Days of the hourly series. */
export const FINE_DAYS = 30;

/** Adds an hourly series with rollups, and weeks and months of all series. Resolves to the number of the series. */
export async function addRolledUp({ sql }: TestDatabase): Promise<number> {
  const span = { from: FROM, to: FROM + FINE_DAYS * DAY };
  await ensurePartitions(sql, '1h', span);
  const [id] = await makeSeries(sql, 'fine', 1, '1h', span);
  for (const chunk of prepareChunks([id!], '1h', span)) await storePrepared(sql, chunk, AS_OF);
  await rollUp(sql);
  // Candles of 6h, 12h and 24h.
  const expected = FINE_DAYS * (4 + 2 + 1);
  const [{ made } = { made: 0 }] = await sql<{ made: number }[]>`select count(*)::int as made from market.rollup`;
  if (made !== expected) throw new Error(`${made} rollups were made instead of ${expected}`);
  return id!;
}

export type Found = {
  readonly proofs: SeriesProof[];
  readonly others: string[];
  readonly all: string[];
  /** Differences of series that remain after the repair that verify offers was done once. */
  readonly unmended: string[];
  /** Differences outside the series that remain after the statements that verify offers for them. */
  readonly left: string[];
};

/** What verify finds after `damage`, one or more statements, and after the repair that it offers. Both are undone. */
export async function verifiedAfter(database: TestDatabase, damage: string): Promise<Found> {
  const undo = new Error('undone');
  let found = { proofs: [] as SeriesProof[], others: [] as string[] };
  let mended: SeriesProof[] = [];
  let left: string[] = [];
  const removals = new Set<string>();
  await database.sql
    .begin(async (tx) => {
      await tx.unsafe(`set local session_replication_role = replica; ${damage}`);
      const inside = Object.assign(tx, {
        begin: (_: string, work: (inner: unknown) => unknown) => work(tx),
      }) as unknown as typeof database.sql;
      const proofs = async () => {
        const list: SeriesProof[] = [];
        for await (const proof of verifySeries(inside, {}, Date.now())) list.push(proof);
        return list;
      };
      found = { proofs: await proofs(), others: await verifyWarehouse(inside, (statement) => removals.add(statement)) };
      for (const { removals } of found.proofs) for (const statement of removals) await tx.unsafe(statement);
      const wrong = found.proofs.filter(({ repairs, removals }) => repairs.length + removals.length > 0);
      for (const { seriesId, repairs } of wrong) {
        for (const { from, to } of repairs) {
          if (!Number.isFinite(from)) await tx`select ops.uncover(${seriesId})`;
          else await tx`select ops.uncover(${seriesId}, ${from}::timestamptz, ${to}::timestamptz)`;
        }
      }
      if (wrong.length > 0) mended = await proofs();
      for (const statement of removals) await tx.unsafe(statement);
      left = removals.size > 0 ? await verifyWarehouse(inside) : found.others;
      throw undo;
    })
    .catch((error) => {
      if (error !== undo) throw error;
    });
  const differences = (list: readonly SeriesProof[]) => list.flatMap((proof) => proof.differences);
  return { ...found, all: [...differences(found.proofs), ...found.others], unmended: differences(mended), left };
}
