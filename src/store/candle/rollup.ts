/**
 * Coarser candles made ahead of time, so that a year of them is read quickly: `market.rollup` has them, `market.rollup_coverage` says of which
 * spans of a series. Only of final candles, and of whole days. A transaction that changes the finer candles removes the span from
 * `market.rollup_coverage`, under the lock of the series, and the next run makes these rollups again.
 */
import { type Clock, type Instant, systemClock } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { type CandleInterval, ceilToGrid, floorToGrid, INTERVAL_MS, INTERVALS } from '../../core/interval.ts';
import { intersect, normalize, type Spans, subtract, union } from '../../core/span.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { parseMultirange } from '../values/multirange.ts';
import { CANDLE_VALUES, coarseCandle, widthOf } from './coarse-candle.ts';

/**
 * A coarser candle with at least so many parts is made ahead of time. So no answer of 366 candles reads more than 4,392 rows (12 parts
 * each), which takes five milliseconds, and rollups never need more than a fourteenth of the space of the finer candles.
 */
const LEAST_PARTS = 24;
/** Every other interval divides it, and it never crosses a partition. */
const WIDEST: CandleInterval = '24h';

/** Are candles of `coarse` made ahead of time out of those of `fine`? */
export function isRolledUp(fine: CandleInterval, coarse: CandleInterval): boolean {
  return INTERVAL_MS[coarse] / INTERVAL_MS[fine] >= LEAST_PARTS;
}

const targetsOf = (fine: CandleInterval) => INTERVALS.filter((coarse) => isRolledUp(fine, coarse));
const ROLLED_UP = INTERVALS.filter((fine) => targetsOf(fine).length > 0);

/** A select of `CANDLE_VALUES` of the series `id`, for the slot that opens at `slot`, if `isRolled`. All three are SQL expressions. */
export function rolledCandle(
  coarse: CandleInterval,
  { id, slot, isRolled }: { readonly id: string; readonly slot: string; readonly isRolled: string },
): string {
  return `
    select ${CANDLE_VALUES.join(', ')} from market.rollup
    where series_id = ${id} and interval = '${coarse}' and open_time = ${slot} and ${isRolled}`;
}

/** Removes the rollups that overlap `spans`. Call it with the series locked, if `market.rollup_coverage` has any of `spans`. */
export async function cutRollups(tx: SqlOrTransaction, seriesId: number, spans: Spans): Promise<void> {
  const days = wholeDaysAround(spans);
  if (days.length === 0) return;
  await tx`
    with cut as (
      update market.rollup_coverage set spans = spans - ${days}::tstzmultirange where series_id = ${seriesId}
    )
    delete from market.rollup
    where series_id = ${seriesId} and interval = any(enum_range(null::market.candle_interval))
      and open_time >= ${days[0]!.from} and open_time < ${days.at(-1)!.to}
      and ${days}::tstzmultirange @> open_time`;
}

export type RollUpOptions = {
  /** Ends the run between two transactions. */
  readonly signal?: AbortSignal;
  /** Of all series, or of these only. */
  readonly of?: { readonly coinIds: readonly string[]; readonly quote: Quote; readonly interval: CandleInterval };
  /** After so long, the rest is left to the next run. */
  readonly mostMs?: number;
  readonly clock?: Pick<Clock, 'now'>;
};

/** Makes all missing rollups. Resolves to how many. May be killed at any time, and run by several processes at once. */
export async function rollUp(
  sql: Sql,
  { signal, of, mostMs = Number.POSITIVE_INFINITY, clock = systemClock }: RollUpOptions = {},
): Promise<number> {
  const until = clock.now() + mostMs;
  const isOver = () => signal?.aborted === true || clock.now() >= until;
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
  return made;
}

/** Series of one statement. */
const PAGE = 500;
/** Finer candles of one transaction. It takes some twenty milliseconds, and an answer about the series waits so long to be stored. */
const MOST_CANDLES = 20_000;

type Rollable = {
  readonly id: number;
  readonly interval: CandleInterval;
  readonly covered: Spans;
  readonly rolled: Spans;
  /** Of the same coin and quote. */
  readonly coarser: readonly { readonly interval: CandleInterval; readonly covered: Spans }[];
};

/** What is inside of JSON is as Postgres writes it. */
type RollableRow = Omit<Rollable, 'coarser'> & {
  readonly coarser: readonly { readonly interval: CandleInterval; readonly covered: string }[] | null;
};

