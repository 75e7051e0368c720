/** The list of coins, the exchanges and the market as a whole, as upstream answers them. */

import type { Instant } from '../../clock.ts';
import { type NotFound, notFound, notFoundIn } from '../../contract/answer/not-found.ts';
import { completeAsOf, partialAsOf, withProvenance, withSameProvenance } from '../../contract/answer/provenance.ts';
import type { Candles, Catalogue } from '../../contract/record/market-data.ts';
import type { CoinSummary, Exchange, GlobalOverview } from '../../contract/record/records.ts';
import { EXCHANGE_VOLUMES } from '../../core/exchange.ts';
import { type CamelCased, createRecordReader } from '../../store/connection/column-names.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { EXCHANGE_FLAGS, EXCHANGE_WHOLE, type ExchangeFacts, exchangeRecord } from '../../store/snapshot/exchange.ts';
import { type GlobalFacts, globalRecord } from '../../store/snapshot/global-history.ts';
import { createVersionedCache, type ViewDeps } from './data-versions.ts';
import { asOfRates, exchangeIn, lacksRates, needsRates, readRates } from './rates.ts';

/** The list of coins, and the exchanges in this many combinations of currencies. */
const MAX_LISTS = 40;
/** A long list is read in pieces of this many rows, so that other requests are served in between. */
const PIECE = 2_000;

export function createOverviewViews({ sql, versions }: Omit<ViewDeps, 'noCoin'>): Pick<
  Candles,
  'coins' | 'global' | 'exchanges'
> &
  Pick<Catalogue<NotFound>, 'exchange'> & {
    findCoin(coinId: string): Promise<CoinSummary | null>;
    /** The provenance of "there is no such coin". */
    noCoin(): Promise<NotFound>;
  } {
  const lists = createVersionedCache<object>({ versions, view: 'overview', maxSize: MAX_LISTS });
  const exchanges: Candles['exchanges'] = ({ quotes }) =>
    lists(exchangeTopics(quotes), `exchanges ${quotes}`, () => readExchanges(sql, quotes));
  return {
    coins: () => lists(['coin', 'coin_rename'], 'coins', () => readCoins(sql)),
    global: () => versions.readUnder(['global_history'], () => readGlobal(sql)),
    exchanges,
    exchange: ({ exchangeId, quotes }) =>
      versions.readUnder(exchangeTopics(quotes), async () => {
        const all = await exchanges({ quotes });
        const found = all.find(({ id }) => id === exchangeId);
        // A list in dollars is complete, or there is none.
        if (found === undefined) return notFoundIn(await exchanges({ quotes: ['USD'] }));
        return withSameProvenance(found, all);
      }),
    findCoin: (coinId) => readCoin(sql, coinId),
    noCoin: () => lists(['coin'], 'no coin', () => readNoCoin(sql)),
  };
}

function exchangeTopics(quotes: readonly string[]): readonly string[] {
  return needsRates(quotes) ? ['exchange', 'ticker', 'rate'] : ['exchange'];
}

type CoinRow = CamelCased<Omit<CoinSummary, 'rank'>> & {
  readonly rank: number;
  readonly answer: string | null;
  readonly seenAt: Instant;
};

/** In the order of the newest list. Coins that it lacks follow at the end, except those that have another id now. */
async function readCoins(sql: Sql): Promise<readonly CoinSummary[]> {
  const query = sql<CoinRow[]>`
    select c.id, c.name, c.symbol, c.rank, c.is_new, c.is_active, c.type, c.answer, c.last_seen_at as seen_at
    from market.coin c cross join (select max(last_seen_at) as at from market.coin) newest
    where c.last_seen_at = newest.at or not exists (select from market.coin_rename r where r.old_id = c.id)
    order by c.last_seen_at = newest.at desc, c.position nulls last, nullif(c.rank, 0) nulls last, c.id`;
  const list: CoinSummary[] = [];
  let asOf: Instant | null = null;
  for await (const rows of query.cursor(PIECE)) {
    for (const row of rows) {
      list.push(toCoin(row));
      asOf = Math.max(asOf ?? row.seenAt, row.seenAt);
    }
  }
  return withProvenance(list, completeAsOf(asOf));
}

