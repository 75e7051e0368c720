/**
 * The records of the catalogue (coin details, events, markets, exchanges of a coin, tags, people, platforms, contracts, renames) on the wire.
 * The schemas check the fields that Chandler uses. They accept unknown and missing fields, so that our answer has the same keys in the same
 * order as the upstream's. Shapes: vendor's OpenAPI, and recorded answers where the two differ (upstream-api.md, 1.8 to 1.25).
 */
import { z } from 'zod';

const text = z.string({ error: 'expected string' });
const number = z.number({ error: 'expected number' });
const flag = z.boolean({ error: 'expected boolean' });
const maybeText = z.union([text, z.null()], { error: 'expected string' }).optional();
const maybeNumber = z.union([number, z.null(), z.literal('')], { error: 'expected number' }).optional();
const maybeFlag = z.union([flag, z.null()], { error: 'expected boolean' }).optional();

function maybeList<S extends z.ZodType>(item: S) {
  return z.union([z.array(item, { error: 'expected array' }), z.null()], { error: 'expected array' }).optional();
}
function list<S extends z.ZodType>(item: S) {
  return z.array(item, { error: 'expected array' });
}
const record = <S extends z.ZodRawShape>(shape: S) => z.looseObject(shape, { error: 'expected object' });

const tagOfCoin = record({ id: text, name: text, coin_counter: maybeNumber, ico_counter: maybeNumber });
const personOfCoin = record({ id: text, name: text, position: maybeText });
const contractOfCoin = record({ contract: text, platform: text, type: maybeText });
const linkExtended = record({ url: maybeText, type: maybeText, stats: z.record(z.string(), maybeNumber).nullish() });

/**
 * `/coins/{id}`, `getCoinById`. `message` is "" when empty; `parent`, `contract`, `platform`, `contracts` are missing for a native coin.
 */
export const coinDetailsSchema = record({
  id: text,
  name: text,
  symbol: text,
  parent: record({ id: text, name: text, symbol: text }).nullish(),
  rank: maybeNumber,
  is_new: maybeFlag,
  is_active: maybeFlag,
  /** `coin` or `token`. */
  type: maybeText,
  logo: maybeText,
  tags: maybeList(tagOfCoin),
  team: maybeList(personOfCoin),
  description: maybeText,
  message: maybeText,
  open_source: maybeFlag,
  hardware_wallet: maybeFlag,
  /** RFC 3339. */
  started_at: maybeText,
  development_status: maybeText,
  proof_type: maybeText,
  org_structure: maybeText,
  hash_algorithm: maybeText,
  contract: maybeText,
  platform: maybeText,
  contracts: maybeList(contractOfCoin),
  /** Keyed by kind (`website`, `explorer`, …); only the kinds that exist. */
  links: z.record(z.string(), maybeList(text), { error: 'expected object' }).nullish(),
  links_extended: maybeList(linkExtended),
  whitepaper: record({ link: maybeText, thumbnail: maybeText }).nullish(),
  first_data_at: maybeText,
  last_data_at: maybeText,
});

/** A row of `/coins/{id}/events`, `getCoinEvents`. */
export const coinEventSchema = record({
  id: text,
  date: text,
  date_to: maybeText,
  name: text,
  description: maybeText,
  is_conference: maybeFlag,
  link: maybeText,
  proof_image_link: maybeText,
});
export const coinEventsSchema = list(coinEventSchema);

const fiat = record({ name: text, symbol: text });

/** A row of `/coins/{id}/exchanges`, `getCoinExchanges`. `[]` does not mean "not traded" (upstream-api.md, 1.11). */
export const coinExchangeSchema = record({
  id: text,
  name: text,
  fiats: maybeList(fiat),
  adjusted_volume_24h_share: maybeNumber,
});
export const coinExchangesSchema = list(coinExchangeSchema);

const marketFields = {
  pair: text,
  base_currency_id: text,
  base_currency_name: maybeText,
  quote_currency_id: text,
  quote_currency_name: maybeText,
  market_url: maybeText,
  /** `Spot`, `Derivatives`, `OTC` or "". */
  category: maybeText,
  fee_type: maybeText,
  outlier: maybeFlag,
};
const marketQuotes = z
  .record(z.string(), record({ price: maybeNumber, volume_24h: maybeNumber }), { error: 'expected object' })
  .nullish();

/** A row of `/coins/{id}/markets`, `getCoinMarkets`. `quotes` is keyed by upper-case symbol. */
export const coinMarketSchema = record({
  exchange_id: text,
  exchange_name: maybeText,
  ...marketFields,
  adjusted_volume_24h_share: maybeNumber,
  quotes: marketQuotes,
  last_updated: maybeText,
});
export const coinMarketsSchema = list(coinMarketSchema);

/** A row of `/exchanges/{id}/markets`, `getExchangeMarkets`. */
export const exchangeMarketSchema = record({
  ...marketFields,
  reported_volume_24h_share: maybeNumber,
  quotes: marketQuotes,
  last_updated: maybeText,
});
export const exchangeMarketsSchema = list(exchangeMarketSchema);

