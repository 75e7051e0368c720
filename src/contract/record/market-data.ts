/** The interface of every source of market data: the warehouse and the simulator implement it, and `service/` can serve both. */
import type { Instant } from '../../clock.ts';
import type { Candle, Quote } from '../../core/candle.ts';
import type { CandleInterval } from '../../core/interval.ts';
import type {
  CoinDetails,
  CoinEvent,
  CoinExchange,
  CoinMapping,
  CoinMarket,
  ExchangeMarket,
  HistoricalTick,
  IdChange,
  IdProvider,
  Person,
  PlatformContract,
  PriceConversion,
  SearchCategory,
  SearchResult,
  Tag,
} from './catalogue.ts';
import type { CoinSummary, Exchange, GlobalOverview, Ticker } from './records.ts';

export type OhlcvQuery = {
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: CandleInterval;
  /** First and last open time, both inclusive (decision 2). */
  readonly from: Instant;
  readonly to: Instant;
  /** Maximum number of candles, the earliest ones. */
  readonly limit: number;
};

/**
 * A candle in an answer. While the candle is still open, its `closeTime` is the minute of its data; else it is `openTime + width − 1 s`
 * (decisions 15, 17).
 */
export type OhlcvCandle = Candle & { readonly closeTime: Instant };

export type TickerHistoryQuery = {
  readonly coinId: string;
  readonly quote: Quote;
  /** `[from, to)` (upstream-api.md, 1.7; unlike candles). */
  readonly from: Instant;
  readonly to: Instant;
  /** Width of a slot in milliseconds. The price of a slot is about the mean of the prices in it (decisions 57 and 85). */
  readonly widthMs: number;
  /** Maximum number of slots, the earliest ones. */
  readonly limit: number;
};

export type ConversionQuery = { readonly baseId: string; readonly quoteId: string; readonly amount: number };

/** A coin by its id at a provider. */
export type MappingQuery = { readonly provider: IdProvider; readonly id: string };

export type SearchQuery = {
  readonly q: string;
  readonly categories: readonly SearchCategory[];
  /** Only currencies whose symbol is `q`, in any case. */
  readonly symbolOnly: boolean;
  /** Maximum number of results in each category. */
  readonly limit: number;
};

/** All that a service needs. `N` is the answer for something that is not found (`not-found.ts`); null from a source without provenance. */
export type MarketData<N = null> = Candles<N> & Catalogue<N>;

/** The market itself. A source never changes an answer after it returned it. It may attach provenance (`withProvenance`). */
export type Candles<N = null> = {
  /** Set when every answer has provenance. */
  readonly hasProvenance?: true;
  /** Ascending; `N` when the coin is unknown (the service decides what it then sends). */
  ohlcv(query: OhlcvQuery): Promise<readonly OhlcvCandle[] | N>;
  /** Every active coin, by rank. `quotes` are upper-case symbols (`USD`, `BTC`). */
  tickers(query: {
    readonly quotes: readonly string[];
    /** This many are enough; the answer may have more. */
    readonly most?: number | null;
  }): Promise<readonly Ticker[]>;
  ticker(query: { readonly coinId: string; readonly quotes: readonly string[] }): Promise<Ticker | N>;
  /** All known coins, also inactive ones (rank 0). */
  coins(): Promise<readonly CoinSummary[]>;
  global(): Promise<GlobalOverview>;
  exchanges(query: { readonly quotes: readonly string[] }): Promise<readonly Exchange[]>;
};

/**
 * Data about coins, exchanges, tags, people and contracts. `N` means that the id does not exist. A list that was never received is empty, as the
 * upstream's own may be (upstream-api.md, 1.11).
 */
export type Catalogue<N = null> = {
  coin(coinId: string): Promise<CoinDetails | N>;
  coinEvents(coinId: string): Promise<readonly CoinEvent[] | N>;
  coinExchanges(coinId: string): Promise<readonly CoinExchange[] | N>;
  coinMarkets(query: {
    readonly coinId: string;
    readonly quotes: readonly string[];
  }): Promise<readonly CoinMarket[] | N>;
  tickerHistory(query: TickerHistoryQuery): Promise<readonly HistoricalTick[] | N>;
  exchange(query: { readonly exchangeId: string; readonly quotes: readonly string[] }): Promise<Exchange | N>;
  exchangeMarkets(query: {
    readonly exchangeId: string;
    readonly quotes: readonly string[];
  }): Promise<readonly ExchangeMarket[] | N>;
  /** With `coins` and `icos`; the service removes those that were not requested. */
  tags(): Promise<readonly Tag[]>;
  tag(tagId: string): Promise<Tag | N>;
  person(personId: string): Promise<Person | N>;
  /** Ids of the coins that are platforms of other coins. */
  platforms(): Promise<readonly string[]>;
  contracts(platformId: string): Promise<readonly PlatformContract[] | N>;
  /** The coin of a contract. Hexadecimal addresses match in any case. */
  coinOfContract(query: {
    readonly platformId: string;
    readonly address: string;
  }): Promise<{ readonly coinId: string } | N>;
  search(query: SearchQuery): Promise<SearchResult>;
  /** The ids are of coins, or of fiat currencies (`usd-us-dollars`); `N` when one of them is unknown. */
  convert(query: ConversionQuery): Promise<PriceConversion | N>;
  /** The ids of a coin at all providers. */
  mapping(query: MappingQuery): Promise<CoinMapping | N>;
  /** Newest first, a hundred per page; pages are numbered from 1. */
  idChanges(query: { readonly page: number }): Promise<readonly IdChange[]>;
};
