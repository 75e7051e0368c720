/** The statements that read a price history for an answer: the stored prices of a series, and the means of our own tickers. */
import type { Instant } from '../../clock.ts';
import type { TickerHistoryQuery } from '../../contract/record/market-data.ts';
import { HOUR } from '../../core/interval.ts';
import { normalize, type Spans } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { numbersOf } from './read-candles.ts';

export type Tick = {
  /** Start of the slot. */
  readonly at: Instant;
  readonly price: number | null;
  readonly volume: number | null;
  readonly cap: number | null;
};

export type TicksRead = {
  /** Ascending. */
  readonly ticks: readonly Tick[];
  /** Slots that are completely known. */
  readonly known: Spans;
};

type TickBounds = {
  /** Both on the grid of the width; the end is excluded. */
  readonly from: Instant;
  readonly to: Instant;
  /** At most this many ticks, the earliest. */
  readonly limit: number;
};

type PricesRow = Readonly<Record<'at' | 'prices' | 'volumes' | 'caps', string | null>> & {
  readonly covered: Spans | null;
};

/** The prices of a series exactly as they are stored, final or not. They come as arrays: 5,000 prices are one row. */
export async function readPrices(sql: Sql, seriesId: number, { from, to, limit }: TickBounds): Promise<TicksRead> {
  const [row] = await sql<PricesRow[]>`
    select array_agg(extract(epoch from p.time)::float8)::text as at, array_agg(p.price)::text as prices,
      array_agg(p.volume_24h)::text as volumes, array_agg(p.market_cap)::text as caps,
      (select covered * tstzmultirange(tstzrange(${from}::timestamptz, ${to}::timestamptz))
        from market.series where id = ${seriesId}) as covered
    from (
      select time, price, volume_24h, market_cap from market.price
      where series_id = ${seriesId} and time >= ${from} and time < ${to}
      order by time limit ${limit}) p`;
  const { at, prices, volumes, caps, covered } = row!;
  if (at === null) return { ticks: [], known: covered ?? [] };
  const [price, volume, cap] = [prices, volumes, caps].map((text) => numbersOf(text!));
  const ticks = numbersOf(at).map((seconds, i) => ({
    at: seconds! * 1000,
    price: price![i]!,
    volume: volume![i]!,
    cap: cap![i]!,
  }));
  return { ticks, known: covered ?? [] };
}

/** A longer slot is known when each of its hours has a snapshot. */
const LONGEST_PART_MS = HOUR;

type MeanRow = Tick & {
  readonly seen: Instant;
  /** Number of its parts with a snapshot, among those that must have one. */
  readonly parts: number;
};

type MeansRead = TicksRead & {
  /** When the newest of these snapshots was seen; null: there is none. */
  readonly seen: Instant | null;
};

/**
 * The mean of the tickers in each slot, at the slot's start (upstream-api.md, 1.7); volume and market cap are whole numbers. In bitcoin, each price
 * is divided by that of bitcoin in the same snapshot. A slot without snapshots is omitted.
 */
export async function readMeans(
  sql: Sql,
  { coinId, quote, widthMs }: Pick<TickerHistoryQuery, 'coinId' | 'quote' | 'widthMs'>,
  {
    missing,
    to,
    limit,
    firstDataAt,
  }: {
    /** Whole slots. Only these are returned. */
    readonly missing: Spans;
    /** Snapshots from then on do not count, even in the middle of a slot. */
    readonly to: Instant;
    readonly limit: number;
    /** When the data of the coin begin; null: unknown. */
    readonly firstDataAt: Instant | null;
  },
): Promise<MeansRead> {
  const bounds = { from: missing[0]!.from, to: Math.min(missing.at(-1)!.to, to) };
  const partMs = Math.min(widthMs, LONGEST_PART_MS);
  // A part must have a snapshot when it has ended and did not begin before the coin's data.
  const due = { from: Math.max(bounds.from, ceilTo(firstDataAt ?? 0, partMs)), to: bounds.to - partMs };
  const [part, width] = [`${partMs} milliseconds`, `${widthMs} milliseconds`];
  const rows = await sql<MeanRow[]>`
    select date_bin(${width}::interval, part, 'epoch') as at,
      sum(price) / nullif(sum(prices), 0)::float8 as price, sum(volume) / nullif(sum(volumes), 0)::float8 as volume,
      sum(cap) / nullif(sum(caps), 0)::float8 as cap, max(seen) as seen,
      (count(*) filter (where part between ${due.from} and ${due.to}))::int as parts
    from (
      select date_bin(${part}::interval, h.at, 'epoch') as part,
        sum(h.price / r.price) as price, count(h.price) as prices,
        sum(h.volume_24h / r.price) as volume, count(h.volume_24h) as volumes,
        sum(h.market_cap / r.price) as cap, count(h.market_cap) as caps,
        max(h.at) as seen
      from market.ticker_history h
      ${
        quote === 'btc'
          ? sql`join market.ticker_history r on r.coin_id = 'btc-bitcoin' and r.at = h.at and r.price > 0
              and r.at >= ${bounds.from} and r.at < ${bounds.to}`
          : sql`cross join (select 1.0::float8 as price) r`
      }
      where h.coin_id = ${coinId} and h.at >= ${bounds.from} and h.at < ${bounds.to}
        ${missing.length === 1 ? sql`` : sql`and ${missing}::tstzmultirange @> h.at`}
      group by 1) parts
    group by 1 order by 1 limit ${limit}`;
  const known = rows.flatMap(({ at, parts }) => {
    const span = { from: at, to: at + widthMs };
    const first = Math.max(span.from, due.from);
    const last = Math.min(span.to - partMs, floorTo(due.to, partMs));
    const wanted = Math.max(0, (last - first) / partMs + 1);
    return parts >= wanted ? [span] : [];
  });
  return {
    ticks: rows.map(({ at, price, volume, cap }) => ({ at, price, volume: whole(volume), cap: whole(cap) })),
    known: normalize(known),
    seen: rows.length === 0 ? null : Math.max(...rows.map((row) => row.seen)),
  };
}

function whole(value: number | null): number | null {
  return value === null ? null : Math.round(value);
}

export function floorTo(at: Instant, width: number): Instant {
  return Math.floor(at / width) * width;
}

export function ceilTo(at: Instant, width: number): Instant {
  return Math.ceil(at / width) * width;
}
