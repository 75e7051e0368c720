/**
 * Rows at times that no slot has: infinite, before Christ, after the year 9999. No answer tells of them and no command can name them, and some cannot
 * even be hashed. So verify adds them up nowhere, and says how to remove them.
 */
import { type Interval, isPriceInterval } from '../../core/interval.ts';
import { storedRows } from '../../store/candle/stored.ts';
import type { Sql, SqlOrTransaction } from '../../store/connection/connect.ts';

const FIRST = `'0001-01-01 00:00:00Z'`;
const END = `'10000-01-01 00:00:00Z'`;
/** The same as a multirange. */
export const ALL_YEARS = `'{[0001-01-01 00:00:00Z,10000-01-01 00:00:00Z)}'::tstzmultirange`;

/** Lies the instant, an expression, in the years 1 to 9999? */
export const isInYears = (at: string): string => `${at} >= ${FIRST} and ${at} < ${END}`;
const isTimeless = (at: string): string => `(${at} < ${FIRST} or ${at} >= ${END})`;

/** Rows that are nowhere in time. */
export type Timeless = {
  readonly rows: number;
  /** Of the first of them, as Postgres writes it. */
  readonly time: string;
  /** Removes them. */
  readonly statement: string;
};

/** Of some series of one interval. */
export async function readTimeless(
  sql: SqlOrTransaction,
  interval: Interval,
  ids: readonly number[],
): Promise<Map<number, Timeless>> {
  const rows = await sql<{ seriesId: number; rows: number; time: string }[]>`
    select page.id as series_id, count(*) as rows, min(c.open_time)::text as time
    from unnest(${ids as number[]}::int[]) page (id) cross join lateral ${storedRows(sql, sql`page.id`, interval)} c
    where ${sql.unsafe(isTimeless('c.open_time'))} group by 1`;
  const remove = (id: number) =>
    isPriceInterval(interval)
      ? `delete from market.price where series_id = ${id} and ${isTimeless('time')}`
      : `delete from market.candle where series_id = ${id} and interval = '${interval}' and ${isTimeless('open_time')}`;
  return new Map(rows.map(({ seriesId, ...row }) => [seriesId, { ...row, statement: remove(seriesId) }]));
}

/** The tables beside those of the series. */
const OTHERS = ['market.rollup', 'market.calendar_candle', 'market.imported_candle', 'market.open_candle'] as const;

/** All differences, one sentence each. */
export async function timelessBeside(sql: Sql): Promise<string[]> {
  const found: string[] = [];
  for (const table of OTHERS) {
    const [row] = await sql<{ rows: number; time: string | null }[]>`
      select count(*) as rows, min(open_time)::text as time from ${sql(table)} where ${sql.unsafe(isTimeless('open_time'))}`;
    const { rows, time } = row!;
    if (time === null) continue;
    const statement = `delete from ${table} where ${isTimeless('open_time')}`;
    found.push(`${table}: ${sayTimeless({ rows, time, statement }, 'row')}; this removes what is there: ${statement}`);
  }
  return found;
}

/** `3 candles at times that no slot has (the first: infinity)`. */
export function sayTimeless({ rows, time }: Timeless, noun: string): string {
  return rows === 1
    ? `1 ${noun} at a time that no slot has (${time})`
    : `${rows} ${noun}s at times that no slot has (the first: ${time})`;
}

/** Of an instant that may be infinite. */
export function sayInstant(at: number): string {
  return Number.isFinite(at) ? new Date(at).toISOString() : at > 0 ? 'infinity' : '-infinity';
}
