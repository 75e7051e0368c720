/**
 * Makes coarser candles ahead of time, so that SQL reads them like stored ones. `market.rollup` holds them, and `market.rollup_coverage` says for
 * which spans of a series. They are made only from final candles, and only where no coarser series has an answer for the slot. A transaction
 * that changes one of these conditions removes them (`ops.cut_rollups`), and the next run makes them again.
 */
import { type Instant, systemClock } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { type CandleInterval, ceilToGrid, floorToGrid, INTERVAL_MS, INTERVALS } from '../../core/interval.ts';
import { intersect, normalize, type Span, type Spans, slotsAt, subtract, union } from '../../core/span.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { parseMultirange } from '../values/multirange.ts';
import { makeCalendar } from './calendar-candle.ts';
import { CANDLE_VALUES, coarseCandle, widthOf } from './coarse-candle.ts';
import { lockCoin } from './lock-series.ts';

/**
 * Candles of this width and wider are made ahead of time: 2,555 rows per year and coin, whatever they are made from, which is 2.4 % of the number
 * of its 5m candles. Those of 15m, 30m and 1h would be 58 % more. An answer of 366 of them reads at most 4,392 candles of 5m, which takes five
 * milliseconds, so the query of the reader makes them.
 */
const NARROWEST: CandleInterval = '6h';
/** The widest interval. No slot of another interval crosses its borders, because every interval divides a day. */
const WIDEST: CandleInterval = '24h';

/** True if candles of `coarse` are made ahead of time from those of `fine`. */
export function isRolledUp(fine: CandleInterval, coarse: CandleInterval): boolean {
  return INTERVAL_MS[coarse] > INTERVAL_MS[fine] && INTERVAL_MS[coarse] >= INTERVAL_MS[NARROWEST];
}

/** The intervals whose candles are made ahead of time from those of `fine`. */
export const rolledUpFrom = (fine: CandleInterval) => INTERVALS.filter((coarse) => isRolledUp(fine, coarse));

/** SQL that selects the rollup of the series `id` for the slot that opens at `slot`, if `isRolled`. All three are SQL expressions. */
export function rolledCandle(
  coarse: CandleInterval,
  { id, slot, isRolled }: { readonly id: string; readonly slot: string; readonly isRolled: string },
): string {
  return `
    select ${CANDLE_VALUES.join(', ')} from market.rollup
    where series_id = ${id} and interval = '${coarse}' and open_time = ${slot} and ${isRolled}`;
}

/**
 * Removes the rollups that were made from candles in `spans`, or over which these candles take precedence. Call it under the lock of the series
 * when candles change. When coverage changes, a trigger does it.
 */
export async function cutRollups(tx: SqlOrTransaction, seriesId: number, spans: Spans): Promise<void> {
  if (spans.length > 0) await tx`select ops.cut_rollups(${seriesId}, ${spans}::tstzmultirange)`;
}

type RollUpOptions = {
  /** Ends the run between two transactions. */
  readonly signal?: AbortSignal;
  /** Limits the run to these coins. Undefined means all series. */
  readonly of?: { readonly coinIds: readonly string[]; readonly quote: Quote; readonly interval: CandleInterval };
  /** After so many milliseconds the run leaves the rest to the next one. Default: no limit. */
  readonly mostMs?: number;
};

/**
 * Makes all missing rollups, and then the weeks and months from all days. Resolves to the number of candles. A kill at any time is safe, and
 * several processes may run it at once.
 */
export async function rollUp(
  sql: Sql,
  { signal, of, mostMs = Number.POSITIVE_INFINITY }: RollUpOptions = {},
): Promise<number> {
  const until = systemClock.now() + mostMs;
  const isOver = () => signal?.aborted === true || systemClock.now() >= until;
  let made = 0;
  for (let after = 0; !isOver(); ) {
    const page = await readPage(sql, after, of);
    for (const series of page) {
      for (const stretch of stretchesOf(series)) {
        if (isOver()) return made;
        made += await makeStretch(sql, series, stretch);
      }
    }
    if (page.length < PAGE) break;
    after = page.at(-1)!.id;
  }
  return made + (await makeCalendar(sql, { of, isOver }));
}

/** Series in one page. */
const PAGE = 500;
/** Finer candles in one transaction. It takes about twenty milliseconds, and an answer about the coin waits that long to be stored. */
const MOST_CANDLES = 5_000;

type Made = { readonly interval: CandleInterval; readonly spans: Spans };
type Coarser = { readonly id: number; readonly interval: CandleInterval; readonly covered: Spans };
type Rollable = {
  readonly id: number;
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: CandleInterval;
  readonly covered: Spans;
  /** The spans already made, for each coarser interval. */
  readonly made: readonly Made[];
  /** Coarser series of the same coin and quote. */
  readonly coarser: readonly Coarser[];
};

/** The row as Postgres sends it: multiranges inside JSON are text. */
type AsText<T> = { readonly [K in keyof T]: T[K] extends Spans ? string : T[K] };
type RollableRow = Omit<Rollable, 'made' | 'coarser'> & {
  readonly made: readonly AsText<Made>[] | null;
  readonly coarser: readonly AsText<Coarser>[] | null;
};

function rollable(sql: SqlOrTransaction) {
  return sql`
    select s.id, s.coin_id, s.quote, s.interval, s.covered,
      (select json_agg(json_build_object('interval', r.interval, 'spans', r.spans::text)) from market.rollup_coverage r
        where r.series_id = s.id) as made,
      (select json_agg(json_build_object('id', c.id, 'interval', c.interval, 'covered', c.covered::text)) from market.series c
        where c.coin_id = s.coin_id and c.quote = s.quote and c.interval > s.interval and c.interval <= '24h') as coarser
    from market.series s`;
}

