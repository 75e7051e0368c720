/**
 * Makes candles of whole weeks and months ahead of time, from daily candles: stored ones, and rollups of finer series. It makes a candle only
 * where every day is final. Calendar periods are not intervals of a series: months differ in length, and upstream has neither weeks nor months.
 */
import { PERIODS, type Period, periodsWithin } from '../../core/calendar.ts';
import type { Quote } from '../../core/candle.ts';
import { type Spans, subtract, union } from '../../core/span.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { parseMultirange } from '../values/multirange.ts';
import { CANDLE_VALUES, candlesBySlot } from './coarse-candle.ts';
import { lockCoin } from './lock-series.ts';

type CalendarOptions = {
  /** Limits the run to these coins. Undefined means all coins. */
  readonly of?: { readonly coinIds: readonly string[]; readonly quote: Quote } | undefined;
  readonly isOver: () => boolean;
};

/** Makes all missing weeks and months. Resolves to their number. A kill at any time is safe, and several processes may run it at once. */
export async function makeCalendar(sql: Sql, { of, isOver }: CalendarOptions): Promise<number> {
  let made = 0;
  let after: Pick<Days, 'coinId' | 'quote'> = { coinId: '', quote: 'btc' };
  while (!isOver()) {
    const page = await readPage(sql, after, of);
    for (const coin of page) {
      if (isOver()) return made;
      if (PERIODS.some((period) => dueOf(coin, period).length > 0)) made += await makeCandles(sql, coin);
    }
    if (page.length < PAGE) break;
    after = page.at(-1)!;
  }
  return made;
}

/** Coins in one page. */
const PAGE = 500;

type Days = {
  readonly coinId: string;
  readonly quote: Quote;
  /** Days that are final, as daily candles or as rollups. */
  readonly final: Spans;
  readonly made: Readonly<Partial<Record<Period, Spans>>>;
};

/** The row as Postgres sends it: multiranges inside JSON are text. */
type DaysRow = Omit<Days, 'final' | 'made'> & {
  readonly final: readonly string[];
  readonly made: Readonly<Partial<Record<Period, string>>> | null;
};

function days(sql: SqlOrTransaction) {
  return sql`
    select s.coin_id, s.quote, json_agg((case when s.interval = '24h' then s.covered else coalesce(r.spans, '{}') end)::text) as final,
      (select json_object_agg(c.period, c.spans::text) from market.calendar_coverage c
        where c.coin_id = s.coin_id and c.quote = s.quote) as made
    from market.series s left join market.rollup_coverage r on r.series_id = s.id and r.interval = '24h'`;
}

const readRow = ({ final, made, ...row }: DaysRow): Days => ({
  ...row,
  final: final.reduce<Spans>((all, one) => union(all, parseMultirange(one)), []),
  made: Object.fromEntries(Object.entries(made ?? {}).map(([period, spans]) => [period, parseMultirange(spans)])),
});

async function readPage(sql: Sql, after: Pick<Days, 'coinId' | 'quote'>, of: CalendarOptions['of']): Promise<Days[]> {
  const rows = await sql<DaysRow[]>`
    ${days(sql)}
    where s.interval <= '24h' and (s.coin_id, s.quote) > (${after.coinId}, ${after.quote})
      ${of === undefined ? sql`` : sql`and s.quote = ${of.quote} and s.coin_id = any(${of.coinIds as string[]}::text[])`}
    group by s.coin_id, s.quote order by s.coin_id, s.quote limit ${PAGE}`;
  return rows.map(readRow);
}

function dueOf({ final, made }: Days, period: Period): Spans {
  return subtract(periodsWithin(final, period), made[period] ?? []);
}

function makeCandles(sql: Sql, { coinId, quote }: Days): Promise<number> {
  return sql.begin(async (tx) => {
    // Two statements, so that the second sees what others committed while the first waited for the lock.
    await lockCoin(tx, coinId, quote);
    const [row] = await tx<DaysRow[]>`
      ${days(tx)} where s.interval <= '24h' and s.coin_id = ${coinId} and s.quote = ${quote} group by s.coin_id, s.quote`;
    if (row === undefined) return 0;
    const coin = readRow(row);
    let made = 0;
    for (const period of PERIODS) {
      const due = dueOf(coin, period);
      if (due.length === 0) continue;
      made += (await tx.unsafe(make(period), [coinId, quote, due], { prepare: true })).count;
      await tx`
        insert into market.calendar_coverage as c (coin_id, quote, period, spans) values (${coinId}, ${quote}, ${period}, ${due})
        on conflict (coin_id, quote, period) do update set spans = c.spans + excluded.spans`;
    }
    return made;
  }) as Promise<number>;
}

/** SQL that selects the daily candles of a coin in `spans`: stored ones and rollups. All three arguments are SQL expressions. */
export function finalDays(coinId: string, quote: string, spans: string): string {
  return ['candle', 'rollup']
    .map(
      (table) => `
    select d.open_time, ${CANDLE_VALUES.map((name) => `d.${name}`).join(', ')}
    from market.series s join market.${table} d on d.series_id = s.id and d.interval = '24h'
    where s.coin_id = ${coinId} and s.quote = ${quote} and s.interval <= '24h'
      and d.open_time >= lower(${spans}) and d.open_time < upper(${spans}) and ${spans} @> d.open_time`,
    )
    .join('\n    union all');
}

const make = (period: Period) => `
  insert into market.calendar_candle (coin_id, quote, period, open_time, ${CANDLE_VALUES.join(', ')}, slots)
  select $1, $2, '${period}', open_time, ${CANDLE_VALUES.join(', ')}, slots
  from (${candlesBySlot(`date_trunc('${period}', open_time, 'UTC')`, `(${finalDays('$1', '$2', '$3::tstzmultirange')}) daily`)}) made`;
