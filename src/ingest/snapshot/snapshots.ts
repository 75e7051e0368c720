/**
 * One snapshot = one request = one unit of quota = one transaction: tickers, the market as a whole, the list of coins, exchanges.
 * It may be run again at any time, by any number of processes: of two answers the younger one stays.
 */
import type { Clock, Instant } from '../../clock.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { DAY } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type Asking, hasStored, lastAsked, lastStoredRows, storeSnapshot } from '../../store/snapshot/snapshot.ts';
import { findFetch, recordFetchOnce } from '../../store/work/fetch.ts';
import type { Answer } from '../../upstream/answer.ts';
import type { Validated } from '../answer/record-list.ts';
import { ASK_AGAIN_MS } from '../answer/second-opinion.ts';
import { ConfigurationError, INTERRUPTED, UpstreamError } from '../outcome.ts';
import { wrongAddress, wrongKey } from '../request/configuration-errors.ts';
import { createOriginCheck, type OriginCheck } from '../request/origin.ts';
import { type OutageRetry, withoutRetry } from '../request/outage-retry.ts';
import type { SendRequest, SentRequest } from '../request/send-request.ts';
import {
  coinsKind,
  exchangesKind,
  globalKind,
  NOTHING_TOLD,
  type SnapshotKind,
  type SnapshotName,
  type SnapshotTold,
  tickersKind,
} from './snapshot-kinds.ts';
import { misdate } from './validate-snapshot.ts';

/** How an attempt at a snapshot can end. Anything else is an exception: UpstreamError may be tried again, ConfigurationError not. */
export type SnapshotOutcome =
  /** The answer is in the database. `requests` is 0 when one that is new enough was there before. */
  | {
      readonly kind: 'stored';
      readonly requests: number;
      /** In the answer. */
      readonly rows: number;
      readonly stored: number;
      readonly setAside: number;
      readonly told: SnapshotTold;
    }
  /** Not now: nothing was sent. */
  | { readonly kind: 'snoozed'; readonly until: Instant; readonly reason: string }
  /** What was answered is doubted: nothing of it is stored, and asking again is worth a request from then on. */
  | { readonly kind: 'deferred'; readonly until: Instant; readonly requests: number; readonly reason: string }
  /** Upstream will not give us this. Until then it is not asked, whoever wants it. */
  | { readonly kind: 'refused'; readonly until: Instant; readonly requests: number; readonly message: string };

export type SnapshotOptions = {
  /** An answer that was asked for at this instant or later will do: a tick that is run twice costs one request. */
  readonly since?: Instant;
  readonly attempt?: number;
  /** Ends the wait for a turn, never a request that is under way. */
  readonly signal?: AbortSignal;
  /** For a database that is away. */
  readonly retry?: OutageRetry;
};

export type Snapshot = (options?: SnapshotOptions) => Promise<SnapshotOutcome>;

export type SnapshotDeps = {
  readonly sql: Sql;
  readonly sendRequest: SendRequest;
  readonly clock: Clock;
  readonly accountId: string;
};

export function createSnapshots(deps: SnapshotDeps): Readonly<Record<SnapshotName, Snapshot>> {
  const checkOrigin = createOriginCheck(deps.sql);
  const of =
    <T>(name: SnapshotName, kind: SnapshotKind<T>): Snapshot =>
    (options = {}) =>
      takeSnapshot({ ...deps, checkOrigin, name, kind }, { retry: withoutRetry, attempt: 1, ...options });
  return {
    tickers: of('tickers', tickersKind),
    global: of('global', globalKind),
    coins: of('coins', coinsKind),
    exchanges: of('exchanges', exchangesKind),
  };
}

type Taking<T> = SnapshotDeps & {
  readonly checkOrigin: OriginCheck;
  readonly name: SnapshotName;
  readonly kind: SnapshotKind<T>;
};
type Run = SnapshotOptions & { readonly retry: OutageRetry; readonly attempt: number };

