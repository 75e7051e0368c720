/** Writes candles and prices. One statement per answer: `unnest` of arrays is the fastest form that can also update (see the benchmark). */
import type { Instant } from '../../clock.ts';
import type { CandleColumns } from '../../core/candle.ts';
import { type Interval, isPriceInterval } from '../../core/interval.ts';
import { contains, type Span, type Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { writeInstants, writeNumbers } from '../values/array-types.ts';
import { PRICE_AS_CANDLE } from './stored.ts';

/** The caller passes a price as a candle whose open, high, low and close are the price. `ops.stored` returns it in the same form. */
const INSERT = `
  insert into market.candle as c (open_time, open, high, low, close, volume, market_cap, series_id, interval)
  select to_timestamp(t), o, h, l, cl, v, m, $8::integer, $9::market.candle_interval
  from unnest($1::float8[], $2::float8[], $3::float8[], $4::float8[], $5::float8[], $6::float8[], $7::float8[]) as u(t, o, h, l, cl, v, m)`;

/** Identical rows write nothing, so a repeated request leaves no dead tuples. */
const OVERWRITE = `
  on conflict (series_id, interval, open_time) do update
  set open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close,
      volume = excluded.volume, market_cap = excluded.market_cap
  where (c.open, c.high, c.low, c.close, c.volume, c.market_cap)
    is distinct from (excluded.open, excluded.high, excluded.low, excluded.close, excluded.volume, excluded.market_cap)`;

const INSERT_PRICES = `
  insert into market.price as p (time, price, volume_24h, market_cap, series_id)
  select to_timestamp(t), c, v, m, $5::integer from unnest($1::float8[], $2::float8[], $3::float8[], $4::float8[]) as u(t, c, v, m)`;

const OVERWRITE_PRICES = `
  on conflict (series_id, time) do update
  set price = excluded.price, volume_24h = excluded.volume_24h, market_cap = excluded.market_cap
  where (p.price, p.volume_24h, p.market_cap) is distinct from (excluded.price, excluded.volume_24h, excluded.market_cap)`;

const STORED_CANDLES = `lateral (select * from market.candle where series_id = s.id and interval = $9::market.candle_interval)`;
const STORED_PRICES = `lateral (select ${PRICE_AS_CANDLE} from market.price where series_id = s.id and $9::market.candle_interval > '24h')`;

/**
 * Copies the old values of every covered slot that is about to change. They are all null where the slot was known to be empty. Runs
 * before the overwriting statement, under the lock of the series.
 */
const REVISE = (interval: Interval) => `
  insert into market.revision (series_id, open_time, seen_at, known_at, step, reason, was_empty, open, high, low, close, volume, market_cap)
  select s.id, to_timestamp(u.t), $10::timestamptz, $13::timestamptz, $14::integer, 'late answer', c.open_time is null,
    c.open, c.high, c.low, c.close, c.volume, c.market_cap
  from unnest($1::float8[], $2::float8[], $3::float8[], $4::float8[], $5::float8[], $6::float8[], $7::float8[]) as u(t, o, h, l, cl, v, m)
  join market.series s on s.id = $8::integer and s.covered @> to_timestamp(u.t)
  left join ${isPriceInterval(interval) ? STORED_PRICES : STORED_CANDLES} c
    on c.open_time = to_timestamp(u.t) and c.open_time between $11::timestamptz and $12::timestamptz
  where c.open_time is null or (c.open, c.high, c.low, c.close, c.volume, c.market_cap) is distinct from (u.o, u.h, u.l, u.cl, u.v, u.m)
  returning id, open_time`;

/** Candles as the statements take them: each column is one array, written as text. */
export type CandleTexts = Readonly<Record<keyof CandleColumns, string>> & {
  readonly rows: number;
  /** The first and the last open time. Undefined if there are no rows. */
  readonly bounds: readonly [Instant | undefined, Instant | undefined];
};

/** Writes each column as text, once for all statements that take it. */
export function writeAsText(c: CandleColumns): CandleTexts {
  return {
    openTime: writeInstants(c.openTime),
    open: writeNumbers(c.open),
    high: writeNumbers(c.high),
    low: writeNumbers(c.low),
    close: writeNumbers(c.close),
    volume: writeNumbers(c.volume),
    marketCap: writeNumbers(c.marketCap),
    rows: c.openTime.length,
    bounds: [c.openTime[0], c.openTime.at(-1)],
  };
}

function parameters({ id, interval }: { readonly id: number; readonly interval: Interval }, c: CandleTexts) {
  return [c.openTime, c.open, c.high, c.low, c.close, c.volume, c.marketCap, id, interval];
}

/**
 * `fresh`: the span has no row yet (checked under the lock of the series), so a plain insert is enough. It is a third faster.
 * `overwrite`: newer values replace older ones.
 */
type WriteMode = 'fresh' | 'overwrite';

/** Resolves to the number of rows that were inserted or changed. The columns must hold each open time once. */
export async function writeCandles(
  sql: SqlOrTransaction,
  series: { readonly id: number; readonly interval: Interval },
  candles: CandleTexts,
  mode: WriteMode,
): Promise<number> {
  if (candles.rows === 0) return 0;
  if (isPriceInterval(series.interval)) {
    const conflict = mode === 'fresh' ? '' : OVERWRITE_PRICES;
    const { openTime, close, volume, marketCap } = candles;
    const values = [openTime, close, volume, marketCap, series.id];
    return (await sql.unsafe(INSERT_PRICES + conflict, values, { prepare: true })).count;
  }
  const conflict = mode === 'fresh' ? '' : OVERWRITE;
  return (await sql.unsafe(INSERT + conflict, parameters(series, candles), { prepare: true })).count;
}

/** The answer that replaces final values: its as-of instant, when it is stored (on our clock), and the number of its evidence step. */
type Replacing = { readonly asOf: Instant; readonly knownAt: Instant; readonly step: number };

/** A new row of `market.revision`. */
export type Revised = { readonly id: number; readonly openTime: Instant };

/** Copies to `market.revision` what `writeCandles(…, 'overwrite')` is about to change inside coverage. */
export async function saveRevisions(
  sql: SqlOrTransaction,
  series: { readonly id: number; readonly interval: Interval },
  candles: CandleTexts,
  { asOf, knownAt, step }: Replacing,
): Promise<Revised[]> {
  const [first, last] = candles.bounds;
  if (first === undefined || last === undefined) return [];
  // The bounds follow from the join. Written out, they keep Postgres from looking into every partition for every row.
  const values = [...parameters(series, candles), asOf, first, last, knownAt, step];
  return sql.unsafe<Revised[]>(REVISE(series.interval), values, { prepare: true });
}

/** Removes the candles in `spans`, which all lie inside `bounds`. Copies those that were final (inside `final`) to `market.revision`. */
export async function removeCandles(
  sql: SqlOrTransaction,
  series: { readonly id: number; readonly interval: Interval },
  { bounds, spans, final }: { readonly bounds: Span; readonly spans: Spans; readonly final: Spans },
  { asOf, knownAt, step }: Replacing,
): Promise<Revised[]> {
  return sql<Revised[]>`
    with gone as (
      ${
        isPriceInterval(series.interval)
          ? sql`delete from market.price
              where series_id = ${series.id} and time >= ${bounds.from} and time < ${bounds.to} and ${spans}::tstzmultirange @> time
              returning series_id, ${sql.unsafe(PRICE_AS_CANDLE)}`
          : sql`delete from market.candle
              where series_id = ${series.id} and interval = ${series.interval}::market.candle_interval
                and open_time >= ${bounds.from} and open_time < ${bounds.to} and ${spans}::tstzmultirange @> open_time
              returning series_id, open_time, open, high, low, close, volume, market_cap`
      }
    )
    insert into market.revision (series_id, open_time, seen_at, known_at, step, reason, open, high, low, close, volume, market_cap)
    select series_id, open_time, ${asOf}::timestamptz, ${knownAt}::timestamptz, ${step}::integer, 'removed by upstream',
      open, high, low, close, volume, market_cap
    from gone where ${final}::tstzmultirange @> open_time order by open_time
    returning id, open_time`;
}

/**
 * Removes the candles in `span` that retention no longer counts, but could not delete because somebody used their partition. Code that counts
 * candles must not find them. Slots that are covered or were mended since are counted, and stay. Requires the lock of the series.
 */
export async function removeForgotten(
  tx: SqlOrTransaction,
  { id, interval }: { readonly id: number; readonly interval: Interval },
  span: Span,
): Promise<void> {
  // Retention removes no prices.
  if (isPriceInterval(interval)) return;
  await tx`
    with forgotten as materialized (
      select ${forgottenUntil(tx)} as until, s.covered + coalesce((select range_agg(m.slots) from market.evidence m
        where m.series_id = s.id and m.kind = 'mended' and m.number > (
          select max(r.number) from market.evidence r where r.series_id = s.id and r.kind = 'retention')), '{}') as counted
      from market.series s where s.id = ${id}
    )
    delete from market.candle c using forgotten f
    where c.series_id = ${id} and c.interval = ${interval}::market.candle_interval and c.open_time >= ${span.from}
      and c.open_time < ${span.to} and c.open_time < f.until and not f.counted @> c.open_time`;
}

/** A SQL expression: the end of what retention has removed of the series `s`. Null if it removed nothing, or if all of it was mended since. */
export function forgottenUntil(sql: SqlOrTransaction) {
  return sql`(select max(upper(r.slots - coalesce(m.slots, '{}'))) from market.evidence r
    cross join lateral (select range_agg(m.slots) as slots from market.evidence m
      where m.series_id = r.series_id and m.kind = 'mended' and m.number > r.number) m
    where r.series_id = s.id and r.kind = 'retention')`;
}

/** A candle that was still open in the last answer about it. Its data reach up to `closeTime` (upstream-api.md, 1.1 no 6). */
export type OpenCandle = { readonly openTime: Instant; readonly closeTime: Instant };

/** Makes `open` the only open candles of the series inside `within`. `isAny` is true if the series has open candles already. */
export async function replaceOpenCandles(
  tx: SqlOrTransaction,
  seriesId: number,
  open: readonly OpenCandle[],
  { within, isAny }: { readonly within: Spans; readonly isAny: boolean },
): Promise<void> {
  const inside = open.filter(({ openTime }) => contains(within, openTime));
  if (isAny) {
    await tx`
      delete from market.open_candle
      where series_id = ${seriesId} and ${within}::tstzmultirange @> open_time`;
  }
  if (inside.length === 0) return;
  await tx`
    insert into market.open_candle (series_id, open_time, close_time)
    select ${seriesId}, o, c
    from unnest(${inside.map((c) => c.openTime)}::timestamptz[], ${inside.map((c) => c.closeTime)}::timestamptz[]) as u(o, c)`;
}