const readRow = ({ made, coarser, ...row }: RollableRow): Rollable => ({
  ...row,
  made: (made ?? []).map((one) => ({ ...one, spans: parseMultirange(one.spans) })),
  coarser: (coarser ?? []).map((one) => ({ ...one, covered: parseMultirange(one.covered) })),
});

async function readPage(sql: Sql, after: number, of: RollUpOptions['of']): Promise<Rollable[]> {
  const rows = await sql<RollableRow[]>`
    ${rollable(sql)}
    where s.id > ${after} and s.interval < '24h' and s.covered <> '{}'
      ${of === undefined ? sql`` : sql`and s.quote = ${of.quote} and s.coin_id = any(${of.coinIds as string[]}::text[])`}
    order by s.id limit ${PAGE}`;
  return rows.map(readRow);
}

/** The slots of `target` that are to be made from this series: no coarser series covers them, and they are not made yet. */
function dueOf({ covered, made, coarser }: Rollable, target: CandleInterval): Spans {
  const told = coarser
    .filter(({ interval }) => INTERVAL_MS[interval] <= INTERVAL_MS[target])
    .reduce<Spans>((all, one) => union(all, slotsWithin(one.covered, target)), []);
  const done = made.find(({ interval }) => interval === target)?.spans ?? [];
  return subtract(subtract(slotsWithin(covered, target), told), done);
}

/** The spans of a series that need rollups: in whole days, newest first, cut into one part per transaction. */
function stretchesOf(series: Rollable): Spans {
  const due = rolledUpFrom(series.interval).reduce<Spans>((all, target) => union(all, dueOf(series, target)), []);
  const most = floorToGrid(MOST_CANDLES * INTERVAL_MS[series.interval], WIDEST);
  return wholeDaysAround(due)
    .flatMap(({ from, to }) =>
      Array.from({ length: Math.ceil((to - from) / most) }, (_, i) => ({
        from: from + i * most,
        to: Math.min(to, from + (i + 1) * most),
      })),
    )
    .reverse();
}

/** Makes the rollups of one part in one transaction. */
function makeStretch(sql: Sql, { id, coinId, quote }: Rollable, stretch: Span): Promise<number> {
  return sql.begin(async (tx) => {
    // Two statements, so that the second sees what others committed while the first waited for the lock.
    await lockCoin(tx, coinId, quote);
    const [row] = await tx<RollableRow[]>`
      ${rollable(tx)} where s.id = ${id} and s.coin_id = ${coinId}`;
    // The series was removed meanwhile, or now belongs to another coin.
    if (row === undefined) return 0;
    const series = readRow(row);
    let made = 0;
    for (const target of rolledUpFrom(series.interval)) {
      const own = series.coarser.find(({ interval }) => interval === target)?.id;
      const wanted = intersect(dueOf(series, target), [stretch]);
      const due = own === undefined ? wanted : subtract(wanted, await slotsStored(tx, own, target, wanted));
      if (due.length === 0) continue;
      const parameters = [id, due[0]!.from, due.at(-1)!.to, due];
      made += (await tx.unsafe(make(series.interval, target), parameters, { prepare: true })).count;
      await tx`
        insert into market.rollup_coverage as r (series_id, interval, spans)
        values (${id}, ${target}::market.candle_interval, ${due})
        on conflict (series_id, interval) do update set spans = r.spans + excluded.spans`;
    }
    return made;
  }) as Promise<number>;
}

/** Slots for which the coarser series has a candle that is not final yet. Such a candle takes precedence over a rollup. */
async function slotsStored(tx: SqlOrTransaction, id: number, interval: CandleInterval, spans: Spans): Promise<Spans> {
  if (spans.length === 0) return [];
  const rows = await tx<{ at: Instant }[]>`
    select open_time as at from market.candle where series_id = ${id} and interval = ${tx.unsafe(`'${interval}'`)}
      and open_time >= ${spans[0]!.from} and open_time < ${spans.at(-1)!.to} order by 1`;
  return slotsAt(
    rows.map(({ at }) => at),
    INTERVAL_MS[interval],
  );
}

/** Works slot by slot, which takes half the time of grouping. The bounds ($2, $3) repeat those of the slots, so that Postgres skips partitions. */
const make = (fine: CandleInterval, coarse: CandleInterval) => `
  insert into market.rollup (series_id, interval, open_time, ${CANDLE_VALUES.join(', ')})
  select $1::int, '${coarse}', slot, made.*
  from unnest($4::tstzmultirange) part
  cross join lateral generate_series(lower(part), upper(part) - ${widthOf(coarse)}, ${widthOf(coarse)}) slot
  cross join lateral (${coarseCandle(fine, coarse, {
    id: '$1::int',
    slot: 'slot',
    where: 'open_time >= $2::timestamptz and open_time < $3::timestamptz',
  })}) made`;

/** The slots that lie entirely inside these spans. */
function slotsWithin(spans: Spans, interval: CandleInterval): Span[] {
  return normalize(spans.map(({ from, to }) => ({ from: ceilToGrid(from, interval), to: floorToGrid(to, interval) })));
}

function wholeDaysAround(spans: Spans): Spans {
  return normalize(spans.map(({ from, to }) => ({ from: floorToGrid(from, WIDEST), to: ceilToGrid(to, WIDEST) })));
}
