/** Made of the history of tickers: prices in spans of time, and what an amount of one currency is worth in another. */
import type { Instant } from '../../clock.ts';
import { isFound, type NotFound } from '../../contract/answer/not-found.ts';
import {
  combineProvenance,
  completeAsOf,
  historyProvenance,
  NO_DATA,
  type Provenance,
  provenanceOf,
  withProvenance,
} from '../../contract/answer/provenance.ts';
import { revalidatedBy } from '../../contract/answer/revalidation.ts';
import type { HistoricalTick, PriceConversion } from '../../contract/record/catalogue.ts';
import { findFiat } from '../../contract/record/fiats.ts';
import type { Candles, Catalogue, TickerHistoryQuery } from '../../contract/record/market-data.ts';
import { formatTime } from '../../contract/time.ts';
import { HOUR } from '../../core/interval.ts';
import { normalize } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { CoinVersion, ViewDeps } from './data-versions.ts';
import { currentRate } from './rates.ts';

export function createPriceHistoryViews(
  { sql, clock, versions, noCoin }: ViewDeps,
  ticker: Candles<NotFound>['ticker'],
): Pick<Catalogue<NotFound>, 'tickerHistory' | 'convert'> {
  const questionOf = async (query: TickerHistoryQuery) => {
    const [coin, tickers] = await Promise.all([versions.coin(query.coinId), versions.of(['ticker'])]);
    // To the minute: an answer that reaches beyond now is current for that long.
    const to = Math.min(query.to, Math.ceil(clock.now() / 60_000) * 60_000);
    return coin === null ? null : { coin, to, version: `${to} ${tickers} ${coin.firstDataAt}` };
  };
  /** What one unit costs in dollars, by the newest ticker; null: no price was received. */
  const priced = async (id: string): Promise<Priced | NotFound> => {
    const fiat = findFiat(id);
    if (fiat !== undefined) {
      if (fiat.symbol === 'USD') return { name: fiat.name, dollars: 1, at: null, provenance: null };
      const rate = await currentRate(sql, fiat.symbol, clock.now());
      if (rate === null) return { name: fiat.name, dollars: null, at: null, provenance: NO_DATA };
      const { price, at, updatedAt } = rate;
      return { name: fiat.name, dollars: price, at: formatTime(updatedAt), provenance: completeAsOf(at) };
    }
    const found = await ticker({ coinId: id, quotes: ['USD'] });
    if (!isFound(found)) return found;
    const price = found.quotes.USD?.price;
    const dollars = typeof price === 'number' ? price : null;
    return { name: found.name, dollars, at: found.last_updated, provenance: provenanceOf(found) ?? completeAsOf(null) };
  };
  return {
    tickerHistory: async (query) => {
      const question = await questionOf(query);
      if (question === null) return noCoin();
      const { coin, to, version } = question;
      const ticks = await readHistory(sql, coin, { ...query, from: Math.max(0, query.from), to });
      return revalidatedBy(ticks, async () => (await questionOf(query))?.version === version);
    },
    convert: async ({ baseId, quoteId, amount }): Promise<PriceConversion | NotFound> => {
      const [base, quote] = await Promise.all([priced(baseId), priced(quoteId)]);
      // If one side is known not to exist, that is the answer.
      if (!isFound(base)) return isFound(quote) || provenanceOf(base)?.coverage === 'full' ? base : quote;
      if (!isFound(quote)) return quote;
      // The dollar needs no update: its time is that of the price it is compared with.
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
      return withProvenance(conversion, combineProvenance([base, quote].flatMap(({ provenance }) => provenance ?? [])));
    },
  };
}

/** `provenance` null: known without upstream (the dollar). */
type Priced = {
  readonly name: string;
  readonly dollars: number | null;
  readonly at: string | null;
  readonly provenance: Provenance | null;
};

/** A longer span is known when there is a snapshot in each of its hours. */
const LONGEST_PART_MS = HOUR;

type SpanRow = {
  readonly at: Instant;
  readonly price: number | null;
  readonly volume: number | null;
  readonly cap: number | null;
  readonly seen: Instant;
  /** Parts with a snapshot, of those that must have one. */
  readonly parts: number;
};

/**
 * The means of the tickers of each span, named by its start (upstream-api.md, 1.7); volume and market cap are whole numbers. In bitcoin
 * each price is divided by that of bitcoin in the same snapshot. A span without snapshots is left out.
 */
async function readHistory(
  sql: Sql,
  { firstDataAt }: CoinVersion,
  { coinId, quote, from, to, widthMs, limit }: TickerHistoryQuery,
): Promise<readonly HistoricalTick[]> {
  const bounds = { from: ceilTo(from, widthMs), to };
  const began = Math.max(bounds.from, floorTo(firstDataAt ?? 0, widthMs));
  if (bounds.from >= bounds.to)
    return withProvenance([], historyProvenance({ requested: bounds, known: [], hasRows: false, asOf: null }));
  const partMs = Math.min(widthMs, LONGEST_PART_MS);
  // A part must have a snapshot when it has ended and did not begin before the coin's data.
  const due = { from: Math.max(bounds.from, ceilTo(firstDataAt ?? 0, partMs)), to: bounds.to - partMs };
  const [part, width] = [`${partMs} milliseconds`, `${widthMs} milliseconds`];
  const rows = await sql<SpanRow[]>`
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
    const span = { from: at, to: at + widthMs };
    const first = Math.max(span.from, due.from);
    const last = Math.min(span.to - partMs, floorTo(due.to, partMs));
    const wanted = Math.max(0, (last - first) / partMs + 1);
    return parts >= wanted ? [span] : [];
  });
  const end = list.length === limit ? rows.at(-1)!.at + widthMs : ceilTo(bounds.to, widthMs);
  const asOf = rows.length === 0 ? null : Math.max(...rows.map((row) => row.seen));
  return withProvenance(
    list,
    historyProvenance({ requested: { from: began, to: end }, known: normalize(known), hasRows: list.length > 0, asOf }),
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
