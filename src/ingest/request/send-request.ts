/** Sends one request to the upstream: takes a permit, sends, records. It sends again only for a redirect, or with the key in the other scheme. */
import type { Clock, Instant } from '../../clock.ts';
import type { Span, Spans } from '../../core/span.ts';
import { waitForPermit } from '../../quota/permit.ts';
import type { Quota, Spender, Stretch, Take, Unwanted } from '../../quota/quota.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type FetchRow, recordFetchOnce } from '../../store/work/fetch.ts';
import type { Answer, AuthScheme, Question, Upstream } from '../../upstream/answer.ts';
import { ConfigurationError, Unreachable } from '../outcome.ts';
import type { AuthSchemeChoice, KeySent } from './auth-scheme.ts';
import { unreachable, wrongAddress } from './configuration-errors.ts';
import { type OutageRetry, withoutRetry } from './outage-retry.ts';
import type { Reachability } from './reachability.ts';
import { type FinalAnswer, pauseAtOnce, recordInQuota, recordPauseOfOtherHost } from './record-in-quota.ts';

/** What `ops.fetch` records about a request besides its answer. */
type RequestDetails = Pick<FetchRow, 'endpoint'> &
  Partial<Pick<FetchRow, 'seriesId' | 'span' | 'backfillId' | 'attempt' | 'subject'>>;

export type SendOptions = {
  readonly spender: Spender;
  readonly record: RequestDetails;
  /** Ends the wait for a permit, never a request that was already sent. */
  readonly signal?: AbortSignal | undefined;
  /** Waits for a database that is unavailable; without it the call rejects. */
  readonly retry?: OutageRetry;
  /** The upstream may not have this route: a refusal is then an answer, and no outage. */
  readonly mayLack?: boolean;
};

/** A request whose path and query are known. */
type FixedRequest = Pick<Question, 'path' | 'query' | 'withText' | 'rpc'>;

/** A request whose path and query depend on what is still missing from a stretch of candles when the permit is granted. */
export type StretchRequest = {
  readonly stretch: Stretch;
  /** `gaps` is never empty. */
  readonly about: (gaps: Spans) => Pick<Question, 'path' | 'query'> & {
    readonly span: Span;
    /** By its documents, the plan does not include these candles. */
    readonly beyondPlan: boolean;
  };
};

/** No request was sent: the quota allows none until then. */
export type HeldRequest = {
  readonly kind: 'held';
  readonly until: Instant;
  readonly reason: Extract<Take, { kind: 'denied' }>['reason'];
};

/** The request was sent, and this is its answer. */
export type SentRequest = {
  readonly kind: 'sent';
  readonly answer: FinalAnswer;
  /** The row of `ops.fetch`. It is already recorded, unless the answer is an `answered` one: the caller records that together with its rows. */
  readonly record: FetchRow;
  /** The id of that row; null while it is not recorded. */
  readonly fetchId: number | null;
  readonly requests: number;
  /** A 402 that names no history limit, although requests seem to be left: perhaps the plan does not include this. */
  readonly budgetLeft: boolean;
  /** The redirects did not end. A run may try once more only, because each try costs several requests. */
  readonly isRedirectLoop: boolean;
  /** How the key was sent, for a caller that must report a refused key. */
  readonly keySent: KeySent;
};

export type RequestResult = HeldRequest | SentRequest;

/**
 * Resolves to `unwanted` when nothing of the stretch is missing any more: then nothing was sent and nothing was counted.
 * @throws ConfigurationError when no upstream answers at the address (`Reachability`), or when redirects do not end a second time and nothing else
 * has been answered; KeyRefused when the upstream no longer accepts the key.
 */
export type SendRequest = {
  (request: FixedRequest, options: SendOptions): Promise<RequestResult>;
  (request: StretchRequest, options: SendOptions): Promise<RequestResult | Unwanted>;
};

/**
 * Judges a 402 that names no history limit: is the quota exhausted, or are requests left, so that the 402 means something else? It resolves to
 * `exhausted` after it has recorded that in the ledger. `unknown`: the run ended before the account could be requested.
 */
