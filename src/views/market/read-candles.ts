/** The statements that read candles for an answer. They return arrays: 366 candles are one row, not 366. */
import type { Instant } from '../../clock.ts';
import type { OhlcvCandle } from '../../contract/record/market-data.ts';
import { type CandleInterval, ceilToGrid, floorToGrid, INTERVAL_MS } from '../../core/interval.ts';
import { normalize, type Span, type Spans } from '../../core/span.ts';
import { CANDLE_VALUES, coarseCandle, widthOf } from '../../store/candle/coarse-candle.ts';
import { isRolledUp, rolledCandle } from '../../store/candle/rollup.ts';
import { type CamelCased, createRecordReader } from '../../store/connection/column-names.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { SeriesVersion } from './data-versions.ts';

export type CandlesRead = {
  /** Ascending. */
  readonly candles: readonly OhlcvCandle[];
  /** Slots of the answer's interval that are completely known. */
  readonly covered: Spans;
};

type Values = Readonly<Record<(typeof CANDLE_VALUES)[number], string | null>>;
type ArraysRow = CamelCased<Values> & { readonly at: string | null; readonly covered: Spans | null };
const valuesOf = createRecordReader<Values>(CANDLE_VALUES);

const ARRAYS = `array_agg(extract(epoch from c.open_time)::float8)::text as at,
    ${CANDLE_VALUES.map((name) => `array_agg(c.${name})::text as ${name}`).join(', ')}`;

/** The interval is part of the statement's text, so that the query plan reads the partitions of that interval only. */
const stored = (interval: CandleInterval) => `
  select ${ARRAYS},
    (select covered * tstzmultirange(tstzrange($2::timestamptz, $3::timestamptz))
      from market.series where id = $1::int) as covered,
    (select json_agg(json_build_array(extract(epoch from o.open_time), extract(epoch from o.close_time)))
      from market.open_candle o where o.series_id = $1::int) as open_candles
  from (
    select open_time, ${CANDLE_VALUES.join(', ')} from market.candle
    where series_id = $1::int and interval = '${interval}'
      and open_time >= $2::timestamptz and open_time < $3::timestamptz
    order by open_time limit $4::int) c`;

/** The stored candles of one series; at most `limit`, the earliest. */
export async function readStored(
  sql: Sql,
  { id, interval }: SeriesVersion<CandleInterval>,
  { span, limit }: { readonly span: Span; readonly limit: number },
): Promise<CandlesRead> {
  const [row] = await sql.unsafe<(ArraysRow & { readonly openCandles: readonly [number, number][] | null })[]>(
    stored(interval),
    [id, span.from, span.to, limit],
    { prepare: true },
  );
  const open = new Map(
    (row!.openCandles ?? []).map(([at, close]) => [Math.round(at * 1000), Math.round(close * 1000)]),
  );
  return { candles: toCandles(row!, interval, open), covered: row!.covered ?? [] };
}

const BOUNDS = 'open_time >= $2::timestamptz and open_time < $3::timestamptz';

/** The candle of each slot that has one: the rollup if it was made in advance, otherwise one made now of the finer candles. Both are equal. */
function candleOf(fine: CandleInterval, coarse: CandleInterval): string {
  const of = { id: '$1::int', slot: 'slot' };
  if (!isRolledUp(fine, coarse)) return coarseCandle(fine, coarse, { ...of, where: BOUNDS });
  return `${rolledCandle(coarse, { ...of, isRolled: 'is_rolled' })}
    union all (${coarseCandle(fine, coarse, { ...of, where: `${BOUNDS} and not is_rolled` })})`;
}

/**
 * The candles of those slots of `missing` ($4) that are wholly covered, in their order. The bounds ($2, $3) are repeated beside those of each
 * slot, so that Postgres can skip partitions before it reads the first slot.
 */
const coarsened = (fine: CandleInterval, coarse: CandleInterval) => `
  with s as materialized (
    select covered * tstzmultirange(tstzrange($2::timestamptz, $3::timestamptz)) as covered,
      (select spans from market.rollup_coverage where series_id = $1::int and interval = '${coarse}') as rolled
    from market.series where id = $1::int
  )
  select ${ARRAYS}, (select covered from s) as covered
  from (
    select slot as open_time, made.*
    from (
      select slot, coalesce(rolled @> tstzrange(slot, slot + ${widthOf(coarse)}), false) as is_rolled
      from s cross join unnest(s.covered * $4::tstzmultirange) part
      cross join generate_series(
        date_bin(${widthOf(coarse)}, lower(part) + ${widthOf(coarse)} - interval '1 microsecond', timestamptz 'epoch'),
        upper(part) - ${widthOf(coarse)}, ${widthOf(coarse)}) slot
    ) slots
    cross join lateral (${candleOf(fine, coarse)}) made
    limit $5::int) c`;

/**
 * Candles of `interval` made of final finer ones (decision 25: volumes are summed, the market cap is that of the last), for those slots of
 * `missing` that are completely known; at most `limit`, the earliest.
 */
export async function readCoarsened(
  sql: Sql,
  { id, interval: fine }: SeriesVersion<CandleInterval>,
  { interval, missing, limit }: { readonly interval: CandleInterval; readonly missing: Spans; readonly limit: number },
): Promise<CandlesRead> {
  const [row] = await sql.unsafe<ArraysRow[]>(
    coarsened(fine, interval),
    [id, missing[0]!.from, missing.at(-1)!.to, missing, limit],
    { prepare: true },
  );
  const slots = (row!.covered ?? []).map(({ from, to }) => ({
    from: ceilToGrid(from, interval),
    to: floorToGrid(to, interval),
  }));
  return { candles: toCandles(row!, interval, new Map()), covered: normalize(slots) };
}

function toCandles(row: ArraysRow, interval: CandleInterval, open: ReadonlyMap<Instant, Instant>): OhlcvCandle[] {
  if (row.at === null) return [];
  const seconds = numbersOf(row.at);
  const [opens, highs, lows, closes, volumes, caps] = Object.values(valuesOf(row)).map((text) => numbersOf(text!));
  const lastSecond = INTERVAL_MS[interval] - 1_000;
  return seconds.map((at, i) => {
    const openTime = at! * 1000;
    return {
      openTime,
      closeTime: open.get(openTime) ?? openTime + lastSecond,
      open: opens![i]!,
      high: highs![i]!,
      low: lows![i]!,
      close: closes![i]!,
      volume: volumes![i]!,
      marketCap: caps![i]!,
    };
  });
}

/** Parses an array of doubles as Postgres prints it: the shortest texts that read back to the same bits. */
export function numbersOf(text: string): (number | null)[] {
  return text
    .slice(1, -1)
    .split(',')
    .map((element) => (element === 'NULL' ? null : Number(element)));
}
