/** Requests another coin when one keeps failing, to learn whether only that coin is broken, or the upstream is down. */
import type { Clock, Instant } from '../../clock.ts';
import { ohlcvLatestPath, priceHistoryParameters, priceHistoryPath } from '../../contract/interface/paths.ts';
import { readOhlcvRows } from '../../contract/record/ohlcv.ts';
import { readPriceRows } from '../../contract/record/price.ts';
import { DAY, floorToGrid, type Interval, isPriceInterval } from '../../core/interval.ts';
import type { Spender } from '../../quota/quota.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { topCoins } from '../../store/snapshot/coin.ts';
import { recordFetchOnce } from '../../store/work/fetch.ts';
import { INTERRUPTED } from '../outcome.ts';
import { endpointOf } from '../queue/chunk-job.ts';
import { type OutageRetry, withoutRetry } from './outage-retry.ts';
import type { SendRequest, SentRequest } from './send-request.ts';

/** How the upstream answered the request for another coin. */
export type OtherAnswer =
  | { readonly kind: 'answered' | 'unanswered'; readonly requests: number }
  /** The quota allows no request until then. */
  | { readonly kind: 'held'; readonly until: Instant; readonly reason: string }
  /** No other coin is known. */
  | { readonly kind: 'no other' };

export type RequestOtherCoin = (
  about: {
    readonly coinId: string;
    /** The interval of the series that fails. */
    readonly interval: Interval;
    readonly spender: Spender;
    readonly backfillId: number | null;
    /** When the series last failed. An older answer proves nothing: a cache may have sent it. */
    readonly since: Instant;
  },
  options: { readonly signal?: AbortSignal; readonly retry?: OutageRetry },
) => Promise<OtherAnswer>;

/** Each request takes the next of so many coins, because one of them may be broken, too. */
const OTHERS = 3;

type RequestOtherCoinDeps = { readonly sql: Sql; readonly sendRequest: SendRequest; readonly clock: Clock };

/**
 * Requests the last full day of one of the largest coins: one candle, or one price. Every plan includes it. It does not request `/global`, nor
 * candles where prices fail: if the upstream fails on the prices of all coins and answers everything else, no single coin is the cause.
 */
export function createRequestOtherCoin({ sql, sendRequest, clock }: RequestOtherCoinDeps): RequestOtherCoin {
  let turn = 0;
  return async ({ coinId, interval, spender, backfillId, since }, { signal, retry = withoutRetry }) => {
    const largest = await retry(() => topCoins(sql, OTHERS + 1));
    const others = largest.filter(({ id }) => id !== coinId).slice(0, OTHERS);
    const other = others[turn++ % OTHERS] ?? others[0];
    if (other === undefined) return { kind: 'no other' };
    const held = (reason: string): OtherAnswer => ({ kind: 'held', until: clock.now(), reason });
    const question = isPriceInterval(interval) ? priceOf(other.id, clock.now()) : dayOf(other.id);
    const sent = await sendRequest(question, {
      spender,
      record: { endpoint: endpointOf(interval), subject: other.id, backfillId },
      signal,
      retry,
    }).catch((error: unknown) => {
      if (signal?.aborted) return held(INTERRUPTED);
      throw error;
    });
    if (!('answer' in sent)) return sent;
    const { answer, budgetLeft, requests } = sent;
    const { sentAt, ageMs } = answer.exchange;
    // The ledger makes all requests wait; the next permit request returns until when.
    if (answer.kind === 'limited' && !budgetLeft) return held(answer.by === 'rate' ? 'limited' : 'quota exhausted');
    const isNew = sentAt - ageMs >= since;
    return { kind: (await isAnswered(sql, sent, interval, retry)) && isNew ? 'answered' : 'unanswered', requests };
  };
}

const dayOf = (coinId: string) => ({ path: ohlcvLatestPath(coinId), query: { quote: 'usd' } });

function priceOf(coinId: string, now: Instant) {
  const to = floorToGrid(now, 'prices-1d');
  const span = { from: to - DAY, to, interval: 'prices-1d', quote: 'usd' } as const;
  return { path: priceHistoryPath(coinId), query: priceHistoryParameters(span) };
}

/**
 * A refusal is an answer as well, and so is a 402 because of the plan. This function records an `answered` answer; the others are already recorded.
 */
async function isAnswered(
  sql: Sql,
  { answer, record }: SentRequest,
  interval: Interval,
  retry: OutageRetry,
): Promise<boolean> {
  if (answer.kind === 'refused') return answer.reason !== 'unknown route';
  if (answer.kind !== 'answered') return answer.kind === 'limited';
  const read = isPriceInterval(interval) ? readPriceRows(answer.body) : readOhlcvRows(answer.body);
  const seen = read.ok
    ? { outcome: 'stored', rows: read.rows.length }
    : { outcome: 'malformed', message: read.problem };
  await retry((again) => recordFetchOnce(sql, { ...record, ...seen }, again));
  return read.ok;
}
