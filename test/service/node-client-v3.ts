/**
 * The requests of version 3 of the vendor's client for Node.js. It is not in the registry (3.0.0 is in its repository only, April 2026), so
 * its requests are written down here: the bare key in `Authorization`, lists joined by commas, redirects followed. The client itself was
 * run once beside them, and read the same answers.
 */
import type { AnswerPath } from './upstream-schema.ts';

type Query = Readonly<Record<string, string | number | readonly string[]>>;

/** The request of one of its methods, and the operation of the vendor's document that describes the answer. */
export type MethodCall = {
  readonly method: string;
  readonly path: string;
  readonly query: Query;
  readonly answer: AnswerPath;
};

const COIN = 'btc-bitcoin';
const QUOTES = { quotes: ['USD', 'BTC'] };

/** Every method except the one for Twitter timelines, which no server answers any more. `day`: this many days from now. */
export function callsOfVersion3(day: (n: number) => string, contract: string): readonly MethodCall[] {
  const call = (method: string, path: string, answer: AnswerPath, query: Query = {}) => ({
    method,
    path,
    query,
    answer,
  });
  const at = `/contracts/eth-ethereum/${contract}`;
  return [
    call('getGlobal', '/global', '/global'),
    call('getCoins', '/coins', '/coins'),
    call('getCoin', `/coins/${COIN}`, '/coins/{coin_id}'),
    // The client sends neither an interval nor a limit.
    call('getCoinsOHLCVHistorical', `/coins/${COIN}/ohlcv/historical`, '/coins/{coin_id}/ohlcv/historical', {
      start: day(-9),
      end: day(-3),
      quote: 'usd',
    }),
    call('getCoinsOHLCVLatest', `/coins/${COIN}/ohlcv/latest`, '/coins/{coin_id}/ohlcv/latest', { quote: 'usd' }),
    call('getCoinsOHLCVToday', `/coins/${COIN}/ohlcv/today`, '/coins/{coin_id}/ohlcv/today'),
    call('getCoinEvents', `/coins/${COIN}/events`, '/coins/{coin_id}/events'),
    call('getCoinExchanges', `/coins/${COIN}/exchanges`, '/coins/{coin_id}/exchanges'),
    call('getCoinMarkets', `/coins/${COIN}/markets`, '/coins/{coin_id}/markets', QUOTES),
    call('getCoinsMappings', '/coins/mappings', '/coins/mappings', { coingecko: 'bitcoin' }),
    call('getPeople', '/people/vitalik-buterin', '/people/{person_id}'),
    call('getTags', '/tags', '/tags', { additional_fields: 'coins,icos' }),
    call('getTag', '/tags/smart-contracts', '/tags/{tag_id}', { additional_fields: 'coins' }),
    call('getExchanges', '/exchanges', '/exchanges', QUOTES),
    call('getExchange', '/exchanges/binance', '/exchanges/{exchange_id}', QUOTES),
    call('getExchangeMarkets', '/exchanges/binance/markets', '/exchanges/{exchange_id}/markets', QUOTES),
    call('search', '/search', '/search', { q: 'bitcoin', c: ['currencies', 'exchanges', 'tags'], limit: 5 }),
    call('priceConverter', '/price-converter', '/price-converter', {
      base_currency_id: COIN,
      quote_currency_id: 'usd-us-dollars',
      amount: 2,
    }),
    call('getPlatforms', '/contracts', '/contracts'),
    call('getContracts', '/contracts/eth-ethereum', '/contracts/{platform_id}'),
    call('getTickerByContract', at, '/tickers/{coin_id}'),
    call('getHistoricalByContract', `${at}/historical`, '/tickers/{coin_id}/historical', {
      start: day(-3),
      interval: '1d',
    }),
    call('getKeyInfo', '/key/info', '/key/info'),
    call('getChangelogIds', '/changelog/ids', '/changelog/ids', { page: 1 }),
  ];
}

/** `host`: the `baseUrl` that the client is given instead of the vendor's paid host. */
export function askAsVersion3(host: string, key: string, { path, query }: Pick<MethodCall, 'path' | 'query'>) {
  const given = Object.entries(query).map(([name, value]): [string, string] => [
    name,
    Array.isArray(value) ? value.join() : String(value),
  ]);
  const text = new URLSearchParams(given).toString();
  const headers = {
    Accept: 'application/json',
    'Accept-Charset': 'utf-8',
    'Accept-Encoding': 'deflate, gzip',
    Authorization: key,
  };
  return fetch(`${host}/v1${path}${text === '' ? '' : `?${text}`}`, { method: 'GET', headers });
}
