/** Validates the smaller answers: the list of coins, the exchanges, the whole market. Pure. */
import type { Instant } from '../../clock.ts';
import {
  type CoinSummary,
  coinSummarySchema,
  type Exchange,
  exchangeSchema,
  globalSchema,
  readRecord,
} from '../../contract/record/records.ts';
import { parseTime } from '../../contract/time.ts';
import { EXCHANGE_VOLUMES } from '../../core/exchange.ts';
import { DAY } from '../../core/interval.ts';
import { isImpossible } from '../../core/possible-candle.ts';
import type { ListedCoin } from '../../store/snapshot/coin.ts';
import { type ExchangeFacts, exchangeRecord } from '../../store/snapshot/exchange.ts';
import { type GlobalFacts, globalRecord } from '../../store/snapshot/global-history.ts';
import { fromJsonb } from '../../store/values/storable-text.ts';
import type { Exchange as Exchanged } from '../../upstream/answer.ts';
import { isCanonicalCoin, originalJson } from '../answer/canonical-row.ts';
import { isWhole, ROUNDED_MS, type Validated, validateList, withoutValue } from '../answer/record-list.ts';

/** A clock that is wrong by a day must not stop the snapshots. */
const MOST_DAYS_OFF = 2;

/** Why the instant of an answer cannot be right; null when it can. A snapshot with a wrong instant would be stored where no reader looks for it. */
export function findWrongInstant({ asOf, sentAt, ageMs }: Pick<Exchanged, 'asOf' | 'sentAt' | 'ageMs'>): string | null {
  // A longer Age is capped at a day (upstream/answer-time.ts), so the real age of the answer is unknown.
  if (ageMs >= DAY) return 'the answer says that a cache has kept it for a day or longer';
  return asOf < sentAt - MOST_DAYS_OFF * DAY ? `the answer says that it is of ${new Date(asOf).toISOString()}` : null;
}

export function validateCoins(body: unknown): Validated<readonly ListedCoin[]> {
  const fault = ({ rank }: CoinSummary) => (isWhole(rank) ? null : 'rank: expected a whole number from 0');
  return validateList(coinSummarySchema, body, fault, (coin, row, position) => {
    return { ...coin, position, answer: isCanonicalCoin(row) ? null : JSON.stringify(row) };
  });
}

export function validateExchanges(body: unknown, latest: Instant): Validated<readonly ExchangeFacts[]> {
  const fault = (exchange: Exchange) => faultOf(exchange, latest + ROUNDED_MS);
  return validateList(exchangeSchema, body, fault, (exchange, row, position) => {
    const facts = toFacts(exchange);
    return { ...facts, position, answer: originalJson(row, exchangeRecord(asStored(facts))) };
  });
}

function faultOf(exchange: Exchange, latest: Instant): string | null {
  for (const name of ['adjusted_rank', 'reported_rank', 'currencies', 'markets'] as const) {
    if (!isWhole(exchange[name])) return `${name}: expected a whole number from 0`;
  }
  const negative = EXCHANGE_VOLUMES.find((name) => isImpossible(exchange.quotes.USD?.[name] ?? null));
  if (negative !== undefined) return `quotes.USD.${negative} is negative or not finite`;
  return futureOf('last_updated', instantOf(exchange.last_updated), latest);
}

function toFacts(exchange: Exchange): Omit<ExchangeFacts, 'position' | 'answer'> {
  const usd = exchange.quotes.USD;
  const volumes = Object.fromEntries(EXCHANGE_VOLUMES.map((name) => [name, usd?.[name] ?? null]));
  const { id, name, description, message, links, fiats, adjusted_rank, reported_rank, currencies, markets } = exchange;
  return {
    id,
    name,
    types: exchange.type,
    description,
    message,
    links,
    fiats,
    updatedAt: instantOf(exchange.last_updated),
    flags: {
      is_active: exchange.active,
      website_status: exchange.website_status,
      api_status: exchange.api_status,
      markets_data_fetched: exchange.markets_data_fetched,
    },
    whole: { adjusted_rank, reported_rank, currencies, markets },
    volumes: volumes as ExchangeFacts['volumes'],
  };
}

/** The links are stored as jsonb, which has its own order of keys. */
function asStored<T extends Pick<ExchangeFacts, 'links'>>(facts: T): T {
  return { ...facts, links: fromJsonb(facts.links) };
}

/** The answer is one record: if it is impossible, the whole record is quarantined, and the value is null. */
export function validateGlobal(body: unknown, latest: Instant): Validated<GlobalFacts | null> {
  const read = readRecord(globalSchema, body);
  const quarantined = (reason: string) =>
    ({ ok: true, value: null, rows: 1, quarantined: [{ id: '', reason, row: body }] }) as const;
  if (!read.ok)
    return Array.isArray(body) || read.problem.startsWith('body') ? read : quarantined(withoutValue(read.problem));
  const g = read.value;
  if (g.market_cap_usd === null && g.volume_24h_usd === null)
    return { ok: false, problem: 'neither market_cap_usd nor volume_24h_usd is there' };
  for (const name of [
    'market_cap_usd',
    'volume_24h_usd',
    'bitcoin_dominance_percentage',
    'market_cap_ath_value',
    'volume_24h_ath_value',
  ] as const) {
    if (isImpossible(g[name])) return quarantined(`${name} is negative or not finite`);
  }
  if (!isWhole(g.cryptocurrencies_number))
    return quarantined('cryptocurrencies_number: expected a whole number from 0');
  if ((g.bitcoin_dominance_percentage ?? 0) > 100) return quarantined('bitcoin_dominance_percentage is above 100');
  const updatedAt = g.last_updated === null ? null : g.last_updated * 1000;
  const [marketCapAthAt, volume24hAthAt] = [instantOf(g.market_cap_ath_date), instantOf(g.volume_24h_ath_date)];
  const future =
    futureOf('last_updated', updatedAt, latest + ROUNDED_MS) ??
    futureOf('market_cap_ath_date', marketCapAthAt, latest + ROUNDED_MS) ??
    futureOf('volume_24h_ath_date', volume24hAthAt, latest + ROUNDED_MS);
  if (future !== null) return quarantined(future);
  const facts: Omit<GlobalFacts, 'answer'> = {
    updatedAt,
    marketCap: g.market_cap_usd,
    volume24h: g.volume_24h_usd,
    bitcoinDominance: g.bitcoin_dominance_percentage,
    coins: g.cryptocurrencies_number,
    marketCapChange24h: finite(g.market_cap_change_24h),
    volume24hChange24h: finite(g.volume_24h_change_24h),
    marketCapAth: g.market_cap_ath_value,
    marketCapAthAt,
    volume24hAth: g.volume_24h_ath_value,
    volume24hAthAt,
    volume24hPercentFromAth: finite(g.volume_24h_percent_from_ath),
    volume24hPercentToAth: finite(g.volume_24h_percent_to_ath),
  };
  const value: GlobalFacts = { ...facts, answer: originalJson(body, globalRecord(facts)) };
  return { ok: true, value, rows: 1, quarantined: [] };
}

function futureOf(name: string, at: Instant | null, latest: Instant): string | null {
  if (Number.isNaN(at)) return `${name}: expected RFC 3339 time`;
  if (at !== null && at < 0) return `${name} lies before 1970`;
  return at !== null && at > latest ? `${name} lies in the future` : null;
}

function instantOf(text: string | null): Instant | null {
  return text === null ? null : parseTime(text);
}

/** `1e999` is valid JSON, but not a percentage. */
function finite(value: number | null): number | null {
  return value !== null && Number.isFinite(value) ? value : null;
}
