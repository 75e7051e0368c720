/**
 * Reads exchange rates: the ticker of bitcoin in all currencies that the upstream knows, three per request. A rate is the price in dollars divided by
 * the price in the currency. Both prices must be of one update of the upstream, or bitcoin would have moved between them.
 */
import { type Clock, type Instant, MOST_SKEW_MS } from '../../clock.ts';
import { TICKERS_PATH } from '../../contract/interface/paths.ts';
import { FIATS } from '../../contract/record/fiats.ts';
import { readRecord, type TickerQuote, tickerSchema } from '../../contract/record/records.ts';
import { parseTime } from '../../contract/time.ts';
import { RATE_CHANGES } from '../../core/ticker.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type RateFacts, writeRates } from '../../store/snapshot/rate.ts';
import { storeSnapshot } from '../../store/snapshot/snapshot.ts';
import { recordFetchOnce } from '../../store/work/fetch.ts';
import { UpstreamError } from '../outcome.ts';
import { createOriginCheck, type OriginCheck } from '../request/origin.ts';
import type { OutageRetry } from '../request/outage-retry.ts';
import type { SendRequest, SentRequest } from '../request/send-request.ts';
import { endRefusedRecently, endUnanswered, type RunOutcome } from '../schedule-run.ts';

const COIN = 'btc-bitcoin';
const PATH = `${TICKERS_PATH}/${COIN}`;
const ENDPOINT = 'rates';
/** The largest number of quotes in one request (upstream-api.md, 1.4). */
const QUOTES_PER_REQUEST = 3;
const CURRENCIES = FIATS.map(({ symbol }) => symbol).filter((symbol) => symbol !== 'USD');
/** Requests of a run. Each has three currencies; the dollar is one of those in the first request. */
export const REQUESTS_OF_RATES = Math.ceil((CURRENCIES.length + 1) / QUOTES_PER_REQUEST);
/** The upstream may update its prices a few times during a run: each update costs one more request, with the dollar. */
const MOST_REQUESTS = REQUESTS_OF_RATES + 6;

type Dollars = { readonly updatedAt: Instant; readonly quote: TickerQuote };

type RatesDeps = {
  readonly sendRequest: SendRequest;
  readonly sql: Sql;
  readonly clock: Clock;
  readonly accountId: string;
  readonly signal: AbortSignal;
  /** Waits for a database that is unavailable. */
  readonly retry: OutageRetry;
};

/** @throws UpstreamError, ConfigurationError */
export async function readRates(deps: RatesDeps): Promise<RunOutcome> {
  const { sql, retry, accountId } = deps;
  const refused = await endRefusedRecently(PATH, { ...deps, record: { endpoint: ENDPOINT, accountId } });
  if (refused !== null) return refused;
  const checkOrigin = createOriginCheck(sql);
  let left: readonly string[] = CURRENCIES;
  let dollars: Dollars | null = null;
  for (let requests = 1; left.length > 0 && requests <= MOST_REQUESTS; requests++) {
    const requested = left.slice(0, QUOTES_PER_REQUEST - (dollars === null ? 1 : 0));
    const read = await readTicker({ ...deps, checkOrigin }, [...(dollars === null ? ['USD'] : []), ...requested]);
    if (read.kind !== 'read') return read;
    const { updatedAt, quotes, asOf, record } = read;
    if (quotes.USD !== undefined) dollars = { updatedAt, quote: quotes.USD };
    // The upstream has updated its prices. The next request asks for the dollar again, and for these currencies again.
    const isSame = dollars !== null && dollars.updatedAt === updatedAt;
    const rates = isSame ? requested.flatMap((currency) => rateOf(currency, dollars!, quotes[currency]) ?? []) : [];
    await retry((again) => storeSnapshot(sql, { ...record, rows: 1 }, [], (tx) => writeRates(tx, rates, asOf), again));
    if (isSame) left = left.slice(requested.length);
    else dollars = null;
  }
  return { kind: 'done' };
}

type TickerRead = {
  readonly kind: 'read';
  readonly updatedAt: Instant;
  readonly quotes: Readonly<Record<string, TickerQuote>>;
  readonly asOf: Instant;
  readonly record: SentRequest['record'];
};

async function readTicker(
  { sendRequest, sql, clock, signal, retry, checkOrigin }: RatesDeps & { readonly checkOrigin: OriginCheck },
  quotes: readonly string[],
): Promise<TickerRead | RunOutcome> {
  const sent = await sendRequest(
    { path: PATH, query: { quotes: quotes.join(',') } },
    { spender: { class: 'scheduled', name: ENDPOINT }, record: { endpoint: ENDPOINT }, signal, retry },
  );
  if (sent.kind === 'held') return sent;
  const { answer, record } = sent;
  if (answer.kind !== 'answered') return endUnanswered(PATH, answer, { sql, clock, retry, record });
  const { exchange } = answer;
  const read = readRecord(tickerSchema, answer.body);
  const updatedAt = read.ok ? parseTime(read.value.last_updated ?? '') : Number.NaN;
  const problem = read.ok ? problemOf(read.value.id, updatedAt, exchange.latest) : read.problem;
  if (!read.ok || problem !== null) {
    await retry((again) => recordFetchOnce(sql, { ...record, outcome: 'malformed', message: problem }, again));
    throw new UpstreamError(`${PATH}: ${problem}`, problem ?? undefined);
  }
  await checkOrigin(exchange, record, { retry });
  return { kind: 'read', updatedAt, quotes: read.value.quotes, asOf: exchange.asOf, record };
}

function problemOf(id: string, updatedAt: Instant, latest: Instant): string | null {
  if (id !== COIN) return `expected the ticker of ${COIN}, got that of ${id}`;
  if (Number.isNaN(updatedAt)) return 'last_updated is not a time';
  return updatedAt > latest + MOST_SKEW_MS ? 'last_updated lies in the future' : null;
}

/** Null when the upstream has no price in this currency. */
function rateOf(currency: string, { updatedAt, quote: usd }: Dollars, of: TickerQuote | undefined): RateFacts | null {
  const [dollars, price] = [usd.price, of?.price];
  if (typeof dollars !== 'number' || typeof price !== 'number' || !(dollars > 0) || !(price > 0)) return null;
  const rate = dollars / price;
  if (!Number.isFinite(rate) || rate === 0) return null;
  const changes = RATE_CHANGES.map((name) => [name, changeOf(usd[name], of![name])]);
  return { currency, updatedAt, price: rate, changes: Object.fromEntries(changes) as RateFacts['changes'] };
}

/** The change of the currency against the dollar: the change of bitcoin in dollars, divided by its change in the currency. All in percent. */
function changeOf(inDollars: unknown, inCurrency: unknown): number | null {
  if (typeof inDollars !== 'number' || typeof inCurrency !== 'number' || inCurrency <= -100) return null;
  return ((1 + inDollars / 100) / (1 + inCurrency / 100) - 1) * 100;
}
