/** The lists of the catalogue. A row is marked as gone when the upstream no longer lists it. */
import type { CoinEvent, CoinExchange, CoinMarket, ExchangeMarket } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { coinEvent, coinExchange, coinMarket, exchangeMarket, platform } from '../schema/catalogue.ts';
import { storeList, type UpstreamList } from './catalogue-rows.ts';
import { plainKey, plainNumber, plainText, plainTime } from './column-values.ts';

/** Stores the platforms, in the order of their list. */
export async function writePlatforms(
  sql: SqlOrTransaction,
  { rows: ids, ...list }: UpstreamList<string>,
): Promise<void> {
  await storeList(sql, platform, { of: null, rows: ids.map((id, place) => ({ id, place })), ...list });
}

/** Stores the events of a coin. Each must have a valid date. */
export async function writeCoinEvents(
  sql: SqlOrTransaction,
  coinId: string,
  { rows: events, ...list }: UpstreamList<CoinEvent>,
): Promise<void> {
  const rows = events.map((event) => ({
    coinId,
    id: plainKey(event.id),
    date: plainTime(event.date)!,
    dateTo: plainTime(event.date_to),
    name: event.name,
    description: plainText(event.description),
    isConference: event.is_conference ?? null,
    link: plainText(event.link),
    proofImageLink: plainText(event.proof_image_link),
  }));
  await storeList(sql, coinEvent, { of: coinId, rows, ...list });
}

/** Stores the exchanges on which a coin is traded. */
export async function writeCoinExchanges(
  sql: SqlOrTransaction,
  coinId: string,
  { rows: exchanges, ...list }: UpstreamList<CoinExchange>,
): Promise<void> {
  const rows = exchanges.map((exchange) => ({
    coinId,
    exchangeId: plainKey(exchange.id),
    name: exchange.name,
    fiats: (exchange.fiats ?? []).map((fiat) => fiat.symbol),
    adjustedVolume24hShare: plainNumber(exchange.adjusted_volume_24h_share),
  }));
  await storeList(sql, coinExchange, { of: coinId, rows, ...list });
}

/** Stores the markets of a coin on all exchanges. */
export async function writeCoinMarkets(
  sql: SqlOrTransaction,
  coinId: string,
  { rows: markets, ...list }: UpstreamList<CoinMarket>,
): Promise<void> {
  const rows = markets.map((market) => ({
    coinId,
    exchangeId: plainKey(market.exchange_id),
    ...marketRow(market),
    adjustedVolume24hShare: plainNumber(market.adjusted_volume_24h_share),
  }));
  await storeList(sql, coinMarket, { of: coinId, rows, ...list });
}

/** Stores the markets of an exchange. */
export async function writeExchangeMarkets(
  sql: SqlOrTransaction,
  exchangeId: string,
  { rows: markets, ...list }: UpstreamList<ExchangeMarket>,
): Promise<void> {
  const rows = markets.map((market) => ({
    exchangeId,
    ...marketRow(market),
    reportedVolume24hShare: plainNumber(market.reported_volume_24h_share),
  }));
  await storeList(sql, exchangeMarket, { of: exchangeId, rows, ...list });
}

/** An exchange may have two markets for a pair, which differ in their category: spot and derivatives. */
function marketRow(market: CoinMarket | ExchangeMarket) {
  const usd = market.quotes?.USD;
  return {
    baseCurrencyId: plainKey(market.base_currency_id),
    quoteCurrencyId: plainKey(market.quote_currency_id),
    pair: plainKey(market.pair),
    category: plainKey(market.category),
    marketUrl: plainText(market.market_url),
    feeType: plainText(market.fee_type),
    outlier: market.outlier ?? null,
    price: plainNumber(usd?.price),
    volume24h: plainNumber(usd?.volume_24h),
    updatedAt: plainTime(market.last_updated),
  };
}
