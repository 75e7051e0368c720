/** The catalogue: the documents of upstream as received. A list that the warehouse never received is empty, not unknown. */
import type { Instant } from '../../clock.ts';
import { isFound, type NotFound, notFound, notFoundIn } from '../../contract/answer/not-found.ts';
import {
  combineProvenance,
  completeAsOf,
  NO_DATA,
  partialAsOf,
  provenanceOf,
  withProvenance,
} from '../../contract/answer/provenance.ts';
import type {
  CoinDetails,
  CoinEvent,
  CoinExchange,
  CoinMapping,
  CoinMarket,
  ExchangeMarket,
  IdChange,
  Person,
  PlatformContract,
  Tag,
} from '../../contract/record/catalogue.ts';
import type { Catalogue } from '../../contract/record/market-data.ts';
import type { CoinSummary, Exchange } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import { coinOfContract } from '../../store/catalogue/contract.ts';
import { findDocument, readDocuments } from '../../store/catalogue/document.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createVersionedCache, type ViewDeps } from './data-versions.ts';
import { createDocuments } from './documents.ts';
import { LISTED_COIN_TOPICS, readListedCoin } from './listed-coin.ts';
import { asOfRates, lacksRates, needsRates, type Rates, readRates } from './rates.ts';

const IDS_PER_PAGE = 100;

type CatalogueViews = Omit<Catalogue<NotFound>, 'search' | 'convert' | 'tickerHistory' | 'exchange'>;

type CatalogueDeps = ViewDeps & {
  readonly findCoin: (coinId: string) => Promise<CoinSummary | null>;
  readonly findExchange: (exchangeId: string) => Promise<Exchange | NotFound>;
};

export function createCatalogueViews(deps: CatalogueDeps): CatalogueViews {
  const { sql, versions, findCoin, noCoin, findExchange } = deps;
  const { read, readList, readPlatforms } = createDocuments(deps);
  const tagLists = createVersionedCache<readonly Tag[]>({ versions, view: 'catalogue', maxSize: 1 });
  const tags = () => tagLists(['document tag', 'tag'], 'all', () => readTags(sql));
  const { readUnder } = versions;

  /** These resolve to null when the coin, exchange or platform exists. */
  const coinMissing = async (id: string) => ((await findCoin(id)) === null ? noCoin() : null);
  const exchangeMissing = async (id: string) => {
    const exchange = await findExchange(id);
    return isFound(exchange) ? null : exchange;
  };
  const platformMissing = async (id: string) => {
    const platforms = await readPlatforms();
    return platforms.includes(id) ? null : notFoundIn(platforms);
  };
  const contractsOf = (platformId: string) => readList<PlatformContract>('contracts', platformId, platformMissing);

  return {
    coin: (coinId) =>
      readUnder(LISTED_COIN_TOPICS, async () => {
        const found = await read<CoinDetails>('coin', coinId);
        if (found !== null) return found;
        const listed = await findCoin(coinId);
        return listed === null ? noCoin() : readListedCoin(sql, listed);
      }),
    coinEvents: (id) =>
      readUnder(['document coin_events', 'coin'], () => readList<CoinEvent>('coin_events', id, coinMissing)),
    coinExchanges: (id) =>
      readUnder(['document coin_exchanges', 'coin'], () => readList<CoinExchange>('coin_exchanges', id, coinMissing)),
    coinMarkets: ({ coinId, quotes }) =>
      readUnder(['document coin_markets', 'coin', 'ticker', 'rate'], async () =>
        inQuotes(sql, await readList<CoinMarket>('coin_markets', coinId, coinMissing), quotes),
      ),
    exchangeMarkets: ({ exchangeId, quotes }) =>
      readUnder(['document exchange_markets', 'exchange', 'ticker', 'rate'], async () =>
        inQuotes(sql, await readList<ExchangeMarket>('exchange_markets', exchangeId, exchangeMissing), quotes),
      ),
    tags,
    tag: (id) =>
      readUnder(['document tag', 'tag'], async () => (await read<Tag>('tag', id)) ?? notFoundIn(await tags())),
    // There is no list of people.
    person: (id) => readUnder(['document person'], async () => (await read<Person>('person', id)) ?? notFound(NO_DATA)),
    platforms: () => readUnder(['document platforms'], readPlatforms),
    contracts: (id) => readUnder(['document contracts', 'document platforms'], () => contractsOf(id)),
    coinOfContract: async (query) => {
      const coinId = await coinOfContract(sql, query);
      const list = await contractsOf(query.platformId);
      if (coinId !== null) return withProvenance({ coinId }, completeAsOf(provenanceOf(list)?.asOf ?? null));
      return isFound(list) ? notFoundIn(list) : list;
    },
    // There is no list of mappings: mappings of coins that are not tracked were never requested.
    mapping: ({ provider, id }) =>
      readUnder(['document coin_mapping'], async () => {
        const query = { kind: 'coin_mapping', field: provider, value: id } as const;
        const coinId = provider === 'coinpaprika' ? id : await findDocument(sql, query);
        return (coinId === null ? null : await read<CoinMapping>('coin_mapping', coinId)) ?? notFound(NO_DATA);
      }),
    idChanges: ({ page }) => readUnder(['coin_rename'], () => readIdChanges(sql, page)),
  };
}

