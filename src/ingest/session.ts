/** A session: one upstream used with one account, its plan, its quota, its history limits, and the function that ingests a chunk. */
import type { Clock } from '../clock.ts';
import { type Plan, type PlanName, planOf } from '../contract/plan/plans.ts';
import { createSharedRead } from '../core/concurrency/shared-read.ts';
import type { Limits, Quota, Unwanted } from '../quota/quota.ts';
import { forgetItemRefusals } from '../store/catalogue/catalogue-item.ts';
import type { Sql } from '../store/connection/connect.ts';
import { isDatabaseUnavailable } from '../store/connection/database-unavailable.ts';
import { makeCurrentAccount } from '../store/quota/account.ts';
import type { AuthScheme, Upstream } from '../upstream/answer.ts';
import { createIngestChunk, type IngestChunk } from './chunk/ingest-chunk.ts';
import { type CircuitBreaker, createCircuitBreaker } from './chunk/series-circuit-breaker.ts';
import { type LearnedLimits, readLearnedLimits } from './limits/learned-limits.ts';
import { AccountUnknown, Unreachable } from './outcome.ts';
import {
  ACCOUNT_FRESH_MS,
  type AccountCheck,
  type AccountRecord,
  accountIdOf,
  checkAccount,
  checkKeyRefusal,
  openAccountRecord,
} from './request/account.ts';
import { createAuthSchemeChoice } from './request/auth-scheme.ts';
import { planUnknown } from './request/configuration-errors.ts';
import { createKeyJudge } from './request/key-judge.ts';
import { createQuotaJudge } from './request/quota-exhausted.ts';
import { createReachability } from './request/reachability.ts';
import { createRequestOtherCoin } from './request/request-other-coin.ts';
import { createSendRequest, type RequestResult, type SendOptions, type SendRequest } from './request/send-request.ts';

const CHECK_SHARED_FOR_MS = 60_000;

export type SessionOptions = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly upstream: Upstream;
  readonly baseUrl: string;
  /** The JSON-RPC interface. `sharesOrigin`: it has the same origin as REST. Null: only REST is used. */
  readonly rpc?: { readonly client: Upstream; readonly url: string; readonly sharesOrigin: boolean } | null;
  readonly apiKey: string | null;
  readonly authScheme: 'auto' | AuthScheme;
  /** Null: the plan that `/users/me` names. */
  readonly plan: PlanName | null;
  /** While the plan is unknown, reject instead of assuming `free`. For a process that can wait for an answer. */
  readonly waitsForPlan?: boolean;
  /** Send requests even if the upstream refused the key a moment ago. */
  readonly ignoresKeyRefusal?: boolean;
  readonly limitsOf: (plan: PlanName) => Limits;
  readonly candlesPerRequest: number | null;
  /** Absent: as many as the upstream allows. */
  readonly pricesPerRequest?: number;
  readonly createQuota: (options: {
    readonly accountId: string;
    readonly limits: Limits;
    readonly plan: PlanName;
  }) => Quota;
  readonly signal?: AbortSignal | undefined;
  /** Called after each call that sent requests, with how many it sent. */
  readonly onRequest?: (result: {
    readonly endpoint: string;
    readonly outcome: string;
    readonly requests: number;
  }) => void;
};

export type Session = {
  readonly accountId: string;
  readonly plan: Plan;
  /** Where the plan's name comes from. */
  readonly planSource: 'configured' | 'account' | 'assumed';
  readonly limits: Limits;
  readonly quota: Quota;
  readonly sendRequest: SendRequest;
  /** The JSON-RPC interface, with the same quota. Null: only REST is used. */
  readonly tools: { readonly url: string; readonly sharesOrigin: boolean; readonly sendRequest: SendRequest } | null;
  readonly historyLimits: LearnedLimits;
  readonly ingestChunk: IngestChunk;
  /** Shared by everything that works on chunks, in any run. */
  readonly circuitBreaker: CircuitBreaker;
  /** Requests the account now. */
  check(): Promise<AccountCheck>;
};

/**
 * Opens an account. It sends a request only if nothing else can tell the plan.
 * @throws ConfigurationError for a refused key or a wrong address, AccountUnknown
 */
export async function openSession(options: SessionOptions): Promise<Session> {
  const { sql, clock, baseUrl, rpc = null } = options;
  const accountId = accountIdOf(options.apiKey, baseUrl);
  const { origin } = new URL(baseUrl);
  const account = await openAccountRecord(sql, { id: accountId, origin, plan: options.plan ?? 'free' });
  const { sendWith, checkWith } = createSenders(options, account);
  const { name: planName, source: planSource } = await learnPlan(options, account, checkWith);
  // A configured plan is not what the account said. Without the setting, the account must be requested again.
  const isOverruled = options.plan !== null && account.current().plan !== options.plan;
  // With a key, the saved plan may be what the account said, and that is no change.
  if (isOverruled && options.apiKey === null) await forgetItemRefusals(sql);
  await account.save({ plan: planName, ...(isOverruled ? { checkedAt: null } : {}) });
  // From now on the refusals of this plan count, and those of other plans do not.
  await makeCurrentAccount(sql, accountId);

  const { candlesPerRequest, pricesPerRequest } = options;
  const plan = planOf(planName, {
    ...(candlesPerRequest === null ? {} : { candlesPerRequest }),
    ...(pricesPerRequest === undefined ? {} : { pricesPerRequest }),
  });
  const limits = options.limitsOf(planName);
  const quota = options.createQuota({ accountId, limits, plan: planName });
  const sendRequest = sendWith(quota);
  const tools = rpc && { ...rpc, sendRequest: sendWith(quota, { client: rpc.client, isOtherHost: !rpc.sharesOrigin }) };
  const historyLimits = await readLearnedLimits(sql, clock, plan);
  let proven = false;
  const ingestChunk = createIngestChunk({
    sql,
    sendRequest,
    clock,
    plan,
    historyLimits,
    trust: {
      get proven() {
        return proven;
      },
      prove: () => {
        proven = true;
      },
    },
  });
  return {
    accountId,
    plan,
    planSource,
    limits,
    quota,
    sendRequest,
    tools,
    historyLimits,
    ingestChunk,
    circuitBreaker: createCircuitBreaker({
      clock,
      requestOtherCoin: createRequestOtherCoin({ sql, sendRequest, clock }),
    }),
    check: () => checkWith(quota),
  };
}

