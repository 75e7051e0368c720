/** What tickers have said over time: their history in stretches, and what an amount of one currency is worth in another. */
import type { Clock, Instant } from '../clock.ts';
import { standingOn } from '../contract/basis.ts';
import type { HistoricalTick, PriceConversion } from '../contract/catalogue.ts';
import { findFiat } from '../contract/fiats.ts';
import type { Candles, Catalogue, TickerHistoryQuery } from '../contract/market-data.ts';
import { formatTime } from '../contract/time.ts';
import type { Sql } from '../store/connect.ts';
import { createKept } from './kept.ts';
import type { Versions } from './versions.ts';

/** Answers of some hundred stretches each. */
const MOST_KEPT = 300;

export type PriceHistoryDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly versions: Versions;
  readonly ticker: Candles['ticker'];
};

export function createPriceHistoryViews({
  sql,
  clock,
  versions,
  ticker,
}: PriceHistoryDeps): Pick<Catalogue, 'tickerHistory' | 'convert'> {
  const kept = createKept<readonly HistoricalTick[]>({ onGet: versions.counted('history'), most: MOST_KEPT });
  /** What one unit costs in dollars, as last told; null price: nobody has told. */
  const priced = async (id: string): Promise<Priced | null> => {
    const fiat = findFiat(id);
    if (fiat !== undefined) return { name: fiat.name, dollars: fiat.symbol === 'USD' ? 1 : null, at: null };
    const found = await ticker({ coinId: id, quotes: ['USD'] });
    if (found === null) return null;
    const price = found.quotes.USD?.price;
    return { name: found.name, dollars: typeof price === 'number' ? price : null, at: found.last_updated };
  };
  return {
    tickerHistory: async (query) => {
      const [coin, topics] = await Promise.all([versions.coin(query.coinId), versions.topics()]);
      if (coin === null) return null;
      const { coinId, quote, from, widthMs, limit } = query;
      // To the minute, so that whoever asks up to now asks the same as the one before.
      const to = Math.min(query.to, Math.ceil(clock.now() / 60_000) * 60_000);
      const key = `${coinId} ${quote} ${from} ${to} ${widthMs} ${limit}`;
      return kept.get(key, String(topics.ticker), () => readHistory(sql, { ...query, from: Math.max(0, from), to }));
    },
    convert: async ({ baseId, quoteId, amount }): Promise<PriceConversion | null> => {
      const [base, quote] = await Promise.all([priced(baseId), priced(quoteId)]);
      if (base === null || quote === null) return null;
      // A dollar is a dollar at any time: it is as new as the price it is compared with.
      const now = formatTime(Math.floor(clock.now() / 60_000) * 60_000);
      return {
        base_currency_id: baseId,
        base_currency_name: base.name,
        base_price_last_updated: base.at ?? quote.at ?? now,
        quote_currency_id: quoteId,
        quote_currency_name: quote.name,
        quote_price_last_updated: quote.at ?? base.at ?? now,
        amount,
        price: base.dollars === null || !quote.dollars ? null : (amount * base.dollars) / quote.dollars,
      };
    },
  };
}

type Priced = { readonly name: string; readonly dollars: number | null; readonly at: string | null };

/**
 * The means of what the tickers of each stretch said, named by its start (upstream-api.md, 1.7); volume and market cap are whole numbers.
 * In bitcoin each price is divided by that of bitcoin in the same snapshot. A stretch in which nothing was seen is left out.
 */
async function readHistory(
  sql: Sql,
  { coinId, quote, from, to, widthMs, limit }: TickerHistoryQuery,
): Promise<readonly HistoricalTick[]> {
  const [seconds, bounds] = [widthMs / 1000, { from: Math.ceil(from / widthMs) * widthMs, to }];
  if (bounds.from >= bounds.to) return standingOn([], { asOf: null, firstMissing: null });
  const rows = await sql<
    { at: number; price: number | null; volume: number | null; cap: number | null; seen: Instant }[]
  >`
    select floor(extract(epoch from h.at) / ${seconds}::float8) * ${seconds}::float8 as at,
      avg(h.price / r.price) as price, avg(h.volume_24h / r.price) as volume, avg(h.market_cap / r.price) as cap,
      (max(extract(epoch from h.at)) * 1000)::float8 as seen
    from market.ticker_history h
    ${
      quote === 'btc'
        ? sql`join market.ticker_history r on r.coin_id = 'btc-bitcoin' and r.at = h.at and r.price > 0
            and r.at >= to_timestamp(${bounds.from / 1000}) and r.at < to_timestamp(${bounds.to / 1000})`
        : sql`cross join (select 1.0::float8 as price) r`
    }
    where h.coin_id = ${coinId} and h.at >= to_timestamp(${bounds.from / 1000}) and h.at < to_timestamp(${bounds.to / 1000})
    group by 1 order by 1 limit ${limit}`;
  const list = rows.map(({ at, price, volume, cap }) => ({
    timestamp: formatTime(Number(at) * 1000),
    price,
    volume_24h: whole(volume),
    market_cap: whole(cap),
  }));
  return standingOn(list, {
    asOf: rows.length === 0 ? null : Math.max(...rows.map((row) => row.seen)),
    // Cut at its limit, the rest was not asked for.
    firstMissing: firstGap(list, { ...bounds, to: list.length === limit ? bounds.from : bounds.to }, widthMs),
  });
}

/** The first stretch before the last one told that has nothing, or the first one asked for. */
function firstGap(
  list: readonly HistoricalTick[],
  bounds: { readonly from: Instant; readonly to: Instant },
  widthMs: number,
): Instant | null {
  let expected = bounds.from;
  for (const { timestamp } of list) {
    const at = new Date(timestamp).getTime();
    if (at !== expected) return expected;
    expected = at + widthMs;
  }
  return expected < bounds.to ? expected : null;
}

function whole(value: number | null): number | null {
  return value === null ? null : Math.round(value);
}
