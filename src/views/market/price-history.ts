/** Prices in time slots, from price series and from our own tickers; and the conversion of an amount from one currency into another. */
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
import { INTERVAL_MS, isPriceInterval, settledUntil } from '../../core/interval.ts';
import { contains, intersect, type Spans, slotsAt, subtract, union } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { CoinVersion, SeriesVersion, ViewDeps } from './data-versions.ts';
import { currentRate } from './rates.ts';
import { ceilTo, floorTo, readMeans, readPrices, type Tick, type TicksRead } from './read-ticks.ts';

export function createPriceHistoryViews(
  { sql, clock, versions, noCoin }: ViewDeps,
  ticker: Candles<NotFound>['ticker'],
): Pick<Catalogue<NotFound>, 'tickerHistory' | 'convert'> {
  const questionOf = async (query: TickerHistoryQuery): Promise<Question | null> => {
    const [coin, tickers] = await Promise.all([versions.coin(query.coinId), versions.of(['ticker'])]);
    if (coin === null) return null;
    // Rounded up to the minute: an answer that reaches beyond now is current for that long.
    const to = Math.min(query.to, Math.ceil(clock.now() / 60_000) * 60_000);
    const series = seriesOf(coin, query);
    const last = ceilTo(to, query.widthMs);
    const settled = series === null ? null : Math.min(settledUntil(clock.now(), series.interval), last);
    return { coin, series, to, settled, tickers };
  };
  /** The price of one unit in dollars, by the newest ticker; `dollars` is null when no price was received. */
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
      const { ticks, isOfTickers } = await readHistory(sql, question, query);
      const version = versionOf(question, isOfTickers);
      return revalidatedBy(ticks, async () => {
        const now = await questionOf(query);
        return now !== null && versionOf(now, isOfTickers) === version;
      });
    },
    convert: async ({ baseId, quoteId, amount }): Promise<PriceConversion | NotFound> => {
      const [base, quote] = await Promise.all([priced(baseId), priced(quoteId)]);
      // If one side is known not to exist, this is the answer.
      if (!isFound(base)) return isFound(quote) || provenanceOf(base)?.coverage === 'full' ? base : quote;
      if (!isFound(quote)) return quote;
      // The dollar has no time of its own: it gets that of the other price.
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

/** The sources of a history. */
type Question = {
  readonly coin: CoinVersion;
  /** Null: there is no price series of this width. */
  readonly series: SeriesVersion | null;
  readonly to: Instant;
  /** Where the slots of the series begin that have not settled, at the latest the end of the last slot; null: there is no series. */
  readonly settled: Instant | null;
  /** The version of the tickers. */
  readonly tickers: string;
};

function seriesOf(coin: CoinVersion, { quote, widthMs }: TickerHistoryQuery): SeriesVersion | null {
  const isRequested = (s: SeriesVersion) =>
    s.quote === quote && isPriceInterval(s.interval) && INTERVAL_MS[s.interval] === widthMs;
  return coin.series.find(isRequested) ?? null;
}

/** Tickers change every few minutes. An answer of stored prices alone does not depend on them. */
function versionOf({ coin, series, to, settled, tickers }: Question, isOfTickers: boolean): string {
  return `${to} ${settled} ${coin.firstDataAt} ${series?.id}:${series?.version} ${isOfTickers ? tickers : ''}`;
}

/** `provenance` is null when the price is known without upstream (the dollar). */
type Priced = {
  readonly name: string;
  readonly dollars: number | null;
  readonly at: string | null;
  readonly provenance: Provenance | null;
};

/** A history that is built from stored data, slot by slot. */
type History = {
  readonly ticks: readonly HistoricalTick[];
  /** True: our own tickers were read, so the answer changes with them. */
  readonly isOfTickers: boolean;
};

/**
 * Each slot gets the first of these that exists: the final price; no price, if the series covers the slot; the mean of our own tickers, if they
 * know the whole slot; the price that is not final, or what the tickers know (decision 57).
 */
async function readHistory(
  sql: Sql,
  { coin, series, to, settled }: Question,
  query: TickerHistoryQuery,
): Promise<History> {
  const { widthMs, limit } = query;
  const from = ceilTo(Math.max(0, query.from), widthMs);
  if (from >= to) {
    const provenance = historyProvenance({ requested: { from, to }, known: [], hasRows: false, asOf: null });
    return { ticks: withProvenance([], provenance), isOfTickers: false };
  }
  // A slot that begins before the end belongs to the answer as a whole.
  const last = ceilTo(to, widthMs);
  const stored = series === null ? NOTHING : await readPrices(sql, series.id, { from, to: last, limit });
  /** The slots up to the last row that the limit allows. */
  const spanOf = (ticks: readonly Tick[]) => ({ from, to: ticks.length < limit ? last : ticks.at(-1)!.at + widthMs });
  const told = stored.known;
  const missing = subtract([spanOf(stored.ticks)], told);
  const isOfTickers = missing.length > 0;
  const means = isOfTickers
    ? await readMeans(sql, query, { missing, to, limit, firstDataAt: coin.firstDataAt })
    : { ...NOTHING, seen: null };
  // A price that is not final may be of only a part of its slot. So the mean of our own tickers for the whole slot goes first.
  const isWhole = (at: Instant) => contains(means.known, at);
  const own = new Set(stored.ticks.map(({ at }) => at));
  const ticks = [
    ...stored.ticks.filter(({ at }) => contains(told, at) || !isWhole(at)),
    ...means.ticks.filter(({ at }) => isWhole(at) || !own.has(at)),
  ]
    .sort((a, b) => a.at - b.at)
    .slice(0, limit);
  const began = Math.max(from, floorTo(coin.firstDataAt ?? 0, widthMs));
  const requested = { from: began, to: spanOf(ticks).to };
  // Only sources with data about the answer count: a series without such data does not make it newer. No source knows more about a slot that has
  // not settled (`open`).
  const open = settled === null ? [] : intersect(slotsOf(stored.ticks, widthMs), [{ from: settled, to: last }]);
  const ofSeries = union(told, slotsOf(stored.ticks, widthMs));
  const isOfSeries = intersect([{ ...requested, from: Math.min(began, ticks[0]?.at ?? began) }], ofSeries).length > 0;
  const seen = [isOfSeries ? series?.answeredAt : null, means.seen].filter((at) => typeof at === 'number');
  const provenance = historyProvenance({
    requested,
    known: union(union(told, open), means.known),
    hasRows: ticks.length > 0,
    asOf: seen.length === 0 ? null : Math.max(...seen),
  });
  return { ticks: withProvenance(ticks.map(toRow), provenance), isOfTickers };
}

const NOTHING: TicksRead = { ticks: [], known: [] };

function slotsOf(ticks: readonly Tick[], widthMs: number): Spans {
  return slotsAt(
    ticks.map(({ at }) => at),
    widthMs,
  );
}

function toRow({ at, price, volume, cap }: Tick): HistoricalTick {
  return { timestamp: formatTime(at), price, volume_24h: volume, market_cap: cap };
}