type CheckWith = (quota: Quota) => Promise<AccountCheck>;

/**
 * Creates the functions that send requests and check the account, with any quota. All of them share what they learn about the key and the address.
 */
function createSenders(options: SessionOptions, account: AccountRecord) {
  const { sql, clock, upstream, apiKey, baseUrl, signal } = options;
  const authScheme = createAuthSchemeChoice({
    hasKey: apiKey !== null,
    configured: options.authScheme,
    known: account.current().authScheme,
    remember: (scheme) => account.save({ authScheme: scheme }),
  });
  // Chandler sends no key to another host.
  const keyless = createAuthSchemeChoice({
    hasKey: false,
    configured: 'auto',
    known: null,
    remember: async () => undefined,
  });
  const reachability = createReachability(sql, new URL(baseUrl).host);
  const checkWith: CheckWith = (quota) =>
    checkAccount({
      ...{ sendRequest: sendWith(quota), quota, sql, clock, account, sentAs: options.authScheme, signal },
      hasConfiguredPlan: options.plan !== null,
    });
  // Without a key there is no account to request. Many requests may get a 402 at once, or a 403: one request for the account serves all of them.
  const sharesFailure = (error: unknown) => !isDatabaseUnavailable(error);
  const createCheck = () =>
    apiKey === null ? null : createSharedRead({ clock, ms: CHECK_SHARED_FOR_MS, read: checkWith, sharesFailure });
  const judgeWith = createQuotaJudge({ check: createCheck(), signal });
  const judgeKeyWith = createKeyJudge({ check: createCheck(), isService: options.waitsForPlan ?? false });
  const sendWith = (quota: Quota, { client = upstream, isOtherHost = false } = {}): SendRequest =>
    reporting(
      createSendRequest({
        upstream: client,
        isOtherHost,
        baseUrl,
        reachability,
        quota,
        authScheme: isOtherHost ? keyless : authScheme,
        sql,
        clock,
        accountId: account.current().id,
        judgeQuotaExhausted: judgeWith(quota),
        judgeForbidden: judgeKeyWith(quota),
      }),
      options.onRequest,
    );
  return { sendWith, checkWith };
}

/** Reports each request that was sent. */
function reporting(sendRequest: SendRequest, onRequest: SessionOptions['onRequest']): SendRequest {
  if (onRequest === undefined) return sendRequest;
  // `SendRequest` has two signatures. TypeScript cannot see that a function which passes on either request has both.
  const reported = async (request: never, details: SendOptions) => {
    const result: RequestResult | Unwanted = await sendRequest(request, details);
    if (result.kind === 'sent') {
      const { endpoint } = details.record;
      onRequest({ endpoint, outcome: result.answer.kind, requests: result.requests });
    }
    return result;
  };
  return reported as SendRequest;
}

type KnownPlan = { readonly name: PlanName; readonly source: Session['planSource'] };

/** The plan as configured, as the account said recently, or as it says now. @throws AccountUnknown, ConfigurationError */
async function learnPlan(options: SessionOptions, account: AccountRecord, check: CheckWith): Promise<KnownPlan> {
  const { sql, clock, plan, waitsForPlan = false } = options;
  const { id, checkedAt, plan: saved } = account.current();
  const isFresh = checkedAt !== null && Math.abs(clock.now() - checkedAt) <= ACCOUNT_FRESH_MS;
  const known: KnownPlan =
    plan !== null
      ? { name: plan, source: 'configured' }
      : { name: saved, source: checkedAt === null ? 'assumed' : 'account' };
  if (options.apiKey === null) return known;
  const key = { id, sentAs: options.authScheme, now: clock.now() };
  // The upstream may refuse a key that it accepted an hour ago: the key was revoked, or nobody paid.
  const refusal = options.ignoresKeyRefusal ? 'none' : await checkKeyRefusal(sql, key);
  if (isFresh && refusal === 'none') return known;

  const limits = options.limitsOf(known.name);
  const quota = options.createQuota({
    accountId: id,
    // The plan is not known yet, and so its monthly quota is not known either: only the rate limits this one request.
    limits: plan === null ? { ...limits, perMonth: null } : limits,
    plan: known.name,
  });
  const result = await check(quota).catch((error: unknown) => {
    if (error instanceof Unreachable && waitsForPlan) throw new AccountUnknown(error.message, null);
    throw error;
  });
  if (plan === null && result.kind === 'known' && result.plan !== null) return { name: result.plan, source: 'account' };
  if (known.source === 'assumed' && waitsForPlan && (result.kind === 'unanswered' || result.kind === 'held')) {
    const why = result.kind === 'held' ? result.reason : result.message;
    // If the ledger holds all requests, it knows for how long. Otherwise the wait is unknown.
    throw new AccountUnknown(planUnknown(why), (await quota.state()).hold?.until ?? null);
  }
  return known;
}