/** Of the past of an endpoint, as much as the waiting after refusals goes by. */
const LOOK_BACK = 12;
const LOOK_AGAIN_MS = 60_000;

async function takeSnapshot<T>(taking: Taking<T>, run: Run): Promise<SnapshotOutcome> {
  const { sql, clock, sendRequest, accountId, name, kind } = taking;
  const { retry, signal, since } = run;
  const past = await retry(() => lastAsked(sql, { endpoint: name, accountId, limit: LOOK_BACK, now: clock.now() }));
  if (since !== undefined && past.some((asking) => asking.outcome === 'stored' && asking.sentAt >= since)) return THERE;
  const until = refusedUntil(past, clock.now());
  if (until > clock.now()) return { kind: 'refused', until, requests: 0, message: `${kind.path} was refused lately` };
  const notYet = await retry(async () => kind.notYet?.(sql) ?? null);
  if (notYet !== null) return { kind: 'snoozed', until: clock.now() + LOOK_AGAIN_MS, reason: notYet };
  const asked = await sendRequest(
    { path: kind.path },
    {
      spender: { class: 'scheduled', name },
      record: { endpoint: name, attempt: run.attempt },
      signal,
      retry,
    },
  ).catch((error: unknown) => {
    if (signal?.aborted) return { kind: 'held', until: clock.now(), reason: INTERRUPTED } as const;
    throw error;
  });
  if (asked.kind === 'held') return { kind: 'snoozed', until: asked.until, reason: asked.reason };
  if (asked.answer.kind !== 'answered') return unanswered(taking, run, past, asked, asked.answer);
  const { record, requests } = asked;
  // From here on nothing holds the body any more: it may be tens of megabytes.
  return settle(
    taking,
    run,
    past,
    { record, requests, exchange: asked.answer.exchange },
    await check(taking, run, asked.answer),
  );
}

const THERE: SnapshotOutcome = { kind: 'stored', requests: 0, rows: 0, stored: 0, setAside: 0, told: NOTHING_TOLD };

type Answered = Extract<Answer, { kind: 'answered' }>;

async function check<T>({ sql, kind }: Taking<T>, { retry }: Run, { body, exchange }: Answered): Promise<Validated<T>> {
  const problem = misdate(exchange);
  if (problem !== null) return { ok: false, problem };
  const validated = await retry(() => kind.check(sql, body, exchange));
  if (validated.ok && validated.rows === 0) return { ok: false, problem: `${kind.path} answered an empty list` };
  return validated;
}

async function settle<T>(
  taking: Taking<T>,
  { retry }: Run,
  past: readonly Asking[],
  { record, requests, exchange }: Pick<SentRequest, 'record' | 'requests'> & Pick<Answered, 'exchange'>,
  validated: Validated<T>,
): Promise<SnapshotOutcome> {
  const { sql, clock, kind, name, checkOrigin } = taking;
  const keep = (outcome: string, rows: number, message: string) =>
    retry((again) => recordFetchOnce(sql, { ...record, outcome, rows, message }, again));
  if (!validated.ok) {
    await keep('malformed', 0, validated.problem);
    throw new UpstreamError(`${name}: the answer cannot be used: ${validated.problem}`);
  }
  const { rows, setAside, value } = validated;
  const doubt = await retry(() => doubtOf(taking, past, { rows, sentAt: exchange.sentAt }));
  if (doubt !== null) {
    await keep('doubted', rows, doubt);
    return { kind: 'deferred', until: clock.now() + ASK_AGAIN_MS, requests, reason: doubt };
  }
  await retry(() => checkOrigin(exchange)).catch(async (error: Error) => {
    if (error instanceof ConfigurationError) await keep('malformed', rows, error.message);
    throw error;
  });
  const at = exchange.asOf;
  await retry(async () => kind.prepare?.(sql, at));
  const commit = await retry(async (again) => {
    // Cut off while it was committed, it may be stored already.
    const found = again ? await findFetch(sql, record) : null;
    if (found !== null) return { ...found, told: NOTHING_TOLD };
    return storeSnapshot(sql, { ...record, rows }, setAside, (tx) => kind.write(tx, value, at));
  });
  return { kind: 'stored', requests, rows, stored: commit.stored, setAside: commit.setAside, told: commit.told };
}

