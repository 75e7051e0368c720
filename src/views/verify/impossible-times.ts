/**
 * Rows at times that no slot has: infinite, before Christ, after the year 9999. No answer has such a row, so somebody wrote it. Some of them cannot
 * be hashed, and no command accepts their times. So verify leaves them out of its sums, and prints the statement that removes them.
 */
import { formatCounted } from '../../core/format.ts';
import { type Interval, isPriceInterval } from '../../core/interval.ts';
import { storedRows } from '../../store/candle/stored.ts';
import type { Sql, SqlOrTransaction } from '../../store/connection/connect.ts';

const FIRST = `'0001-01-01 00:00:00Z'`;
const END = `'10000-01-01 00:00:00Z'`;
/** These years as a multirange. */
export const ALL_YEARS = `'{[0001-01-01 00:00:00Z,10000-01-01 00:00:00Z)}'::tstzmultirange`;

/** The SQL condition that the instant, an expression, lies in the years 1 to 9999. */
export const isInYears = (at: string): string => `${at} >= ${FIRST} and ${at} < ${END}`;
const isImpossible = (at: string): string => `(${at} < ${FIRST} or ${at} >= ${END})`;

/** The impossible rows of one series or table. */
export type ImpossibleTimes = {
  readonly rows: number;
  /** The time of the first of them, as Postgres writes it. */
  readonly time: string;
  /** The statement that removes them. */
  readonly statement: string;
};

/** Reads the impossible rows of some series of one interval. */
export async function readImpossibleTimes(
  sql: SqlOrTransaction,
  interval: Interval,
  ids: readonly number[],
): Promise<Map<number, ImpossibleTimes>> {
  const rows = await sql<{ seriesId: number; rows: number; time: string }[]>`
    select page.id as series_id, count(*) as rows, min(c.open_time)::text as time
    from unnest(${ids as number[]}::int[]) page (id) cross join lateral ${storedRows(sql, sql`page.id`, interval)} c
    where ${sql.unsafe(isImpossible('c.open_time'))} group by 1`;
  const remove = (id: number) =>
    isPriceInterval(interval)
      ? `delete from market.price where series_id = ${id} and ${isImpossible('time')}`
      : `delete from market.candle where series_id = ${id} and interval = '${interval}' and ${isImpossible('open_time')}`;
  return new Map(rows.map(({ seriesId, ...row }) => [seriesId, { ...row, statement: remove(seriesId) }]));
}

/** Takes a statement that removes what a check has found outside the series. The same one may come several times. */
export type Correct = (statement: string) => void;

/** The tables with open times, other than those of the series. */
const OTHERS = ['market.rollup', 'market.calendar_candle', 'market.imported_candle', 'market.open_candle'] as const;

/** All differences, one sentence each. */
export async function impossibleTimesBeside(sql: Sql, correct: Correct): Promise<string[]> {
  const found: string[] = [];
  for (const table of OTHERS) {
    const [row] = await sql<{ rows: number; time: string | null }[]>`
      select count(*) as rows, min(open_time)::text as time from ${sql(table)} where ${sql.unsafe(isImpossible('open_time'))}`;
    const { rows, time } = row!;
    if (time === null) continue;
    const statement = `delete from ${table} where ${isImpossible('open_time')}`;
    correct(statement);
    found.push(
      `${table}: ${describeImpossibleTimes({ rows, time, statement }, 'row')}; this statement removes them: ${statement}`,
    );
  }
  return found;
}

/** `3 candles at times that no slot can have (the first: infinity)`. */
export function describeImpossibleTimes({ rows, time }: ImpossibleTimes, noun: string): string {
  const times = rows === 1 ? 'a time' : 'times';
  return `${formatCounted(rows, noun)} at ${times} that no slot can have (${rows === 1 ? '' : 'the first: '}${time})`;
}

/** The text of an instant that may be infinite. */
export function formatMaybeInfinite(at: number): string {
  return Number.isFinite(at) ? new Date(at).toISOString() : at > 0 ? 'infinity' : '-infinity';
}
