/**
 * Takes snapshots of the tickers, the whole market and the exchanges. One snapshot = one request = one unit of quota = one
 * transaction. Any process may take one at any time: of two answers, the database keeps the newer one.
 */
import type { Clock, Instant } from '../../clock.ts';
import { judgeLength } from '../../core/second-opinion.ts';
import type { Sql, SqlOrTransaction } from '../../store/connection/connect.ts';
import {
  hasStored,
  lastStoredRows,
  type PastRequest,
  recentRequests,
  storeSnapshot,
} from '../../store/snapshot/snapshot.ts';
import { recordFetchOnce } from '../../store/work/fetch.ts';
import { type ClaimId, dropClaim, recordAnswer } from '../../store/work/second-opinion.ts';
import type { Answer } from '../../upstream/answer.ts';
import type { Validated } from '../answer/record-list.ts';
import { ConfigurationError, INTERRUPTED, UpstreamError } from '../outcome.ts';
import { wrongAddress, wrongKey } from '../request/configuration-errors.ts';
import { createOriginCheck, type OriginCheck } from '../request/origin.ts';
import { type OutageRetry, withoutRetry } from '../request/outage-retry.ts';
import { LOOK_BACK, refusedUntil } from '../request/refused-endpoint.ts';
import type { SendRequest, SentRequest } from '../request/send-request.ts';
import type { Run } from '../schedule-run.ts';
import { exchangesKind, globalKind, type SnapshotKind, type SnapshotName, tickersKind } from './snapshot-kinds.ts';
import { findWrongInstant } from './validate-snapshot.ts';

/** How an attempt at a snapshot can end. Other errors are thrown: UpstreamError may be retried, ConfigurationError may not. */
export type SnapshotOutcome =
  /** The answer is in the database. `requests` is 0 when a recent one was already there. */
  | {
      readonly kind: 'stored';
      readonly requests: number;
      /** Rows of the answer. */
      readonly rows: number;
      readonly stored: number;
      readonly quarantined: number;
    }
  /** Not now. No request was sent. */
  | { readonly kind: 'snoozed'; readonly until: Instant; readonly reason: string }
  /** The answer is implausible and needs a second one: nothing of it is stored, and the next request is sent no earlier than `until`. */
  | { readonly kind: 'deferred'; readonly until: Instant; readonly requests: number; readonly reason: string }
  /** The upstream refuses this. No process requests it before `until`. */
  | { readonly kind: 'refused'; readonly until: Instant; readonly requests: number; readonly message: string };

type SnapshotOptions = {
  /** A stored answer to a request of this instant or later is recent enough: a tick that runs twice costs one request. */
  readonly since?: Instant;
  readonly attempt?: number;
  /** Ends the wait for a permit, never a request that was already sent. */
  readonly signal?: AbortSignal;
  /** Waits for a database that is unavailable. */
  readonly retry?: OutageRetry;
};

type Snapshot = (options?: SnapshotOptions) => Promise<SnapshotOutcome>;

type SnapshotDeps = {
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
    exchanges: of('exchanges', exchangesKind),
  };
}

/** A snapshot that was taken after the tick is recent enough. A refused or implausible one waits, as if the quota held it. */
export function snapshotRun(snapshot: Snapshot): Run {
  return async ({ tick, attempt, signal, retry }) => {
    const outcome = await snapshot({ since: tick, attempt, signal, retry });
    switch (outcome.kind) {
      case 'stored':
        return { kind: 'done' };
      case 'snoozed':
      case 'deferred':
        return { kind: 'held', until: outcome.until, reason: outcome.reason };
      case 'refused':
        return { kind: 'held', until: outcome.until, reason: outcome.message };
    }
  };
}

type Taking<T> = SnapshotDeps & {
  readonly checkOrigin: OriginCheck;
  readonly name: SnapshotName;
  readonly kind: SnapshotKind<T>;
};
type Attempt = SnapshotOptions & { readonly retry: OutageRetry; readonly attempt: number };

const LOOK_AGAIN_MS = 60_000;