/** A row of `/tags`, and `/tags/{id}`. It has `coins` and `icos` only when `additional_fields` names them. */
export const tagSchema = record({
  id: text,
  name: text,
  coin_counter: maybeNumber,
  ico_counter: maybeNumber,
  description: maybeText,
  /** `functional` or `technical`. */
  type: maybeText,
  coins: maybeList(text),
  icos: maybeList(text),
});
export const tagsSchema = list(tagSchema);

const followed = record({ url: text, followers: maybeNumber });

/** `/people/{id}`, `getPeopleById`. */
export const personSchema = record({
  id: text,
  name: text,
  description: maybeText,
  teams_count: maybeNumber,
  /** Keyed by `github`, `linkedin`, `medium`, `twitter`, `additional`. */
  links: z.record(z.string(), maybeList(followed), { error: 'expected object' }).nullish(),
  positions: maybeList(record({ coin_id: text, coin_name: maybeText, position: maybeText })),
});

/** `/contracts`, `getPlatforms`: ids of platforms, which are ids of coins. */
export const platformsSchema = list(text);

/** A row of `/contracts/{platform}`, `getContracts`. `id` is that of the coin. */
export const contractSchema = record({ address: text, type: maybeText, id: text, active: maybeFlag });
export const contractsSchema = list(contractSchema);

/** A row of `/changelog/ids`. */
export const idChangeSchema = record({ currency_id: text, old_id: text, new_id: text, changed_at: text });
export const idChangesSchema = list(idChangeSchema);

/** The providers of ids of coins. */
export const ID_PROVIDERS = ['coinpaprika', 'coinmarketcap', 'coingecko', 'cryptocompare', 'isin', 'dti'] as const;
export type IdProvider = (typeof ID_PROVIDERS)[number];

/**
 * `/coins/mappings`, `getMappings`: one object, although the vendor's document has a list. A missing id is "" (upstream-api.md,
 * 1.14).
 */
export const coinMappingSchema = record({
  coinpaprika: text,
  coinmarketcap: maybeText,
  coingecko: maybeText,
  cryptocompare: maybeText,
  isin: maybeText,
  dti: maybeText,
  /** RFC 3339. */
  updated_at: maybeText,
});

export const SEARCH_CATEGORIES = ['currencies', 'exchanges', 'icos', 'people', 'tags'] as const;
export type SearchCategory = (typeof SEARCH_CATEGORIES)[number];

const numberOrNull = z.union([number, z.null()], { error: 'expected number' });

/** A record that is only written, never read, so it has no unknown fields. */
const answered = <S extends z.ZodRawShape>(shape: S) => z.object(shape, { error: 'expected object' });

/** `/search`, `search`: only the requested categories. */
export const searchResultSchema = answered({
  currencies: list(
    answered({
      id: text,
      name: text,
      symbol: text,
      rank: numberOrNull,
      is_new: flag,
      is_active: flag,
      type: z.union([text, z.null()], { error: 'expected string' }),
    }),
  ).optional(),
  icos: list(answered({ id: text, name: text, symbol: text, is_new: flag })).optional(),
  exchanges: list(answered({ id: text, name: text, rank: numberOrNull })).optional(),
  people: list(answered({ id: text, name: text, teams_count: numberOrNull })).optional(),
  tags: list(answered({ id: text, name: text, coin_counter: numberOrNull, ico_counter: numberOrNull })).optional(),
});

/** `/price-converter`, `priceConverter`: `price` is the value of `amount` of the base in the quote currency. */
export const priceConversionSchema = answered({
  base_currency_id: text,
  base_currency_name: text,
  base_price_last_updated: text,
  quote_currency_id: text,
  quote_currency_name: text,
  quote_price_last_updated: text,
  amount: number,
  price: numberOrNull,
});

/** A row of `/tickers/{id}/historical`. */
export const historicalTickSchema = answered({
  /** RFC 3339; the start of the slot of these values. */
  timestamp: text,
  price: numberOrNull,
  volume_24h: numberOrNull,
  market_cap: numberOrNull,
});
export const historicalTicksSchema = list(historicalTickSchema);

export type SearchResult = z.output<typeof searchResultSchema>;
export type PriceConversion = z.output<typeof priceConversionSchema>;
export type HistoricalTick = z.output<typeof historicalTickSchema>;
export type CoinDetails = z.output<typeof coinDetailsSchema>;
export type CoinEvent = z.output<typeof coinEventSchema>;
export type CoinExchange = z.output<typeof coinExchangeSchema>;
export type CoinMarket = z.output<typeof coinMarketSchema>;
export type ExchangeMarket = z.output<typeof exchangeMarketSchema>;
export type Tag = z.output<typeof tagSchema>;
export type Person = z.output<typeof personSchema>;
export type PlatformContract = z.output<typeof contractSchema>;
export type CoinMapping = z.output<typeof coinMappingSchema>;
export type IdChange = z.output<typeof idChangeSchema>;