/** A list much shorter than the one before it is a broken one. */
export const LEAST_SHARE = 0.9;

/**
 * Why a list is not believed; null when it is. One that is much shorter than the last one is believed when the answer before it,
 * which no cache has repeated, was as short: then it is the plan that has changed, or upstream.
 */
async function doubtOf<T>(
  { sql, accountId, name, kind }: Taking<T>,
  past: readonly Asking[],
  { rows, sentAt }: Pick<Asking, 'rows' | 'sentAt'>,
): Promise<string | null> {
  const known = (await lastStoredRows(sql, { endpoint: name, accountId })) ?? (await kind.knownRows?.(sql)) ?? 0;
  const least = Math.ceil(known * LEAST_SHARE);
  if (rows >= least) return null;
  const before = past[0];
  const agrees =
    before?.outcome === 'doubted' &&
    sentAt - before.sentAt >= ASK_AGAIN_MS &&
    Math.abs(rows - before.rows) <= before.rows * (1 - LEAST_SHARE);
  return agrees ? null : `${rows} rows, of which ${least} at least were expected`;
}

const REFUSALS: ReadonlySet<string> = new Set(['wall', 'forbidden', 'unknown id', 'unknown route', 'bad request']);
const backoff = createBackoff({ firstMs: 60_000, mostMs: DAY, factor: 4 });

/** After a refusal a schedule waits for a minute, then four, sixteen …, at most a day, so that it spends no quota on refusals. */
function refusedUntil(past: readonly Asking[], now: Instant): Instant {
  const answered = past.findIndex((asking) => !REFUSALS.has(asking.outcome));
  const inARow = answered === -1 ? past.length : answered;
  if (inARow === 0) return now;
  // A clock that was set back must not stretch the wait.
  return Math.min(past[0]!.sentAt, now) + backoff(inARow - 1, WHOLE_BOUND);
}

/** Recorded already; what it means for whoever asked. */
async function unanswered<T>(
  { sql, clock, accountId, kind, name }: Taking<T>,
  { retry }: Run,
  past: readonly Asking[],
  { requests, budgetLeft, keySent }: SentRequest,
  answer: Exclude<Answer, { kind: 'moved' | 'answered' }>,
): Promise<SnapshotOutcome> {
  const { message } = answer;
  // Before anything was ever answered it may be the key, or the address.
  const proven = () => retry(() => hasStored(sql, accountId));
  switch (answer.kind) {
    case 'limited':
      if (budgetLeft) return { kind: 'deferred', until: clock.now() + ASK_AGAIN_MS, requests, reason: message };
      // The ledger makes everybody wait; the next take says until when.
      return { kind: 'snoozed', until: clock.now(), reason: answer.by === 'pace' ? 'limited' : 'spent' };
    case 'refused': {
      if (answer.reason === 'forbidden' && !(await proven())) throw new ConfigurationError(wrongKey(message, keySent));
      if (answer.reason === 'unknown route' && !(await proven()))
        throw new ConfigurationError(wrongAddress(`${kind.path}: ${message}`));
      const asking = { sentAt: answer.exchange.sentAt, outcome: answer.reason, rows: 0 };
      return { kind: 'refused', until: refusedUntil([asking, ...past], clock.now()), requests, message };
    }
    case 'malformed':
      if (answer.astray && !(await proven())) throw new ConfigurationError(wrongAddress(`${kind.path}: ${message}`));
      throw new UpstreamError(`${name}: ${message}`);
    case 'unavailable':
      throw new UpstreamError(`${name}: ${message}`);
  }
}