async function readCoin(sql: Sql, coinId: string): Promise<CoinSummary | null> {
  const [row] = await sql<CoinRow[]>`
    select id, name, symbol, rank, is_new, is_active, type, null as answer, last_seen_at as seen_at
    from market.coin where id = ${coinId}`;
  return row === undefined ? null : withProvenance(toCoin(row), completeAsOf(row.seenAt));
}

/** Only the list of coins shows which coins exist, and it is always received as a whole. */
async function readNoCoin(sql: Sql): Promise<NotFound> {
  const [row] = await sql<{ at: Instant | null }[]>`select max(last_seen_at) as at from market.coin`;
  return notFound(completeAsOf(row?.at ?? null));
}

function toCoin({ answer, id, name, symbol, rank, isNew, isActive, type }: CoinRow): CoinSummary {
  if (answer === null) return { id, name, symbol, rank, is_new: isNew, is_active: isActive, type };
  const written = JSON.parse(answer) as CoinSummary;
  // A ticker may have brought a newer rank.
  return typeof written.rank === 'number' ? { ...written, rank } : written;
}

type GlobalRow = Omit<GlobalFacts, 'updatedAt'> & { readonly at: Instant | null; readonly updatedAt: Instant | null };

/** Every field is null when the warehouse never received it. */
async function readGlobal(sql: Sql): Promise<GlobalOverview> {
  const [row] = await sql<[GlobalRow]>`
    select market_cap, volume_24h, bitcoin_dominance, coins, market_cap_change_24h, volume_24h_change_24h,
      market_cap_ath, market_cap_ath_at, volume_24h_ath, volume_24h_ath_at, volume_24h_percent_from_ath,
      volume_24h_percent_to_ath, updated_at, at, answer
    from (select) one_row left join (select * from market.global_history order by at desc limit 1) newest on true`;
  const record = row.answer === null ? globalRecord(row) : (JSON.parse(row.answer) as GlobalOverview);
  return withProvenance(record, completeAsOf(row.at));
}

type ExchangeRow = Pick<
  ExchangeFacts,
  'id' | 'name' | 'types' | 'description' | 'message' | 'links' | 'fiats' | 'answer'
> &
  CamelCased<ExchangeFacts['flags'] & ExchangeFacts['whole'] & ExchangeFacts['volumes']> & {
    readonly updatedAt: Instant;
    readonly at: Instant;
    readonly seenAt: Instant;
  };

/** The exchanges of the newest list, in its order. */
async function readExchanges(sql: Sql, quotes: readonly string[]): Promise<readonly Exchange[]> {
  const rows = await sql<ExchangeRow[]>`
    select id, name, to_json(types) as types, description, message, links, fiats, answer, is_active, website_status,
      api_status, markets_data_fetched, adjusted_rank, reported_rank, currencies, markets, ${sql(EXCHANGE_VOLUMES as unknown as string[])},
      updated_at, at, last_seen_at as seen_at
    from market.exchange where last_seen_at = (select max(last_seen_at) from market.exchange)
    order by position nulls last, adjusted_rank nulls last, id`;
  const snapshots = [...new Set(rows.map((row) => row.at))];
  const rates = await readRates(sql, quotes, needsRates(quotes) ? snapshots : []);
  const list = rows.map((row) => exchangeIn(toExchange(row), quotes, row.at, rates));
  const asOf = rows[0]?.seenAt ?? null;
  const rated = asOfRates(asOf, quotes, snapshots, rates);
  return withProvenance(list, lacksRates(quotes, snapshots, rates) ? partialAsOf(rated) : completeAsOf(rated));
}

const flagsOf = createRecordReader<ExchangeFacts['flags']>(EXCHANGE_FLAGS);
const wholeOf = createRecordReader<ExchangeFacts['whole']>(EXCHANGE_WHOLE);
const volumesOf = createRecordReader<ExchangeFacts['volumes']>(EXCHANGE_VOLUMES);

function toExchange(row: ExchangeRow): Exchange {
  if (row.answer !== null) return JSON.parse(row.answer) as Exchange;
  const { id, name, types, description, message, links, fiats, updatedAt } = row;
  return exchangeRecord({
    ...{ id, name, types, description, message, links, fiats, updatedAt },
    flags: flagsOf(row),
    whole: wholeOf(row),
    volumes: volumesOf(row),
  });
}