async function takeSnapshot<T>(taking: Taking<T>, run: Attempt): Promise<SnapshotOutcome> {
  const { sql, clock, sendRequest, accountId, name, kind } = taking;
  const { retry, signal, since } = run;
  const past = await retry(() =>
    recentRequests(sql, { endpoint: name, accountId, limit: LOOK_BACK, now: clock.now() }),
  );
  if (since !== undefined && past.some((asking) => asking.outcome === 'stored' && asking.sentAt >= since))
    return RECENT;
  const until = refusedUntil(past, clock.now());
  if (until > clock.now()) return { kind: 'refused', until, requests: 0, message: `${kind.path} was refused recently` };
  const notYet = await retry(async () => kind.notYet?.(sql) ?? null);
  if (notYet !== null) return { kind: 'snoozed', until: clock.now() + LOOK_AGAIN_MS, reason: notYet };
  const sent = await sendRequest(
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
  if (sent.kind === 'held') return { kind: 'snoozed', until: sent.until, reason: sent.reason };
  if (sent.answer.kind !== 'answered') return unanswered(taking, run, past, sent, sent.answer);
  const { record, requests } = sent;
  // From here on nothing references the body, which may be tens of megabytes long.
  return settle(
    taking,
    run,
    past,
    { record, requests, exchange: sent.answer.exchange },
    await check(taking, run, sent.answer),
  );
}

const RECENT: SnapshotOutcome = { kind: 'stored', requests: 0, rows: 0, stored: 0, quarantined: 0 };

type Answered = Extract<Answer, { kind: 'answered' }>;

async function check<T>(
  { sql, kind }: Taking<T>,
  { retry }: Attempt,
  { body, exchange }: Answered,
): Promise<Validated<T>> {
  const problem = findWrongInstant(exchange);
  if (problem !== null) return { ok: false, problem };
  const validated = await retry(() => kind.check(sql, body, exchange));
  if (validated.ok && validated.rows === 0) return { ok: false, problem: `${kind.path} answered an empty list` };
  return validated;
}

async function settle<T>(
  taking: Taking<T>,
  { retry }: Attempt,
  past: readonly PastRequest[],
  { record, requests, exchange }: Pick<SentRequest, 'record' | 'requests'> & Pick<Answered, 'exchange'>,
  validated: Validated<T>,
): Promise<SnapshotOutcome> {
  const { sql, kind, name, checkOrigin } = taking;
  const keep = (outcome: string, rows: number, message: string) =>
    retry((again) => recordFetchOnce(sql, { ...record, outcome, rows, message }, again));
  if (!validated.ok) {
    await keep('malformed', 0, validated.problem);
    throw new UpstreamError(`${name}: the answer cannot be used: ${validated.problem}`);
  }
  const { rows, quarantined, value } = validated;
  const implausible = await retry(() => implausibleBecause(taking, { rows, exchange }));
  if (implausible !== null) {
    await keep('unconfirmed', rows, implausible.reason);
    return { kind: 'deferred', until: implausible.retryAt, requests, reason: implausible.reason };
  }
  await checkOrigin(exchange, { ...record, rows }, { retry });
  const at = exchange.asOf;
  await retry(async () => kind.prepare?.(sql, at));
  const write = async (tx: SqlOrTransaction) => {
    // The stored list is plausible, or the shorter list is now a fact.
    if (mayBeShort(past)) await dropClaim(tx, shortListOf(taking));
    return kind.write(tx, value, at);
  };
  const commit = await retry((again) => storeSnapshot(sql, { ...record, rows }, quarantined, write, again));
  return { kind: 'stored', requests, rows, stored: commit.stored, quarantined: commit.quarantined };
}

/** A list that is shorter than this share of the one before it is implausible. */
export const LEAST_SHARE = 0.9;

/**
 * Why a list is implausible, and when to request it again; null when it is plausible. A list that is much shorter than the last one is believed if an
 * earlier answer was just as short and no cache repeated it: then the plan or the upstream has changed.
 */
async function implausibleBecause<T>(
  taking: Taking<T>,
  { rows, exchange }: { readonly rows: number } & Pick<Answered, 'exchange'>,
): Promise<{ readonly reason: string; readonly retryAt: Instant } | null> {
  const { sql, accountId, clock, name } = taking;
  const known = (await lastStoredRows(sql, { endpoint: name, accountId })) ?? 0;
  const least = Math.ceil(known * LEAST_SHARE);
  if (rows >= least) return null;
  const { sentAt, ageMs } = exchange;
  const answer = { sentAt, ageMs, receivedAt: clock.now() };
  const { kind: opinion, claim } = await sql.begin((tx) =>
    recordAnswer(tx, shortListOf(taking), answer, (before) => judgeLength(before?.evidence?.rows, rows)),
  );
  if (opinion !== 'waiting') return null;
  return { reason: `${rows} rows, of which ${least} at least were expected`, retryAt: claim.retryAt };
}

function shortListOf({ accountId, name }: Pick<Taking<unknown>, 'accountId' | 'name'>): ClaimId {
  return { claim: 'short list', key: `${accountId} ${name}` };
}

/** Has a list been implausible since the last stored one? */
function mayBeShort(past: readonly PastRequest[]): boolean {
  return past.find(({ outcome }) => outcome === 'stored' || outcome === 'unconfirmed')?.outcome === 'unconfirmed';
}

/** What a failed request means for the caller; the request itself is already recorded. */
async function unanswered<T>(
  { sql, clock, accountId, kind, name }: Taking<T>,
  { retry }: Attempt,
  past: readonly PastRequest[],
  { requests, budgetLeft, keySent }: SentRequest,
  answer: Exclude<Answer, { kind: 'moved' | 'answered' }>,
): Promise<SnapshotOutcome> {
  const { message } = answer;
  // Before the first answer, the key or the address may be wrong.
  const proven = () => retry(() => hasStored(sql, accountId));
  const refusal = (outcome: string): SnapshotOutcome => {
    const { sentAt, status } = answer.exchange;
    const asking = { sentAt, status, outcome, rows: 0 };
    return { kind: 'refused', until: refusedUntil([asking, ...past], clock.now()), requests, message };
  };
  switch (answer.kind) {
    case 'limited':
      if (budgetLeft) return refusal('limited');
      // The ledger holds all requests; the next permit request returns until when.
      return { kind: 'snoozed', until: clock.now(), reason: answer.by === 'rate' ? 'limited' : 'quota exhausted' };
    case 'refused': {
      if (answer.reason === 'forbidden' && !(await proven())) throw new ConfigurationError(wrongKey(message, keySent));
      if (answer.reason === 'unknown route' && !(await proven()))
        throw new ConfigurationError(wrongAddress(`${kind.path}: ${message}`));
      return refusal(answer.reason);
    }
    case 'malformed':
      if (answer.astray && !(await proven())) throw new ConfigurationError(wrongAddress(`${kind.path}: ${message}`));
      throw new UpstreamError(`${name}: ${message}`, message);
    case 'unavailable':
      throw new UpstreamError(`${name}: ${message}`, message);
  }
}