async function readPage(sql: Sql, after: number, of: RollUpOptions['of']): Promise<Rollable[]> {
  const rows = await sql<RollableRow[]>`
    select s.id, s.interval, s.covered, coalesce(r.spans, '{}') as rolled, (
      select json_agg(json_build_object('interval', c.interval, 'covered', c.covered::text)) from market.series c
      where c.coin_id = s.coin_id and c.quote = s.quote and c.interval > s.interval and c.interval <= '24h' and c.covered <> '{}') as coarser
    from market.series s left join market.rollup_coverage r on r.series_id = s.id
    where s.id > ${after} and s.interval = any(${ROLLED_UP as string[]}::text[]::market.candle_interval[]) and s.covered <> '{}'
      ${of === undefined ? sql`` : sql`and s.interval = ${of.interval}::market.candle_interval and s.quote = ${of.quote} and s.coin_id = any(${of.coinIds as string[]}::text[])`}
    order by s.id limit ${PAGE}`;
  return rows.map(({ coarser, ...row }) => ({
    ...row,
    coarser: (coarser ?? []).map((one) => ({ interval: one.interval, covered: parseMultirange(one.covered) })),
  }));
}

/** The spans of a series that need rollups, newest first, in parts for one transaction each. */
function stretchesOf({ interval, covered, rolled, coarser }: Rollable): Spans {
  // Where a coarser series has the word, nobody asks this one: for each candle to be made, those up to its own interval.
  const needless = targetsOf(interval)
    .map((target) =>
      coarser
        .filter((one) => INTERVALS.indexOf(one.interval) <= INTERVALS.indexOf(target))
        .reduce<Spans>((all, one) => union(all, one.covered), []),
    )
    .reduce(intersect);
  const due = subtract(subtract(wholeDaysIn(covered), wholeDaysIn(needless)), rolled);
  const most = floorToGrid(MOST_CANDLES * INTERVAL_MS[interval], WIDEST);
  return wholeDaysAround(due)
    .flatMap(({ from, to }) =>
      Array.from({ length: Math.ceil((to - from) / most) }, (_, i) => ({
        from: from + i * most,
        to: Math.min(to, from + (i + 1) * most),
      })),
    )
    .reverse();
}

/** Makes the rollups of one part in one transaction. Answers about the series wait, so the finer candles do not change meanwhile. */
function makeStretch(
  sql: Sql,
  { id, interval }: Rollable,
  stretch: { readonly from: Instant; readonly to: Instant },
): Promise<number> {
  return sql.begin(async (tx) => {
    // Two statements: the second sees what was committed while the first waited.
    await tx`select from market.series where id = ${id} for no key update`;
    const [row] = await tx<{ covered: Spans }[]>`
      select covered * ${[stretch]}::tstzmultirange as covered from market.series where id = ${id}`;
    const days = wholeDaysIn(row?.covered ?? []);
    if (days.length === 0) return 0;
    await cutRollups(tx, id, days);
    let made = 0;
    for (const target of targetsOf(interval)) {
      for (const { from, to } of days) {
        const written = await tx.unsafe(make(interval, target), [id, from, to], { prepare: true });
        made += written.count;
      }
    }
    await tx`
      insert into market.rollup_coverage as r (series_id, spans) values (${id}, ${days})
      on conflict (series_id) do update set spans = r.spans + excluded.spans`;
    return made;
  }) as Promise<number>;
}

const make = (fine: CandleInterval, coarse: CandleInterval) => `
  insert into market.rollup (series_id, interval, open_time, ${CANDLE_VALUES.join(', ')})
  select $1::int, '${coarse}', slot, made.*
  from generate_series($2::timestamptz, $3::timestamptz - ${widthOf(coarse)}, ${widthOf(coarse)}) slot
  cross join lateral (${coarseCandle(fine, coarse, {
    id: '$1::int',
    slot: 'slot',
    where: 'open_time >= $2::timestamptz and open_time < $3::timestamptz',
  })}) made`;

function wholeDaysIn(spans: Spans): Spans {
  return normalize(
    spans
      .map(({ from, to }) => ({ from: ceilToGrid(from, WIDEST), to: floorToGrid(to, WIDEST) }))
      .filter(({ from, to }) => from < to),
  );
}

function wholeDaysAround(spans: Spans): Spans {
  return normalize(spans.map(({ from, to }) => ({ from: floorToGrid(from, WIDEST), to: ceilToGrid(to, WIDEST) })));
}
