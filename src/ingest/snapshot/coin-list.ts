/** Reads the list of coins: their ids and ranks, and when their data begins. It takes two requests, or one if the tickers are already stored. */
import { type Clock, type Instant, MOST_SKEW_MS } from '../../clock.ts';
import { COINS_PATH, TICKERS_PATH } from '../../contract/interface/paths.ts';
import { createBackoff } from '../../core/backoff.ts';
import { HOUR } from '../../core/interval.ts';
import { judgeLength, REQUEST_AGAIN_MS } from '../../core/second-opinion.ts';
import { pickTickers } from '../../core/ticker.ts';
import type { Spender } from '../../quota/quota.ts';
import { type QuarantinedRecord, quarantineRecords } from '../../store/candle/quarantine.ts';
import type { Sql, SqlOrTransaction } from '../../store/connection/connect.ts';
import { catalogueSeenAt, countListed, unknownCoins } from '../../store/snapshot/coin.ts';
import { hasStored } from '../../store/snapshot/snapshot.ts';
import { tickersSeenAt, writeTickers } from '../../store/snapshot/ticker.ts';
import { recordFetchOnce } from '../../store/work/fetch.ts';
import { absencesAwaitList, type ClaimId, dropClaim, recordAnswer } from '../../store/work/second-opinion.ts';
import type { Exchange } from '../../upstream/answer.ts';
import type { Validated } from '../answer/record-list.ts';
import { ConfigurationError, UpstreamError } from '../outcome.ts';
import { wrongAddress, wrongKey } from '../request/configuration-errors.ts';
import { createOriginCheck } from '../request/origin.ts';
import { type OutageRetry, withoutRetry } from '../request/outage-retry.ts';
import { readRefusedUntil } from '../request/refused-endpoint.ts';
import type { HeldRequest, SendRequest } from '../request/send-request.ts';
import { tickersKind, writeCoins } from './snapshot-kinds.ts';
import { LEAST_SHARE } from './snapshots.ts';
import { validateCoins } from './validate-snapshot.ts';
import { validateTickers } from './validate-tickers.ts';

/** Ranks change and coins appear: an older list is requested again before it is used. */
export const CATALOGUE_FRESH_MS = 24 * HOUR;
const ATTEMPTS = 5;
/** A command waits at most this long for the quota; a longer hold is reported to its user. */
const MOST_HELD_MS = 60_000;
const SCHEDULED: Spender = { class: 'scheduled', name: 'catalogue' };
/** Many processes may start together and read the list at the same time, so the backoff has jitter. */
const backoff = createBackoff({ firstMs: 2_000, mostMs: 16_000 });

export type CatalogueRefresh =
  | { readonly kind: 'fresh' }
  | { readonly kind: 'read'; readonly requests: number }
  | { readonly kind: 'held'; readonly until: number; readonly reason: string };

type CatalogueDeps = {
  readonly sendRequest: SendRequest;
  readonly sql: Sql;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Called after each failed attempt except the last: with an upstream that hangs, the attempts take minutes. */
  readonly onFailure?: (problem: string, attempt: number) => void;
  readonly random?: () => number;
  /** Default: scheduled work. */
  readonly spender?: Spender;
  /** Waits for a database that is unavailable. Default: an answer that cannot be stored is lost. */
  readonly retry?: OutageRetry;
};

/**
 * Reads `/coins` and `/tickers`, unless both were read less than `maxAgeMs` ago. If a schedule has read the tickers less than `tickersMaxAgeMs` ago,
 * it reads only `/coins`: the next tickers say when the data of a new coin begins.
 * @throws ConfigurationError when the key or the address is wrong, UpstreamError when the upstream gives no usable answer.
 */