export type JudgeQuotaExhausted = (
  answer: Extract<Answer, { kind: 'limited' }>,
  beyondPlan: boolean,
) => Promise<'exhausted' | 'budget left' | 'unknown'>;

/** Judges a 403. Resolves when the key may be right. @throws KeyRefused when the upstream refuses the account request with this key as well */
export type JudgeForbidden = (keySent: KeySent) => Promise<void>;

export type SendRequestDeps = {
  readonly upstream: Upstream;
  readonly baseUrl: string;
  readonly reachability: Reachability;
  readonly quota: Quota;
  readonly authScheme: AuthSchemeChoice;
  readonly sql: Sql;
  readonly clock: Clock;
  readonly accountId: string;
  readonly judgeQuotaExhausted: JudgeQuotaExhausted;
  readonly judgeForbidden: JudgeForbidden;
  /**
   * True for another host than REST's (the vendor's JSON-RPC interface). Its failures mean neither an outage of REST nor a wrong configuration.
   * REST heeds only a pause that it requests, for a minute at most.
   */
  readonly isOtherHost?: boolean;
};

const MOST_REDIRECTS = 3;
const MOST_REDIRECT_LOOPS = 2;

export function createSendRequest(deps: SendRequestDeps): SendRequest {
  const { upstream, quota, authScheme, clock, isOtherHost = false } = deps;
  let hasAnswered = false;
  /** Redirect loops since the last answer. */
  let loops = 0;

  const sendRequest = async (
    request: FixedRequest | StretchRequest,
    options: SendOptions,
  ): Promise<RequestResult | Unwanted> => {
    const { spender, signal, retry = withoutRetry } = options;
    const take = (stretch?: Stretch) =>
      retry(() =>
        waitForPermit({ quota, spender: { ...spender, isOtherHost }, stretch, clock, ...(signal ? { signal } : {}) }),
      );
    const permit = 'stretch' in request ? await take(request.stretch) : await take();
    if (permit.kind === 'unwanted') return permit;
    if (permit.kind === 'denied') return held(permit);
    const { question, beyondPlan, details } = withGaps(request, permit.gaps, options.record);
    const call: Call = { ...deps, ...options, retry, isOtherHost, record: details };
    let next = question;
    let redirects = 0;
    for (let requests = 1; ; requests++) {
      if (requests > 1) {
        // A redirect, or the other auth scheme, is a step of a request that already had its permit: what is missing is not checked again.
        const further = await take();
        if (further.kind === 'denied') {
          // The probe after an outage may be a redirect whose second step is held. With `loops` 0, the next redirect counts as an answer and goes on.
          if (redirects > 0) loops = 0;
          return held(further);
        }
      }
      const scheme = authScheme.current();
      const answer = await upstream.send({ ...next, scheme });
      const budgetLeft = await heed(call, answer, beyondPlan);
      const record = toRecord(answer, deps.accountId, details);
      const sent = { kind: 'sent', record, requests, budgetLeft, isRedirectLoop: false } as const;
      if (answer.kind !== 'moved') {
        if (answer.kind === 'answered') {
          hasAnswered = true;
          loops = 0;
        }
        const fetchId = await settle(call, { answer, record, scheme, budgetLeft });
        if (isForbidden(answer)) {
          if (authScheme.refused(scheme)) continue;
          if (!isOtherHost && !spender.isAccountRequest) await retry(() => deps.judgeForbidden(authScheme.sent()));
        }
        return { ...sent, answer, fetchId, keySent: authScheme.sent() };
      }
      const fetchId = await keep(call, record);
      if (++redirects <= MOST_REDIRECTS) {
        // These redirects ended nowhere before, so they prove nothing about the upstream. Counted as answers, they would end the series of loops.
        if (loops === 0 && !isOtherHost) await retry(() => quota.answered({ sentAt: answer.exchange.sentAt }));
        next = { ...question, path: answer.path, absolute: true, query: {} };
        continue;
      }
      const message = `redirected more than ${MOST_REDIRECTS} times, last to ${answer.shown}`;
      const end = { kind: 'malformed', message, astray: false, exchange: answer.exchange } as const;
      if (!isOtherHost) await retry(() => recordInQuota(quota, end, spender));
      if (++loops >= MOST_REDIRECT_LOOPS && !hasAnswered && !isOtherHost)
        throw new ConfigurationError(wrongAddress(message));
      return { ...sent, answer: end, fetchId, isRedirectLoop: true, keySent: authScheme.sent() };
    }
  };
  return sendRequest as SendRequest;
}

