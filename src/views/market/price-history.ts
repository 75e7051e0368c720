/** What tickers have said over time: their history in stretches, and what an amount of one currency is worth in another. */
import type { Clock, Instant } from '../../clock.ts';
import { type Absent, isThere } from '../../contract/answer/not-found.ts';
import {
  type Basis,
  basisOf,
  historyBasis,
  NOTHING,
  standingOn,
  together,
  wholeAsOf,
} from '../../contract/answer/provenance.ts';
import type { HistoricalTick, PriceConversion } from '../../contract/record/catalogue.ts';
import { findFiat } from '../../contract/record/fiats.ts';
import type { Candles, Catalogue, TickerHistoryQuery } from '../../contract/record/market-data.ts';
import { formatTime } from '../../contract/time.ts';
import { HOUR } from '../../core/interval.ts';
import { normalize } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { CoinVersion, Versions } from './data-versions.ts';
import { createKept } from './versioned-cache.ts';

/** Answers of some hundred stretches each. */
const MOST_KEPT = 300;

export type PriceHistoryDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly versions: Versions;
  readonly ticker: Candles<Absent>['ticker'];
  readonly noCoin: () => Promise<Absent>;
};

export function createPriceHistoryViews({
  sql,
  clock,
  versions,
  ticker,
  noCoin,
}: PriceHistoryDeps): Pick<Catalogue<Absent>, 'tickerHistory' | 'convert'> {
  const kept = createKept<readonly HistoricalTick[]>({ onGet: versions.counted('history'), most: MOST_KEPT });
  /** What one unit costs in dollars, as last told; null price: nobody has told. */
  const priced = async (id: string): Promise<Priced | Absent> => {
    const fiat = findFiat(id);
    if (fiat !== undefined) {
      const isDollar = fiat.symbol === 'USD';
      return { name: fiat.name, dollars: isDollar ? 1 : null, at: null, basis: isDollar ? null : NOTHING };
    }
    const found = await ticker({ coinId: id, quotes: ['USD'] });
    if (!isThere(found)) return found;
    const price = found.quotes.USD?.price;
    const dollars = typeof price === 'number' ? price : null;
    return { name: found.name, dollars, at: found.last_updated, basis: basisOf(found) ?? wholeAsOf(null) };
  };
  return {
    tickerHistory: async (query) => {
      const [coin, topics] = await Promise.all([versions.coin(query.coinId), versions.topics()]);
      if (coin === null) return noCoin();
      const { coinId, quote, from, widthMs, limit } = query;
      // To the minute, so that whoever asks up to now asks the same as the one before.
      const to = Math.min(query.to, Math.ceil(clock.now() / 60_000) * 60_000);
      const key = `${coinId} ${quote} ${from} ${to} ${widthMs} ${limit}`;
      const version = `${topics.ticker} ${coin.firstDataAt}`;
      return kept.get(key, version, () => readHistory(sql, coin, { ...query, from: Math.max(0, from), to }));
    },
    convert: async ({ baseId, quoteId, amount }): Promise<PriceConversion | Absent> => {
      const [base, quote] = await Promise.all([priced(baseId), priced(quoteId)]);
      // That there is no such side is enough: who knows it of one need not look for the other.
      if (!isThere(base)) return isThere(quote) || basisOf(base)?.coverage === 'full' ? base : quote;
      if (!isThere(quote)) return quote;
      // A dollar is a dollar at any time: it is as new as the price it is compared with.
      const now = formatTime(Math.floor(clock.now() / 60_000) * 60_000);
      const conversion: PriceConversion = {
        base_currency_id: baseId,
        base_currency_name: base.name,
        base_price_last_updated: base.at ?? quote.at ?? now,
        quote_currency_id: quoteId,
        quote_currency_name: quote.name,
        quote_price_last_updated: quote.at ?? base.at ?? now,
        amount,
        price: base.dollars === null || !quote.dollars ? null : (amount * base.dollars) / quote.dollars,
      };
      return standingOn(conversion, together([base, quote].flatMap(({ basis }) => basis ?? [])));
    },
  };
}

/** `basis` null: it needs nobody to tell it. */
type Priced = {
  readonly name: string;
  readonly dollars: number | null;
  readonly at: string | null;
  readonly basis: Basis | null;
};

/** A stretch that is longer is known when something was seen in each of its hours. */
const LONGEST_PART_MS = HOUR;

type StretchRow = {
  readonly at: Instant;
  readonly price: number | null;
  readonly volume: number | null;
  readonly cap: number | null;
  readonly seen: Instant;
  /** Of those parts of it in which something had to be seen, so many in which something was. */
  readonly parts: number;
};

/**
 * The means of what the tickers of each stretch said, named by its start (upstream-api.md, 1.7); volume and market cap are whole numbers.
 * In bitcoin each price is divided by that of bitcoin in the same snapshot. A stretch in which nothing was seen is left out.
 */
async function readHistory(
  sql: Sql,
  { firstDataAt }: CoinVersion,
  { coinId, quote, from, to, widthMs, limit }: TickerHistoryQuery,
): Promise<readonly HistoricalTick[]> {
  const bounds = { from: ceilTo(from, widthMs), to };
  const began = Math.max(bounds.from, floorTo(firstDataAt ?? 0, widthMs));
  if (bounds.from >= bounds.to)
    return standingOn([], historyBasis({ asked: bounds, known: [], hasRows: false, asOf: null }));
  const partMs = Math.min(widthMs, LONGEST_PART_MS);
  // A part that has ended, and did not begin before the coin's data did, is to be told of.
  const due = { from: Math.max(bounds.from, ceilTo(firstDataAt ?? 0, partMs)), to: bounds.to - partMs };
  const [part, width] = [`${partMs} milliseconds`, `${widthMs} milliseconds`];
  const rows = await sql<StretchRow[]>`
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
      group by 1) parts
    group by 1 order by 1 limit ${limit}`;
  const list = rows.map(({ at, price, volume, cap }) => ({
    timestamp: formatTime(at),
    price,
    volume_24h: whole(volume),
    market_cap: whole(cap),
  }));
  const known = rows.flatMap(({ at, parts }) => {
    const stretch = { from: at, to: at + widthMs };
    const first = Math.max(stretch.from, due.from);
    const last = Math.min(stretch.to - partMs, floorTo(due.to, partMs));
    const wanted = Math.max(0, (last - first) / partMs + 1);
    return parts >= wanted ? [stretch] : [];
  });
  const end = list.length === limit ? rows.at(-1)!.at + widthMs : ceilTo(bounds.to, widthMs);
  const asOf = rows.length === 0 ? null : Math.max(...rows.map((row) => row.seen));
  return standingOn(
    list,
    historyBasis({ asked: { from: began, to: end }, known: normalize(known), hasRows: list.length > 0, asOf }),
  );
}

function whole(value: number | null): number | null {
  return value === null ? null : Math.round(value);
}

function floorTo(at: Instant, width: number): Instant {
  return Math.floor(at / width) * width;
}

function ceilTo(at: Instant, width: number): Instant {
  return Math.ceil(at / width) * width;
}
