/** A small consistent catalogue, for tests that check which requests are made and not their content. */
import type { Catalogue } from '../../src/contract/record/market-data.ts';
import { BTC } from './sample-records.ts';

const market = (pair: string) => ({
  pair,
  base_currency_id: 'btc-bitcoin',
  base_currency_name: 'Bitcoin',
  quote_currency_id: 'usd-us-dollars',
  quote_currency_name: 'US Dollars',
  market_url: null,
  category: 'Spot',
  fee_type: 'Percentage',
  outlier: false,
  quotes: { USD: { price: 60_000.5, volume_24h: 1_000 } },
  last_updated: '2024-06-01T12:03:00Z',
});
const TAGS = ['currency', 'mining', 'payments'].map((id) => ({
  id,
  name: id,
  coin_counter: 2,
  ico_counter: 1,
  description: '',
  type: 'functional',
  coins: ['btc-bitcoin', 'eth-ethereum'],
  icos: ['ico-first'],
}));
const CONTRACTS = [{ address: '0xAbC0', type: 'ERC20', id: 'btc-bitcoin', active: true }];
const EXCHANGE = {
  id: 'binance',
  name: 'Binance',
  type: ['cex'],
  active: true,
  website_status: true,
  api_status: true,
  description: null,
  message: null,
  links: {},
  markets_data_fetched: true,
  adjusted_rank: 1,
  reported_rank: 1,
  currencies: 2,
  markets: 3,
  fiats: [],
  quotes: {},
  last_updated: '2024-06-01T12:03:00Z',
};

/** It knows `btc-bitcoin`, `binance`, the tag `currency`, the person `jo-bloggs` and the platform `eth-ethereum`. */
export function scriptedCatalogue(overrides: Partial<Catalogue> = {}): Catalogue {
  const of =
    <T>(id: string, value: T) =>
    async (given: string) =>
      given === id ? value : null;
  const btc = <T>(value: T) => of('btc-bitcoin', value);
  const binance = <T>(value: T) => of('binance', value);
  return {
    coin: btc({ ...BTC, description: 'Money', tags: [], team: [] }),
    coinEvents: btc(['halving', 'summit'].map((id) => ({ id, date: '2024-04-20T00:00:00Z', date_to: null, name: id }))),
    coinExchanges: btc([{ id: 'binance', name: 'Binance', fiats: [], adjusted_volume_24h_share: 12.5 }]),
    coinMarkets: ({ coinId }) =>
      btc(['BTC/USD', 'BTC/EUR', 'BTC/USDT'].map((pair) => ({ exchange_id: 'binance', ...market(pair) })))(coinId),
    tickerHistory: ({ coinId }) => btc([])(coinId),
    exchange: ({ exchangeId }) => binance(EXCHANGE)(exchangeId),
    exchangeMarkets: ({ exchangeId }) =>
      binance(['BTC/USD', 'BTC/EUR'].map((pair) => ({ ...market(pair), reported_volume_24h_share: 1 })))(exchangeId),
    tags: async () => TAGS,
    tag: of('currency', TAGS[0]!),
    person: of('jo-bloggs', { id: 'jo-bloggs', name: 'Jo Bloggs', teams_count: 1, links: {}, positions: [] }),
    platforms: async () => ['btc-bitcoin', 'eth-ethereum'],
    contracts: of('eth-ethereum', CONTRACTS),
    coinOfContract: async ({ platformId, address }) =>
      platformId === 'eth-ethereum' && address.toLowerCase() === '0xabc0' ? { coinId: 'btc-bitcoin' } : null,
    search: async ({ q, categories, symbolOnly, limit }) => {
      const { type, ...named } = BTC;
      const found = symbolOnly ? q.toUpperCase() === 'BTC' : 'bitcoin'.includes(q.toLowerCase());
      return {
        ...(categories.includes('currencies')
          ? { currencies: (found ? [{ ...named, type }] : []).slice(0, limit) }
          : {}),
        ...(categories.includes('people') ? { people: [] } : {}),
      };
    },
    convert: async ({ baseId, quoteId, amount }) =>
      baseId === 'btc-bitcoin' && quoteId === 'usd-us-dollars'
        ? {
            base_currency_id: baseId,
            base_currency_name: 'Bitcoin',
            base_price_last_updated: '2024-06-01T12:03:00Z',
            quote_currency_id: quoteId,
            quote_currency_name: 'US Dollars',
            quote_price_last_updated: '2024-06-01T12:03:00Z',
            amount,
            price: amount * 60_000.5,
          }
        : null,
    mapping: async ({ provider, id }) =>
      `${provider} ${id}` === 'coinpaprika btc-bitcoin' ? { coinpaprika: id, coingecko: 'bitcoin', isin: '' } : null,
    idChanges: async () => [],
    ...overrides,
  };
}
