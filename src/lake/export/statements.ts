/** The SQL statements for the rows of a file, each small enough for Postgres to sort its rows in memory. */
import { createHash } from 'node:crypto';
import { countSlots } from '../../core/chunk.ts';
import { type Interval, isPriceInterval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import { pagesOf } from '../../store/candle/series.ts';
import { PRICE_AS_CANDLE } from '../../store/candle/stored.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import type { Dataset, HistoryDataset, SourceColumn, TableDataset } from '../dataset/dataset.ts';
import type { SeriesWithin } from './read-series.ts';

/** Maximum number of rows, and of series, in one statement. */
const MOST = { rows: 200_000, series: 200 };

export type Narrowed = {
  readonly span: Span;
  readonly coinIds: readonly string[] | null;
  readonly finalOnly: boolean;
};

/** Selects rows of series in the order of `within`, and then of time. */
export async function* seriesStatements(
  columns: readonly SourceColumn[],
  within: readonly SeriesWithin[],
  { span, finalOnly }: Narrowed,
): AsyncGenerator<string> {
  for await (const page of pagesOf(within, MOST, mostRows)) {
    const { interval } = page[0]!;
    yield `select ${columns.map(({ sql }) => sql).join(', ')}
      from unnest('{${page.map(({ id }) => id).join(',')}}'::int[]) with ordinality as page (id, position)
      join market.series s on s.id = page.id
      cross join lateral (${stored(interval, span)}) c
      ${finalOnly ? 'where s.covered @> c.open_time' : ''}
      order by page.position, c.open_time`;
  }
}

function stored(interval: Interval, span: Span): string {
  return isPriceInterval(interval)
    ? `select ${PRICE_AS_CANDLE} from market.price where series_id = page.id ${within('time', span)}`
    : `select * from market.candle where series_id = page.id and interval = ${literal(interval)} ${within('open_time', span)}`;
}

/** The most rows that a series can have within the file. */
function mostRows({ covered, interval, provisional }: SeriesWithin): number {
  // The number of rows in an unbounded coverage is unknown.
  const slots = countSlots(covered, interval);
  return provisional + (Number.isFinite(slots) ? slots : MOST.rows);
}

/** Selects all rows of a table, or of a stretch of a history. */
export function tableStatement(dataset: HistoryDataset | TableDataset, narrowed: Narrowed): string {
  const { columns, order } = dataset;
  return `select ${columns.map(({ sql }) => sql).join(', ')} ${fromTable(dataset, narrowed)} order by ${order}`;
}

/** The clauses `from … where …`. */
export function fromTable(dataset: HistoryDataset | TableDataset, { span, coinIds }: Narrowed): string {
  const { from, coin } = dataset;
  const time = dataset.kind === 'history' ? within(dataset.time, span) : '';
  const coins = coin === undefined || coinIds === null ? '' : `and ${coin} = any(${textArray(coinIds)})`;
  return `from ${from} where true ${time} ${coins}`;
}

/**
 * The version of a stretch of a history. Rows are only added at its newest end, and removed at its oldest. Other coins may have as many rows of the
 * same times, so the version also has the coins, and the columns.
 */
export async function readHistoryVersion(
  sql: SqlOrTransaction,
  dataset: HistoryDataset,
  narrowed: Narrowed,
): Promise<string> {
  const { time, columns } = dataset;
  const [row] = await sql.unsafe<{ ends: string }[]>(
    `select row(count(*), min(${time}), max(${time}))::text as ends ${fromTable(dataset, narrowed)}`,
  );
  const coins = narrowed.coinIds === null ? null : [...narrowed.coinIds].sort();
  const state = JSON.stringify([columns, coins, row!.ends]);
  return createHash('sha256').update(state).digest('hex').slice(0, 32);
}

function within(column: string, { from, to }: Span): string {
  const after = Number.isFinite(from) ? `and ${column} >= '${iso(from)}'` : '';
  const before = Number.isFinite(to) ? `and ${column} < '${iso(to)}'` : '';
  return `${after} ${before}`;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

function textArray(values: readonly string[]): string {
  return `array[${values.map(literal).join(',')}]::text[]`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

export function typesOf({ columns }: Pick<Dataset, 'columns'>) {
  return columns.map(({ type }) => type);
}
