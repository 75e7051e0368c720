/** Tickers as upstream answers them: those of the newest snapshot as a list, and the newest ticker of each active coin. */
import pLimit from 'p-limit';
import type { Instant } from '../../clock.ts';
import { type NotFound, notFound } from '../../contract/answer/not-found.ts';
import { completeAsOf, NO_DATA, partialAsOf, provenanceOf, withProvenance } from '../../contract/answer/provenance.ts';
import type { Candles } from '../../contract/record/market-data.ts';
import type { Ticker } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import { mapInPieces } from '../../core/concurrency/yield-to-event-loop.ts';
import { TICKER_NUMBERS, TICKER_QUOTE_KEYS, type TickerNumber } from '../../core/ticker.ts';
import { type CamelCased, createRecordReader } from '../../store/connection/column-names.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createVersionedCache, type ViewDeps } from './data-versions.ts';
import { asOfRates, lacksRates, needsRates, type Rates, readRates, tickerIn } from './rates.ts';

/** Cache size for lists in other currencies, in tickers times currencies: each takes some 0.8 KB. */
const MAX_CONVERTED = 60_000;
/** `coin` is included because names and activity are the coin's. */
const TOPICS = ['ticker', 'coin', 'rate'];
/** A long list is read in pieces of this many rows, so that other requests are served in between. */
const PIECE = 1_000;

/** Every ticker, in dollars. */
type Listed = readonly Ticker[];

type Numbers = { readonly [name in TickerNumber]: number | null };

type TickerRow = CamelCased<Numbers> & {
  readonly id: string;
  readonly name: string;
  readonly symbol: string;
  readonly rank: number;
  readonly at: Instant;
  readonly updatedAt: Instant;
  readonly seenAt: Instant;
  readonly athAt: Instant | null;
  readonly firstDataAt: Instant | null;
  readonly answer: string | null;
};

export function createTickerViews({ sql, versions, noCoin }: ViewDeps): Pick<Candles<NotFound>, 'ticker' | 'tickers'> {
  const inDollars = createVersionedCache<Listed>({ versions, view: 'tickers', maxSize: 1 });
  const converted = createVersionedCache<readonly Ticker[]>({
    versions,
    view: 'tickers',
    maxSize: MAX_CONVERTED,
    sizeOf: (list) => list.length * Math.max(1, Object.keys(list[0]?.quotes ?? {}).length),
  });
  const allInDollars = () => inDollars(TOPICS, 'all', () => readTickers(sql));
  const singleFlight = pLimit(1);
  return {
    ticker: ({ coinId, quotes }) =>
      versions.readUnder(TOPICS, async () => {
        const ticker = await readTicker(sql, coinId, quotes);
        if (ticker !== null) return ticker;
        // The list of coins shows which coins are active. If an active coin has no ticker, the ticker was never received.
        const [active] = await sql`select from market.coin where id = ${coinId} and is_active`;
        return active === undefined ? noCoin() : notFound(NO_DATA);
      }),
    tickers: async ({ quotes, most = null }) => {
      if (quotes.length === 1 && quotes[0] === 'USD') return allInDollars();
      // Callers choose the currencies, and there are tens of thousands of lists in three of them. So each list is made from the list in dollars, it
      // is no longer than the caller's plan shows, and only one list is made at a time.
      const load = async () => {
        const all = await allInDollars();
        return convert(sql, quotes, all.slice(0, most ?? undefined), provenanceOf(all)?.asOf ?? null);
      };
      return converted(TOPICS, `${quotes} ${most ?? 'all'}`, () => singleFlight(load));
    },
  };
}

async function readTicker(sql: Sql, coinId: string, quotes: readonly string[]): Promise<Ticker | null> {
  const [row] = await sql<TickerRow[]>`
    select ${columns(sql)} from market.ticker t join market.coin c on c.id = t.coin_id
    where t.coin_id = ${coinId} and c.is_active`;
  if (row === undefined) return null;
  const rates = needsRates(quotes) ? await readRates(sql, quotes, [row.at]) : NO_RATES;
  const asOf = asOfRates(row.seenAt, quotes, [row.at], rates);
  const provenance = lacksRates(quotes, [row.at], rates) ? partialAsOf(asOf) : completeAsOf(asOf);
  return withProvenance(tickerIn(toTicker(row), quotes, row.at, rates), provenance);
}

async function readTickers(sql: Sql): Promise<Listed> {
  const query = sql<TickerRow[]>`
    select ${columns(sql)} from market.ticker t join market.coin c on c.id = t.coin_id
    where c.is_active and t.seen_at = (select max(seen_at) from market.ticker)
    order by t.position nulls last, nullif(t.rank, 0) nulls last, t.coin_id`;
  const list: Ticker[] = [];
  let asOf: Instant | null = null;
  for await (const rows of query.cursor(PIECE)) {
    for (const row of rows) {
      const ticker = toTicker(row);
      snapshotOf.set(ticker, row.at);
      list.push(ticker);
      asOf = Math.max(asOf ?? row.seenAt, row.seenAt);
    }
  }
  return withProvenance(list, completeAsOf(asOf));
}

/** The instant of the snapshot of a ticker in the list, as exactly as it is stored. */
const snapshotOf = new WeakMap<Ticker, Instant>();

async function convert(
  sql: Sql,
  quotes: readonly string[],
  list: readonly Ticker[],
  asOf: Instant | null,
): Promise<readonly Ticker[]> {
  const atOf = (ticker: Ticker) => snapshotOf.get(ticker)!;
  const snapshots = [...new Set(list.map(atOf))];
  const rates = needsRates(quotes) ? await readRates(sql, quotes, snapshots) : NO_RATES;
  const made = await mapInPieces(list, PIECE, (ticker) => tickerIn(ticker, quotes, atOf(ticker), rates));
  const rated = asOfRates(asOf, quotes, snapshots, rates);
  return withProvenance(made, lacksRates(quotes, snapshots, rates) ? partialAsOf(rated) : completeAsOf(rated));
}

const NO_RATES: Rates = () => null;

function columns(sql: Sql) {
  return sql`t.coin_id as id, c.name, c.symbol, t.rank, t.answer, ${sql(TICKER_NUMBERS.map((name) => `t.${name}`))},
    t.at, t.updated_at, t.seen_at, t.ath_at, c.first_data_at`;
}

const numbersOf = createRecordReader<Numbers>(TICKER_NUMBERS);

/** Writes a ticker as upstream does. `circulating_supply` is omitted if the plan does not show it. */
function toTicker(row: TickerRow): Ticker {
  if (row.answer !== null) return JSON.parse(row.answer) as Ticker;
  const numbers = numbersOf(row);
  const { circulating_supply, total_supply, max_supply, beta_value } = numbers;
  const written = {
    id: row.id,
    name: row.name,
    symbol: row.symbol,
    rank: row.rank,
    ...(circulating_supply === null ? {} : { circulating_supply }),
    total_supply,
    max_supply,
    beta_value,
    first_data_at: row.firstDataAt === null ? null : formatTime(row.firstDataAt),
    last_updated: formatTime(row.updatedAt),
    quotes: { USD: toQuote(numbers, row.athAt) },
  };
  return written as Ticker;
}

function toQuote(numbers: Numbers, athAt: Instant | null): Ticker['quotes'][string] {
  const quote: Record<string, number | string | null> = {};
  for (const key of TICKER_QUOTE_KEYS)
    quote[key] = key === 'ath_date' ? (athAt === null ? null : formatTime(athAt)) : numbers[key];
  return quote as Ticker['quotes'][string];
}
