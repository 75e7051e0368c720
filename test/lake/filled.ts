/** A warehouse with rows for every dataset: candles and prices of several intervals, holes, nulls, values that are not final, and every table. */
import { DAY, HOUR, type Interval, MINUTE } from '../../src/core/interval.ts';
import { DATASETS } from '../../src/lake/dataset/datasets.ts';
import { openFolder } from '../../src/lake/destination/folder.ts';
import { type Exported, type ExportOptions, exportFiles } from '../../src/lake/export/export.ts';
import type { Selection } from '../../src/lake/export/selection.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { ensurePartitions, ensurePartitionsOf, TICKER_HISTORY } from '../../src/store/upkeep/partition.ts';
import { makeSeriesOf, type PreparedChunk, prepareChunks, storePrepared } from '../bench/prepared.ts';
import { fillProved } from '../support/proved-warehouse.ts';

export const FROM = Date.UTC(2023, 0, 1);
export const AS_OF = Date.UTC(2025, 0, 1);
export const COINS = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'] as const;

const KINDS: readonly (readonly [Interval, number, number])[] = [
  ['24h', Date.UTC(2023, 10, 1), Date.UTC(2024, 2, 10)],
  ['1h', Date.UTC(2024, 2, 20), Date.UTC(2024, 3, 5)],
  ['5m', Date.UTC(2024, 3, 29), Date.UTC(2024, 4, 2)],
  ['prices-1d', Date.UTC(2023, 11, 1), Date.UTC(2024, 1, 1)],
];

export const ALL: Selection = {
  datasets: DATASETS,
  coinIds: null,
  intervals: null,
  span: { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY },
  finalOnly: false,
  format: 'parquet',
  layout: 'hive',
};

/** Exports everything into a folder, or only what `selection` names. */
export async function exportTo(
  database: ExportOptions['database'],
  folder: string,
  selection: Partial<Selection> = {},
  options: Partial<ExportOptions> = {},
): Promise<Exported> {
  const exported = await exportFiles({
    database,
    destination: openFolder(folder),
    selection: { ...ALL, ...selection },
    signal: new AbortController().signal,
    ...options,
  });
  if (exported === null) throw new Error('nothing was exported');
  return exported;
}

export const datasets = (...names: string[]) => DATASETS.filter(({ name }) => names.includes(name));

/** Fills the database. Resolves to the series of the first coin, by interval. */
export async function fillAll(sql: Sql): Promise<Map<Interval, number>> {
  await fillProved(sql);
  const first = new Map<Interval, number>();
  for (const [interval, from, to] of KINDS) {
    const span = { from, to };
    if (!interval.startsWith('prices')) await ensurePartitions(sql, interval as never, span);
    const ids = await makeSeriesOf(sql, COINS, interval, span);
    first.set(interval, ids[0]!);
    for (const chunk of prepareChunks(ids, interval, span)) await storePrepared(sql, withHoles(chunk), AS_OF);
  }
  await storeProvisional(sql);
  await fillTables(sql);
  return first;
}

/** Removes some rows in the middle, so that their slots are known to be empty, and sets some values to null. */
export function withHoles({ candles, ...chunk }: PreparedChunk): PreparedChunk {
  const keep = candles.openTime.map((_, i) => i % 17 !== 8);
  const kept = <T>(values: readonly T[]) => values.filter((_, i) => keep[i]);
  const nulls = (values: readonly (number | null)[], every: number) =>
    kept(values).map((value, i) => (i % every === every - 1 ? null : value));
  // Now and then a slot in which the upstream knows no value.
  const prices = (values: readonly (number | null)[]) => nulls(values, 23);
  return {
    ...chunk,
    candles: {
      openTime: kept(candles.openTime),
      open: prices(candles.open),
      high: prices(candles.high),
      low: prices(candles.low),
      close: prices(candles.close),
      volume: nulls(candles.volume, 5),
      marketCap: nulls(candles.marketCap, 3),
    },
  };
}

/** Days that were answered before they had settled. */
async function storeProvisional(sql: Sql): Promise<void> {
  const span = { from: Date.UTC(2024, 2, 10), to: Date.UTC(2024, 2, 13) };
  const [id] = await makeSeriesOf(sql, [COINS[0]], '24h', span);
  for (const chunk of prepareChunks([id!], '24h', span)) await storePrepared(sql, chunk, span.to - HOUR);
}

/** One row of each table with every value, and one with every nullable value null. */
async function fillTables(sql: Sql): Promise<void> {
  await ensurePartitionsOf(sql, TICKER_HISTORY, { from: FROM, to: FROM + 70 * DAY });
  await sql`update market.coin set first_data_at = ${FROM}::timestamptz where id = ${COINS[0]}`;
  await sql`update market.coin set type = null where id = ${COINS[1]}`;
  const tables = DATASETS.flatMap((dataset) =>
    dataset.kind === 'series' || dataset.from.startsWith('(') ? [] : [dataset.from],
  );
  const skipped = new Set(['market.coin', 'market.coverage', 'market.gaps']);
  for (const table of tables.filter((name) => !skipped.has(name))) {
    const [, name] = table.split('.') as [string, string];
    const columns = await sql<{ name: string; type: string; isNullable: string; dataType: string }[]>`
      select column_name as name, udt_name as type, is_nullable, data_type from information_schema.columns
      where table_schema = 'market' and table_name = ${name} order by ordinal_position`;
    for (const [i, isFull] of [true, false].entries()) {
      const given = columns.filter(({ isNullable }) => isFull || isNullable === 'NO');
      const values = given.map((column) => literalOf(column.name, column.type, i));
      await sql.unsafe(
        `insert into ${table} (${given.map((column) => `"${column.name}"`).join(', ')}) values (${values.join(', ')})`,
      );
    }
  }
}

function literalOf(name: string, type: string, i: number): string {
  const at = new Date(FROM + i * 40 * DAY + (i === 0 ? 0 : MINUTE / 4)).toISOString();
  if (name === 'coin_id') return `'${COINS[i]}'`;
  if (name === 'source') return `'coins'`;
  if (name === 'field') return `'symbol'`;
  switch (type) {
    case 'timestamptz':
      return `'${at}'`;
    case 'float8':
      return String((i + 1) / 7);
    case 'int4':
      return String(i + 1);
    case 'bool':
      return String(i === 0);
    case '_text':
      return `array['a,"b"', 'ü']`;
    case 'jsonb':
    case 'json':
      return `'{"website": ["https://example.org/?a=1,2"]}'`;
    case 'bytea':
      return `'\\xdeadbeef'`;
    default:
      return `'${name}, "${i}" ü${i === 0 ? '\n2' : ''}'`;
  }
}