async function readTags(sql: Sql): Promise<readonly Tag[]> {
  const found = await readDocuments(sql, 'tag');
  const provenances = found.map(({ asOf, isTruncated }) => (isTruncated ? partialAsOf(asOf) : completeAsOf(asOf)));
  return withProvenance(
    found.map((document) => JSON.parse(document.text) as Tag),
    provenances.length === 0 ? NO_DATA : combineProvenance(provenances),
  );
}

type WithQuotes = { readonly quotes?: CoinMarket['quotes'] };
type Values = { readonly price?: unknown; readonly volume_24h?: unknown };

/** A list of markets with its prices in these currencies. */
async function inQuotes<T extends WithQuotes>(
  sql: Sql,
  list: readonly T[] | NotFound,
  quotes: readonly string[],
): Promise<readonly T[] | NotFound> {
  if (!isFound(list) || (quotes.length === 1 && quotes[0] === 'USD')) return list;
  const provenance = provenanceOf(list)!;
  const at = provenance.asOf ?? 0;
  const rates = await readRates(sql, quotes, needsRates(quotes) && list.length > 0 ? [at] : []);
  const rows = list.map((row) => marketIn(row, quotes, at, rates));
  const lacks = rows.length > 0 && lacksRates(quotes, [at], rates);
  const rated = { ...provenance, asOf: asOfRates(provenance.asOf, quotes, [at], rates) };
  return withProvenance(rows, lacks ? combineProvenance([rated, NO_DATA]) : rated);
}

/** Converts the prices of a market from dollars into these currencies; null when no rate was received. */
function marketIn<T extends WithQuotes>(row: T, quotes: readonly string[], at: Instant, rates: Rates): T {
  const usd = row.quotes?.USD as Values | undefined;
  if (usd === undefined) return row;
  const valuesIn = (symbol: string) => {
    const by = symbol === 'USD' ? 1 : (rates(symbol, at)?.price ?? null);
    const divide = (value: unknown) => (typeof value === 'number' && by !== null ? value / by : null);
    return symbol === 'USD' ? usd : { price: divide(usd.price), volume_24h: divide(usd.volume_24h) };
  };
  return { ...row, quotes: Object.fromEntries(quotes.map((symbol) => [symbol, valuesIn(symbol)])) };
}

/** The list is never complete: the warehouse has the changelog only since it saw the first coin. */
async function readIdChanges(sql: Sql, page: number): Promise<readonly IdChange[]> {
  const rows = await sql<
    { currencyId: string; oldId: string; newId: string; renamedAt: Instant; seenAt: Instant | null }[]
  >`
    select coalesce(currency_id, new_id) as currency_id, old_id, new_id, renamed_at,
      (select max(seen_at) from market.coin_rename) as seen_at
    from market.coin_rename
    order by renamed_at desc, old_id limit ${IDS_PER_PAGE} offset ${(page - 1) * IDS_PER_PAGE}`;
  const list = rows.map(({ currencyId, oldId, newId, renamedAt }) => ({
    currency_id: currencyId,
    old_id: oldId,
    new_id: newId,
    changed_at: formatTime(renamedAt),
  }));
  return withProvenance(list, rows.length === 0 ? NO_DATA : partialAsOf(rows[0]!.seenAt));
}