/** One call of `sendRequest`. */
type Call = SendRequestDeps & SendOptions & { readonly retry: OutageRetry; readonly isOtherHost: boolean };

function held({ until, reason }: Extract<Take, { kind: 'denied' }>): HeldRequest {
  return { kind: 'held', until, reason };
}

function isForbidden(answer: FinalAnswer): boolean {
  return answer.kind === 'refused' && answer.reason === 'forbidden';
}

/** Builds the request, now that the permit says what is missing. */
function withGaps(request: FixedRequest | StretchRequest, gaps: Spans | undefined, details: RequestDetails) {
  if (!('stretch' in request)) return { question: request as Question, beyondPlan: false, details };
  const { path, query, span, beyondPlan } = request.about(gaps!);
  return { question: { path, query } as Question, beyondPlan, details: { ...details, span } };
}

function keep({ sql, retry }: Call, row: FetchRow): Promise<number> {
  return retry((again) => recordFetchOnce(sql, row, again));
}

/** Handles first what cannot wait: it heeds a pause, reports a wrong address and judges a 402. Resolves to `budgetLeft`. @throws Unreachable */
async function heed(call: Call, answer: Answer, beyondPlan: boolean): Promise<boolean> {
  const { quota, reachability, baseUrl, accountId, spender, record, retry, judgeQuotaExhausted } = call;
  if (call.isOtherHost) return false;
  pauseAtOnce(quota, answer);
  if (await retry(() => reachability.isMissing(answer.exchange))) {
    // Not recorded in the ledger: a record there would hold the next command, which may have the corrected address.
    await keep(call, toRecord(answer, accountId, record));
    throw new Unreachable(unreachable(baseUrl, 'message' in answer ? answer.message : '', answer.exchange.noContact!));
  }
  if (answer.kind !== 'limited' || answer.by !== 'quota' || spender.isAccountRequest) return false;
  return (await retry(() => judgeQuotaExhausted(answer, beyondPlan))) === 'budget left';
}

/** Stores what an answer teaches. Resolves to the id of the recorded row; null when the caller records the answer. */
async function settle(
  call: Call,
  {
    answer,
    record,
    scheme,
    budgetLeft,
  }: {
    readonly answer: FinalAnswer;
    readonly record: FetchRow;
    readonly scheme: AuthScheme;
    readonly budgetLeft: boolean;
  },
): Promise<number | null> {
  const { quota, authScheme, spender, retry, mayLack = false } = call;
  const isRefused = answer.kind === 'refused';
  if (answer.kind === 'answered' || (isRefused && !isForbidden(answer))) await retry(() => authScheme.accepted(scheme));
  const fetchId = answer.kind === 'answered' ? null : await keep(call, record);
  const isPlainAnswer = budgetLeft || (mayLack && isRefused);
  await retry(() => {
    if (call.isOtherHost) return recordPauseOfOtherHost(quota, answer);
    if (isPlainAnswer) return quota.answered({ sentAt: answer.exchange.sentAt });
    return recordInQuota(quota, answer, spender);
  });
  return fetchId;
}

function toRecord(answer: Answer, accountId: string, details: RequestDetails): FetchRow {
  const { exchange } = answer;
  return {
    endpoint: details.endpoint,
    seriesId: details.seriesId ?? null,
    span: details.span ?? null,
    backfillId: details.backfillId ?? null,
    attempt: details.attempt ?? 1,
    subject: details.subject ?? null,
    sentAt: exchange.sentAt,
    asOf: exchange.asOf,
    status: exchange.status,
    durationMs: Math.round(exchange.durationMs),
    bytes: exchange.bytes,
    bodySha256: exchange.bodySha256,
    accountId,
    outcome: answer.kind === 'refused' ? answer.reason : answer.kind,
    message: 'message' in answer ? answer.message : null,
    rows: 0,
    stored: 0,
    revised: 0,
    quarantined: 0,
  };
}
