/** The catalogue as upstream answered it: documents as received. What nobody has asked about yet is empty, not unknown. */
import type { Instant } from '../../clock.ts';
import { type Absent, absent, isThere, knownAbsent, notIn } from '../../contract/answer/not-found.ts';
import { basisOf, NOTHING, partAsOf, standingOn, together, wholeAsOf } from '../../contract/answer/provenance.ts';
import type {
  CoinDetails,
  CoinEvent,
  CoinExchange,
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
import { type Document, type DocumentKind, readDocument, readDocuments } from '../../store/catalogue/document.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { Versions } from './data-versions.ts';
import { createListedCoinView } from './listed-coin.ts';
import { lacksRates, needsRates, type Rates, readRates } from './rates.ts';
import { createKept } from './versioned-cache.ts';

/** Documents are a few kilobytes each; a list weighs one for every ten of its rows, in each of its currencies. */
const MOST_DOCUMENTS = 2_000;
const ROWS_A_DOCUMENT = 10;
const IDS_PER_PAGE = 100;

type Part = Omit<Catalogue<Absent>, 'search' | 'convert' | 'tickerHistory' | 'exchange'>;

/** What these need of the other views. */
export type CatalogueDeps = {
  readonly sql: Sql;
  readonly versions: Versions;
  readonly findCoin: (coinId: string) => Promise<CoinSummary | null>;
  readonly noCoin: () => Promise<Absent>;
  readonly findExchange: (exchangeId: string) => Promise<Exchange | Absent>;
};

export function createCatalogueViews({ sql, versions, findCoin, noCoin, findExchange }: CatalogueDeps): Part {
  const documents = createKept<Read<unknown> | null>({
    onGet: versions.counted('catalogue'),
    most: MOST_DOCUMENTS,
    weigh: (read) => (read !== null && Array.isArray(read.value) ? 1 + read.value.length / ROWS_A_DOCUMENT : 1),
  });
  const converted = createKept<readonly WithQuotes[]>({
    onGet: versions.counted('catalogue'),
    most: MOST_DOCUMENTS,
    weigh: (rows) => 1 + (rows.length * Object.keys(rows[0]?.quotes ?? {}).length) / ROWS_A_DOCUMENT,
  });
  const listedCoin = createListedCoinView({ sql, versions, findCoin });
  const lists = createKept<readonly unknown[]>({ onGet: versions.counted('catalogue'), most: 10 });

  const read = async <T extends object>(kind: DocumentKind, id: string): Promise<Read<T> | null> => {
    const version = String((await versions.topics())[`document ${kind}`]);
    return (await documents.get(`${kind} ${id}`, version, () => toRead(readDocument(sql, kind, id)))) as Read<T> | null;
  };
  /** A list about something. Absent: nobody has heard of that; empty: nobody has looked. */
  const listOf = async <T>(
    kind: DocumentKind,
    id: string,
    absence: () => Promise<Absent | null>,
  ): Promise<Read<readonly T[]> | Absent> => {
    const found = await read<readonly T[]>(kind, id);
    if (found !== null) return found.goneAt === null ? found : knownAbsent(found.goneAt);
    return (await absence()) ?? { value: nobodyLooked(), asOf: 0, goneAt: null };
  };
  const listed = async <T extends object>(list: Promise<Read<T> | Absent>): Promise<T | Absent> => {
    const found = await list;
    return isThere(found) ? found.value : found;
  };
  /** Null: there is such a coin. */
  const coinAbsence = (id: string) => async () => ((await findCoin(id)) === null ? noCoin() : null);
  const exchangeAbsence = (id: string) => async () => {
    const exchange = await findExchange(id);
    return isThere(exchange) ? null : exchange;
  };
  const platformAbsence = (id: string) => async () => {
    const platforms = (await read<readonly string[]>('platforms', ''))?.value ?? nobodyLooked();
    return platforms.includes(id) ? null : notIn(platforms);
  };
  const inQuotes = async <T extends WithQuotes>(
    key: string,
    found: Read<readonly T[]> | Absent,
    quotes: readonly string[],
  ) => {
    if (!isThere(found)) return found;
    if (quotes.length === 1 && quotes[0] === 'USD') return found.value;
    const { ticker } = await versions.topics();
    const list = await converted.get(`${key} ${quotes}`, `${found.asOf} ${ticker}`, async () => {
      const rates = await readRates(sql, quotes, needsRates(quotes) && found.asOf > 0 ? [found.asOf] : []);
      const rows = found.value.map((row) => marketIn(row, quotes, found.asOf, rates));
      const basis = basisOf(found.value)!;
      const lacks = rows.length > 0 && lacksRates(quotes, [found.asOf], rates);
      return standingOn(rows, lacks ? together([basis, NOTHING]) : basis);
    });
    return list as readonly T[];
  };

  const tags = async () => {
    const topics = await versions.topics();
    return lists.get('tags', `${topics['document tag']} ${topics.tag}`, () => readTags(sql)) as Promise<readonly Tag[]>;
  };

  return {
    coin: async (coinId) => {
      const found = await read<CoinDetails>('coin', coinId);
      return found === null ? ((await listedCoin(coinId)) ?? noCoin()) : told(found);
    },
    coinEvents: async (id) => listed(listOf<CoinEvent>('coin_events', id, coinAbsence(id))),
    coinExchanges: async (id) => listed(listOf<CoinExchange>('coin_exchanges', id, coinAbsence(id))),
    coinMarkets: async ({ coinId, quotes }) =>
      inQuotes(`coin ${coinId}`, await listOf<CoinMarket>('coin_markets', coinId, coinAbsence(coinId)), quotes),
    exchangeMarkets: async ({ exchangeId, quotes }) =>
      inQuotes(
        `exchange ${exchangeId}`,
        await listOf<ExchangeMarket>('exchange_markets', exchangeId, exchangeAbsence(exchangeId)),
        quotes,
      ),
    tags,
    tag: async (id) => told(await read<Tag>('tag', id)) ?? notIn(await tags()),
    // There is no list of people.
    person: async (id) => told(await read<Person>('person', id)) ?? absent(NOTHING),
    platforms: async () => (await read<readonly string[]>('platforms', ''))?.value ?? nobodyLooked(),
    contracts: (id) => listed(listOf<PlatformContract>('contracts', id, platformAbsence(id))),
    coinOfContract: async (query) => {
      const coinId = await coinOfContract(sql, query);
      const list = await listed(
        listOf<PlatformContract>('contracts', query.platformId, platformAbsence(query.platformId)),
      );
      if (coinId !== null) return standingOn({ coinId }, wholeAsOf(basisOf(list)?.asOf ?? null));
      return isThere(list) ? notIn(list) : list;
    },
    idChanges: async ({ page }) => {
      const { coin_rename } = await versions.topics();
      return lists.get(`ids ${page}`, String(coin_rename), () => readIdChanges(sql, page)) as Promise<
        readonly IdChange[]
      >;
    },
  };
}

type Read<T> = { readonly value: T; readonly asOf: Instant; readonly goneAt: Instant | null };

async function toRead(reading: Promise<Document | null>): Promise<Read<unknown> | null> {
  const document = await reading;
  if (document === null) return null;
  const value = JSON.parse(document.text) as object;
  return {
    // Of a list that was given with a limit only the beginning is there.
    value: standingOn(value, isCutList(value, document) ? partAsOf(document.asOf) : wholeAsOf(document.asOf)),
    asOf: document.asOf,
    goneAt: document.goneAt,
  };
}

/** Null: it was never asked about by itself. */
function told<T extends object>(found: Read<T>): T | Absent;
function told<T extends object>(found: Read<T> | null): T | Absent | null;
function told<T extends object>(found: Read<T> | null): T | Absent | null {
  if (found === null) return null;
  return found.goneAt === null ? found.value : knownAbsent(found.goneAt);
}

function isCutList(value: object, { isCut }: Document): boolean {
  return isCut && Array.isArray(value);
}

function nobodyLooked(): readonly never[] {
  return standingOn([], NOTHING);
}

async function readTags(sql: Sql): Promise<readonly Tag[]> {
  const found = await readDocuments(sql, 'tag');
  const told = found.map(({ asOf, isCut }) => (isCut ? partAsOf(asOf) : wholeAsOf(asOf)));
  return standingOn(
    found.map((document) => JSON.parse(document.text) as Tag),
    told.length === 0 ? NOTHING : together(told),
  );
}

type WithQuotes = { readonly quotes?: CoinMarket['quotes'] };
type Values = { readonly price?: unknown; readonly volume_24h?: unknown };

/** A market in these currencies, of one that is in dollars; null where nobody has told a rate. */
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

/** Never all of them: the changelog is read from when the first coin was seen. */
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
  return standingOn(list, rows.length === 0 ? NOTHING : partAsOf(rows[0]!.seenAt));
}
