/** Tickers as upstream answers them: those of the newest snapshot as a list, and the newest one of each active coin. */

import type { Instant } from '../../clock.ts';
import { type Absent, absent } from '../../contract/answer/not-found.ts';
import { basisOf, NOTHING, partAsOf, standingOn, wholeAsOf } from '../../contract/answer/provenance.ts';
import type { Candles } from '../../contract/record/market-data.ts';
import type { Ticker } from '../../contract/record/records.ts';
import { formatTime } from '../../contract/time.ts';
import { TICKER_NUMBERS, TICKER_QUOTE_KEYS, type TickerNumber } from '../../core/ticker.ts';
import { mapInPieces } from '../../core/yield-to-event-loop.ts';
import { type CamelCased, createRecordReader } from '../../store/connection/column-names.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createKeptByTopics, type Topics, type Versions } from './data-versions.ts';
import { readNoCoin } from './overview.ts';
import { lacksRates, needsRates, type Rates, readRates, tickerIn } from './rates.ts';

/** Of single tickers. */
const MOST_TICKERS = 10_000;
/** Of lists in other currencies, in tickers times currencies: with the text that is made of it each takes some 1.6 KB. */
const MOST_LISTED = 60_000;
/** Rows of a long list are taken in so many at a time, so that others are answered in between. */
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

export function createTickerViews({
  sql,
  versions,
}: {
  readonly sql: Sql;
  readonly versions: Versions;
}): Pick<Candles<Absent>, 'ticker' | 'tickers'> {
  const view = { versions, view: 'tickers', versionOf: tickerVersion };
  const one = createKeptByTopics<Ticker | Absent>({ ...view, most: MOST_TICKERS });
  const listed = createKeptByTopics<Listed>({ ...view, most: 1 });
  const inDollars = () => listed('all', () => readTickers(sql));
  const converted = createKeptByTopics<readonly Ticker[]>({
    ...view,
    most: MOST_LISTED,
    weigh: (list) => list.length * Math.max(1, Object.keys(list[0]?.quotes ?? {}).length),
  });
  const inTurn = createTurns();
  return {
    ticker: ({ coinId, quotes }) => one(`${coinId} ${quotes}`, () => readTicker(sql, coinId, quotes)),
    tickers: async ({ quotes, most = null }) => {
      if (quotes.length === 1 && quotes[0] === 'USD') return inDollars();
      // Callers choose the currencies, and of three there are tens of thousands of lists: no more of one is made than is shown, of
      // what is read already, and one after the other.
      const load = async () => {
        const all = await inDollars();
        return convert(sql, quotes, all.slice(0, most ?? undefined), basisOf(all)?.asOf ?? null);
      };
      return converted(`${quotes} ${most ?? 'all'}`, () => inTurn(load));
    },
  };
}

/** One after the other, in the order in which they are asked for. */
function createTurns() {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(work: () => Promise<T>): Promise<T> => {
    const mine = last.then(work, work);
    last = mine;
    return mine;
  };
}

/** Names and activity are the coin's. */
export function tickerVersion({ ticker, coin }: Topics): string {
  return `${ticker} ${coin}`;
}

async function readTicker(sql: Sql, coinId: string, quotes: readonly string[]): Promise<Ticker | Absent> {
  const [row] = await sql<TickerRow[]>`
    select ${columns(sql)} from market.ticker t join market.coin c on c.id = t.coin_id
    where t.coin_id = ${coinId} and c.is_active`;
  if (row === undefined) return readNoTicker(sql, coinId);
  const rates = needsRates(quotes) ? await readRates(sql, quotes, [row.at]) : NO_RATES;
  const basis = lacksRates(quotes, [row.at], rates) ? partAsOf(row.seenAt) : wholeAsOf(row.seenAt);
  return standingOn(tickerIn(toTicker(row), quotes, row.at, rates), basis);
}

/** The list of coins says which are active; of one that is, nobody has told the ticker. */
async function readNoTicker(sql: Sql, coinId: string): Promise<Absent> {
  const [row] = await sql`select from market.coin where id = ${coinId} and is_active`;
  return row === undefined ? readNoCoin(sql) : absent(NOTHING);
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
  return standingOn(list, wholeAsOf(asOf));
}

/** Of a ticker of the list: the instant of its snapshot, as exactly as it is stored. */
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
  return standingOn(made, lacksRates(quotes, snapshots, rates) ? partAsOf(asOf) : wholeAsOf(asOf));
}

const NO_RATES: Rates = () => null;

function columns(sql: Sql) {
  return sql`t.coin_id as id, c.name, c.symbol, t.rank, t.answer, ${sql(TICKER_NUMBERS.map((name) => `t.${name}`))},
    t.at, t.updated_at, t.seen_at, t.ath_at, c.first_data_at`;
}

const numbersOf = createRecordReader<Numbers>(TICKER_NUMBERS);

/** As upstream writes it; `circulating_supply` is left out where the plan does not show it. */
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
