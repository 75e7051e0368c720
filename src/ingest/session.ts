/** Everything that is needed to ask one upstream as one account: its plan, its budget, its walls, and the chunk handler over them. */
import type { Clock } from '../clock.ts';
import { type Plan, type PlanName, planOf } from '../contract/plan/plans.ts';
import type { Limits, Quota } from '../quota/quota.ts';
import type { Sql } from '../store/connection/connect.ts';
import { isDatabaseAway } from '../store/connection/database-unavailable.ts';
import { makeCurrentAccount, readAccount, type SavedAccount, saveAccount } from '../store/quota/account.ts';
import type { AuthScheme, Upstream } from '../upstream/answer.ts';
import { createIngestChunk, type IngestChunk } from './chunk/ingest-chunk.ts';
import { readWalls, type Walls } from './limits/learned-limits.ts';
import { AccountUnknown, Unreachable } from './outcome.ts';
import { ACCOUNT_FRESH_MS, type AccountCheck, accountIdOf, checkAccount, heedRefusal } from './request/account.ts';
import { createKeyManner } from './request/auth-scheme.ts';
import { planUnknown } from './request/configuration-errors.ts';
import { looksSpent } from './request/quota-exhausted.ts';
import { createContact } from './request/reachability.ts';
import {
  type Ask,
  type Asked,
  type AskOptions,
  createAsk,
  type JudgeSpent,
  type Unasked,
} from './request/send-request.ts';