export async function refreshCatalogue(
  deps: CatalogueDeps,
  maxAgeMs = CATALOGUE_FRESH_MS,
  tickersMaxAgeMs = 0,
): Promise<CatalogueRefresh> {
  const { sql, clock, retry = withoutRetry } = deps;
  if (isFresh(await catalogueSeenAt(sql), clock.now(), maxAgeMs)) return { kind: 'fresh' };
  const known = await countListed(sql);
  const tickersAt = tickersMaxAgeMs > 0 ? await tickersSeenAt(sql) : null;
  const isTickersFresh = isFresh(tickersAt, clock.now(), tickersMaxAgeMs);
  const tickers = isTickersFresh ? null : await readList(deps, TICKERS_PATH, 'tickers', validateTickers);
  if (tickers?.kind === 'held') return tickers;
  const coins = await readList(deps, COINS_PATH, 'coins', validateCoins, known);
  if (coins.kind === 'held') return coins;
  if (tickers !== null) await retry(() => tickersKind.prepare!(sql, tickers.asOf));
  // In one transaction: a list without its tickers would count as complete, and no series would be clipped to the beginning of its data.
  const write = async (tx: SqlOrTransaction) => {
    await writeCoins(tx, coins.value, coins.asOf);
    // The stored list is plausible, or the shorter list is now a fact.
    await dropClaim(tx, shortListOf(coins.accountId));
    if (tickers !== null) {
      const { coinId } = tickers.value;
      const unknown = new Set(await unknownCoins(tx, coinId));
      const ofListed = pickTickers(tickers.value, (i) => !unknown.has(coinId[i]!));
      await writeTickers(tx, ofListed, tickers.asOf);
    }
    for (const { endpoint, quarantined, fetchId, asOf } of tickers === null ? [coins] : [coins, tickers])
      await quarantineRecords(tx, endpoint, quarantined, { fetchId, seenAt: asOf });
  };
  await retry(() => sql.begin(write));
  return { kind: 'read', requests: coins.requests + (tickers?.requests ?? 0) };
}

/** Is it less than `maxAgeMs` old? An instant in the future was recorded before the clock was set back: then the age is unknown. */
function isFresh(seenAt: Instant | null, now: Instant, maxAgeMs: number): boolean {
  return seenAt !== null && now - seenAt >= -MOST_SKEW_MS && now - seenAt < maxAgeMs;
}

/**
 * Called before a run. If slots were missing in a first answer and the second one is due, this reads the list of coins again, unless the list was
 * read after the first answer. If the list cannot be read now, those slots stay unconfirmed.
 */
export async function refreshForAbsences(
  deps: CatalogueDeps,
): Promise<CatalogueRefresh | { readonly kind: 'failed'; readonly message: string }> {
  if (!(await absencesAwaitList(deps.sql, deps.clock.now()))) return { kind: 'fresh' };
  try {
    // The request is for the backfill, so it must not use the quota that is reserved for schedules.
    return await refreshCatalogue({ ...deps, spender: { class: 'backfill', name: 'catalogue' } }, 0);
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    return { kind: 'failed', message: error.message };
  }
}

/**
 * Why a list with `rows` rows is not believed yet, and when to request it again; null when it is believed. A list that is much shorter than the
 * stored one is believed when the next answer is as short and no cache repeated it.
 */
async function shortBecause(
  { sql, clock }: CatalogueDeps,
  { known, rows, accountId }: { readonly known: number; readonly rows: number; readonly accountId: string },
  { sentAt, ageMs }: Exchange,
): Promise<{ readonly problem: string; readonly retryAt: Instant } | null> {
  const least = Math.ceil(known * LEAST_SHARE);
  if (rows >= least) return null;
  const answer = { sentAt, ageMs, receivedAt: clock.now() };
  const { kind, claim } = await sql.begin((tx) =>
    recordAnswer(tx, shortListOf(accountId), answer, (before) => judgeLength(before?.evidence?.rows, rows)),
  );
  if (kind !== 'waiting') return null;
  return { problem: `${rows} coins, of which ${least} at least were expected`, retryAt: claim.retryAt };
}

function shortListOf(accountId: string): ClaimId {
  return { claim: 'short list', key: `${accountId} coins` };
}

type List<T> = {
  readonly kind: 'list';
  readonly endpoint: string;
  readonly value: T;
  readonly quarantined: readonly QuarantinedRecord[];
  readonly fetchId: number;
  readonly accountId: string;
  readonly asOf: Instant;
  readonly requests: number;
};

async function readList<T>(
  deps: CatalogueDeps,
  path: string,
  endpoint: string,
  validate: (body: unknown, latest: Instant) => Validated<T>,
  known = 0,
): Promise<List<T> | HeldRequest> {
  const { sendRequest, sql, clock, signal, onFailure } = deps;
  const { random = Math.random, spender = SCHEDULED, retry = withoutRetry } = deps;
  let requests = 0;
  let heldSince: Instant | null = null;
  for (let attempt = 1; ; ) {
    const sent = await sendRequest({ path }, { spender, record: { endpoint, attempt }, signal, retry });
    if (sent.kind === 'held') {
      // This loop waits for short holds (a 429, a burst of errors, the probe of another process); the caller reports long ones.
      heldSince ??= clock.now();
      if (sent.until - heldSince > MOST_HELD_MS) return sent;
      await clock.sleep(sent.until - clock.now(), signal);
      continue;
    }
    heldSince = null;
    requests += sent.requests;
    const { answer, record } = sent;
    let problem: string;
    let retryAt: Instant | null = null;
    if (answer.kind === 'answered') {
      // The instant is not checked: a backfill needs the list even if our clock is wrong.
      const list: Validated<T> = validate(answer.body, answer.exchange.latest);
      const rows = list.ok ? list.rows : 0;
      const { accountId } = record;
      const short =
        rows > 0 ? await retry(() => shortBecause(deps, { known, rows, accountId }, answer.exchange)) : null;
      if (list.ok && rows > 0 && short === null) {
        await createOriginCheck(sql)(answer.exchange, record, { retry });
        const { value, quarantined } = list;
        const counts = { rows, stored: rows - quarantined.length, quarantined: quarantined.length };
        const fetchId = await retry((again) =>
          recordFetchOnce(sql, { ...record, outcome: 'stored', ...counts }, again),
        );
        return { kind: 'list', endpoint, value, quarantined, fetchId, accountId, asOf: answer.exchange.asOf, requests };
      }
      retryAt = short?.retryAt ?? null;
      problem = short?.problem ?? (list.ok ? `${path} answered an empty list` : list.problem);
      const outcome = short === null ? 'malformed' : 'unconfirmed';
      await retry((again) => recordFetchOnce(sql, { ...record, outcome, rows, message: problem }, again));
    } else {
      problem = answer.message;
      if (answer.kind === 'refused' && answer.reason === 'forbidden')
        throw new ConfigurationError(wrongKey(problem, sent.keySent));
      // No plan limits the history of the list of coins. One such answer may be an accident; a second is not.
      const isStray = answer.kind === 'refused' && answer.reason === 'history limit' && attempt === 1;
      if (answer.kind === 'refused' && !isStray) throw new ConfigurationError(wrongAddress(`${path}: ${problem}`));
      if (answer.kind === 'malformed' && answer.astray && !(await hasStored(sql, record.accountId)))
        throw new ConfigurationError(wrongAddress(`${path}: ${problem}`));
      if (answer.kind === 'limited' && answer.by === 'quota') {
        // The ledger knows when the window ends, and sends nothing before.
        if (!sent.budgetLeft) continue;
        const until = await retry(() => readRefusedUntil(sql, { ...record, now: clock.now() }));
        return { kind: 'held', until, reason: 'quota exhausted' };
      }
    }
    // A command does not wait until a cache has dropped the short list: a later run requests it again.
    const isCached = retryAt !== null && retryAt - clock.now() > REQUEST_AGAIN_MS;
    if (isCached || attempt >= (sent.isRedirectLoop ? 2 : ATTEMPTS)) {
      const hint = 'check CHANDLER_BASE_URL and the network, or run the command again later';
      throw new UpstreamError(`the list of coins cannot be read (${path}): ${problem}; ${hint}`);
    }
    onFailure?.(`the list of coins could not be read (${path}): ${problem}`, attempt);
    // A cache would repeat a refusal until then.
    const waitMs = answer.kind === 'refused' ? REQUEST_AGAIN_MS : backoff(attempt - 1, random());
    await clock.sleep(retryAt === null ? waitMs : retryAt - clock.now(), signal);
    attempt++;
  }
}