export type SessionOptions = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly upstream: Upstream;
  readonly baseUrl: string;
  /** The JSON-RPC interface; `sharesOrigin`: it is at the origin of REST. Null: only REST is used. */
  readonly rpc?: { readonly client: Upstream; readonly url: string; readonly sharesOrigin: boolean } | null;
  readonly apiKey: string | null;
  readonly authScheme: 'auto' | AuthScheme;
  /** Null: what `/users/me` says. */
  readonly plan: PlanName | null;
  /** Rather than take it for `free` while nobody has said: who stays can wait for an answer. */
  readonly waitsForPlan?: boolean;
  /** Also about a key that was refused a moment ago. */
  readonly asksAnyway?: boolean;
  readonly limitsOf: (plan: PlanName) => Limits;
  readonly candlesPerRequest: number | null;
  readonly createQuota: (options: {
    readonly accountId: string;
    readonly limits: Limits;
    readonly plan: PlanName;
  }) => Quota;
  readonly signal?: AbortSignal | undefined;
  /** Told of each question that was asked, with how many requests that took. */
  readonly onAsked?: (asked: {
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
  readonly ask: Ask;
  /** The JSON-RPC interface, on the same quota; null: only REST is used. */
  readonly tools: { readonly url: string; readonly sharesOrigin: boolean; readonly ask: Ask } | null;
  readonly walls: Walls;
  readonly ingestChunk: IngestChunk;
  /** Asks the account endpoint now. */
  check(): Promise<AccountCheck>;
};

const TOLD_FOR_MS = 60_000;
/** What `plan_status` says of an account that is not served, whatever its plan and its count are. */
const LAPSED = /^(past_due|inactive)$/i;

/** Opens an account without asking upstream anything, unless its plan can only be known by asking. @throws Misconfigured for a refused key or a wrong address, AccountUnknown. */
export async function openSession(options: SessionOptions): Promise<Session> {
  const { sql, clock, upstream, apiKey, baseUrl } = options;
  const accountId = accountIdOf(apiKey, baseUrl);
  let saved: SavedAccount = (await readAccount(sql, accountId)) ?? {
    id: accountId,
    origin: new URL(baseUrl).origin,
    plan: options.plan ?? 'free',
    authScheme: null,
    accountPath: null,
    checkedAt: null,
    monthLimit: null,
  };
  const manner = createKeyManner({
    hasKey: apiKey !== null,
    configured: options.authScheme,
    known: saved.authScheme,
    remember: async (authScheme) => {
      saved = { ...saved, authScheme };
      await saveAccount(sql, saved);
    },
  });
  const keyless = createKeyManner({ hasKey: false, configured: 'auto', known: null, remember: async () => undefined });
  const contact = createContact(sql, new URL(baseUrl).host);
  const askWith = (quota: Quota, { client = upstream, isAside = false } = {}): Ask => {
    const ask = createAsk({
      upstream: client,
      isAside,
      baseUrl,
      contact,
      quota,
      // To another host no key is sent, in whatever manner.
      manner: isAside ? keyless : manner,
      sql,
      clock,
      accountId,
      judgeSpent: judgeWith(quota),
    });
    const { onAsked } = options;
    if (onAsked === undefined) return ask;
    // Both ways to ask, with one answer each: the types cannot say so for a function that hands either on.
    const told = async (question: never, details: AskOptions) => {
      const asked: Asked | Unasked = await ask(question, details);
      if (asked.kind === 'asked') {
        const { endpoint } = details.record;
        onAsked({ endpoint, outcome: asked.answer.kind, requests: asked.requests });
      }
      return asked;
    };
    return told as Ask;
  };
  const checkWith = async (quota: Quota) => {
    const result = await checkAccount({
      ask: askWith(quota),
      quota,
      sql,
      clock,
      saved: () => saved,
      sentAs: options.authScheme,
      signal: options.signal,
    });
    if (result.kind === 'known') saved = (await readAccount(sql, accountId)) ?? saved;
    return result;
  };

  /** Many may be told 402 at once: the account is asked once for all of them. */
  let told: { readonly at: number; readonly check: Promise<AccountCheck> } | null = null;
  const tellOnce = (quota: Quota): Promise<AccountCheck> => {
    if (told !== null && clock.now() - told.at <= TOLD_FOR_MS) return told.check;
    const check = checkWith(quota).catch((error: unknown): AccountCheck => {
      if (isDatabaseAway(error)) {
        told = null;
        throw error;
      }
      return { kind: 'not told' };
    });
    told = { at: clock.now(), check };
    return check;
  };
  const judgeWith =
    (quota: Quota): JudgeSpent =>
    async ({ exchange, message }, beyondPlan) => {
      let why = message;
      // Unless the account says that the month is spent, a day is long enough to wait for a second opinion.
      let window: 'month' | 'day' = 'day';
      const check = apiKey === null ? null : await tellOnce(quota);
      if (check?.kind === 'known') {
        if (check.info.usage.current_month.requests_left === 0) window = 'month';
        else {
          const status = check.info.plan_status;
          if (status === null || !LAPSED.test(status)) return 'budget left';
          // Nothing will be answered until it is paid for, whatever is left.
          why = `${message} (the plan of the account is ${status.replace('_', ' ')})`;
        }
      } else {
        if (apiKey !== null && options.signal?.aborted) return 'not told';
        if (!looksSpent(message, beyondPlan, await quota.state())) return 'budget left';
      }
      await quota.spent({ sentAt: exchange.sentAt, window, message: why });
      return 'spent';
    };

  let planSource: Session['planSource'] = 'configured';
  let planName = options.plan;
  const stale = saved.checkedAt === null || clock.now() - saved.checkedAt > ACCOUNT_FRESH_MS;
  if (planName === null) {
    planSource = saved.checkedAt === null ? 'assumed' : 'account';
    planName = saved.plan;
  }
  if (apiKey !== null && stale) {
    // The plan is not known yet, so neither is its month: this one question is only held to the pace.
    const limits = options.limitsOf(planName);
    const first = options.createQuota({
      accountId,
      limits: options.plan === null ? { ...limits, perMonth: null } : limits,
      plan: planName,
    });
    if (!options.asksAnyway) await heedRefusal(sql, { id: accountId, sentAs: options.authScheme, now: clock.now() });
    const result = await checkWith(first).catch((error: unknown) => {
      if (!(error instanceof Unreachable && options.waitsForPlan)) throw error;
      throw new AccountUnknown(error.message, null);
    });
    if (options.plan === null && result.kind === 'known' && result.plan !== null) {
      planName = result.plan;
      planSource = 'account';
    }
    if (planSource === 'assumed' && options.waitsForPlan && (result.kind === 'unanswered' || result.kind === 'held')) {
      const why = result.kind === 'held' ? result.reason : result.message;
      // What everybody waits for has been learned by that; of anything else the ledger knows nothing.
      const until = (await first.state()).hold?.until ?? null;
      throw new AccountUnknown(planUnknown(why), until);
    }
  }
  // A plan set by hand is not what the account said: without the setting, the account is asked again.
  const overruled = options.plan !== null && saved.plan !== options.plan;
  saved = { ...saved, plan: planName, checkedAt: overruled ? null : saved.checkedAt };
  await saveAccount(sql, saved);
  // From now on the refusals made to this plan count, and those of others no longer.
  await makeCurrentAccount(sql, accountId);

  const plan = planOf(
    planName,
    options.candlesPerRequest === null ? {} : { candlesPerRequest: options.candlesPerRequest },
  );
  const limits = options.limitsOf(planName);
  const quota = options.createQuota({ accountId, limits, plan: planName });
  const ask = askWith(quota);
  const { rpc = null } = options;
  const tools = rpc && { ...rpc, ask: askWith(quota, { client: rpc.client, isAside: !rpc.sharesOrigin }) };
  const walls = await readWalls(sql, clock, plan);
  let proven = false;
  const ingestChunk = createIngestChunk({
    sql,
    ask,
    clock,
    plan,
    walls,
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
    ask,
    tools,
    walls,
    ingestChunk,
    check: () => checkWith(quota),
  };
}
