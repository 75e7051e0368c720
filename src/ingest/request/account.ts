/** The account at the upstream: its plan, its auth scheme, and how much of its quota is used. */
import { createHash } from 'node:crypto';
import { type Clock, type Instant, MOST_SKEW_MS } from '../../clock.ts';
import { ACCOUNT_PATHS, type AccountPath } from '../../contract/interface/paths.ts';
import { isPlanName, type PlanName } from '../../contract/plan/plans.ts';
import { type AccountInfo, accountInfoSchema, type ParsedRecord, readRecord } from '../../contract/record/records.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { HOUR } from '../../core/interval.ts';
import type { Quota } from '../../quota/quota.ts';
import { forgetItemRefusals } from '../../store/catalogue/catalogue-item.ts';
import type { Sql } from '../../store/connection/connect.ts';
import {
  claimKeyRetry,
  forgetKeyRefusal,
  type KeyRefusal,
  readAccount,
  readKeyRefusal,
  type SavedAccount,
  saveAccount,
  saveKeyRefusal,
} from '../../store/quota/account.ts';
import { recordFetch } from '../../store/work/fetch.ts';
import { liveInstances } from '../../store/work/instance.ts';
import { KeyRefused } from '../outcome.ts';
import { refusedBefore, wrongKey } from './configuration-errors.ts';
import type { SendRequest } from './send-request.ts';

/** How old an answer of `/users/me` may become before Chandler requests the account again. */
export const ACCOUNT_FRESH_MS = 6 * HOUR;

/** Names an account without its key: `anonymous@host` or `key-<12 hex digits of its SHA-256>@host`. */
export function accountIdOf(apiKey: string | null, baseUrl: string): string {
  const { host } = new URL(baseUrl);
  if (apiKey === null) return `anonymous@${host}`;
  return `key-${createHash('sha256').update(apiKey).digest('hex').slice(0, 12)}@${host}`;
}

/** The account as this process knows it and as `ops.account` stores it. */
export type AccountRecord = {
  current(): SavedAccount;
  save(changes: Partial<Omit<SavedAccount, 'id' | 'origin'>>): Promise<void>;
};

/** Reads the saved account. An account that was never saved gets the given plan. */
export async function openAccountRecord(
  sql: Sql,
  { id, origin, plan }: Pick<SavedAccount, 'id' | 'origin' | 'plan'>,
): Promise<AccountRecord> {
  let saved: SavedAccount = (await readAccount(sql, id)) ?? {
    id,
    origin,
    plan,
    authScheme: null,
    accountPath: null,
    checkedAt: null,
    monthLimit: null,
  };
  return {
    current: () => saved,
    save: async (changes) => {
      saved = { ...saved, ...changes };
      await saveAccount(sql, saved);
    },
  };
}

export type AccountCheck =
  | { readonly kind: 'known'; readonly info: AccountInfo; readonly plan: PlanName | null }
  /** This upstream has no such endpoint. */
  | { readonly kind: 'unknown' }
  /** The upstream gave no usable answer: an outage, a 429. */
  | { readonly kind: 'unanswered'; readonly message: string }
  /** No request was sent: the quota allows none until then. */
  | { readonly kind: 'held'; readonly until: Instant; readonly reason: string };

type CheckAccountDeps = {
  readonly sendRequest: SendRequest;
  readonly quota: Quota;
  readonly sql: Sql;
  readonly clock: Clock;
  readonly account: AccountRecord;
  /** The configured auth scheme. */
  readonly sentAs: KeyRefusal['sentAs'];
  /** Whether the settings name the plan: it then stays in effect, whatever the account says. */
  readonly hasConfiguredPlan: boolean;
  readonly signal?: AbortSignal | undefined;
};

/**
 * Requests `/users/me`, and on 404 `/key/info`. Stores which path answered, and reconciles the ledger with the answer.
 * @throws KeyRefused
 */
export async function checkAccount(deps: CheckAccountDeps): Promise<AccountCheck> {
  const { sendRequest, sql, clock, account, sentAs, signal } = deps;
  const { id, accountPath } = account.current();
  const paths: readonly AccountPath[] = accountPath === null ? ACCOUNT_PATHS : [accountPath];
  for (const path of paths) {
    const result = await sendRequest(
      { path },
      {
        spender: { class: 'scheduled', name: 'account', isAccountRequest: true },
        record: { endpoint: 'account' },
        signal,
      },
    );
    if (result.kind === 'held') return result;
    const { answer, record } = result;
    if (answer.kind === 'refused' && answer.reason === 'forbidden') {
      const message = wrongKey(answer.message, result.keySent);
      const refusal = await saveKeyRefusal(sql, account.current(), { at: clock.now(), sentAs, message });
      throw new KeyRefused(message, retryAt(refusal));
    }
    if (answer.kind === 'refused' && (answer.reason === 'unknown route' || answer.reason === 'unknown id')) continue;
    if (answer.kind === 'malformed' && answer.astray) continue;
    if (answer.kind !== 'answered') return { kind: 'unanswered', message: answer.message };
    const read = readAccountInfo(answer.body);
    await recordFetch(sql, {
      ...record,
      outcome: read.ok ? 'stored' : 'malformed',
      message: read.ok ? null : read.problem,
    });
    if (!read.ok) continue;
    const plan = await learn(deps, path, read.value);
    await forgetKeyRefusal(sql, id);
    return { kind: 'known', info: read.value, plan };
  }
  await forgetKeyRefusal(sql, id);
  return { kind: 'unknown' };
}

/** No account has so many requests a month, at any rate. A larger count is an error, and the ledger could not store each of them. */
const MOST_REQUESTS = 1e12;

/** An account with a count that cannot be true is refused like one of the wrong shape. */
function readAccountInfo(body: unknown): ParsedRecord<AccountInfo> {
  const read = readRecord(accountInfoSchema, body);
  if (!read.ok) return read;
  const wrong = Object.entries(read.value.usage.current_month).find(
    ([, count]) => count !== null && !(Number.isInteger(count) && count <= MOST_REQUESTS),
  );
  if (wrong === undefined) return read;
  return { ok: false, problem: `usage.current_month.${wrong[0]}: expected number of requests, got ${wrong[1]}` };
}

/** Reconciles the ledger and saves the account. Resolves to its plan; null when Chandler does not know that plan. */
async function learn(
  { quota, sql, account, clock, hasConfiguredPlan }: CheckAccountDeps,
  accountPath: AccountPath,
  info: AccountInfo,
): Promise<PlanName | null> {
  const plan = isPlanName(info.plan) ? info.plan : null;
  const { requests_made: made, requests_left: left } = info.usage.current_month;
  const hasCounts = made !== null && left !== null;
  const unlimited = !hasCounts || made < 0 || left < 0;
  // A plan without a limit ends the old plan's limit, and the state "quota exhausted". An answer without counts ends nothing.
  if (hasCounts) await quota.reconcile(unlimited ? { made: 0, left: null } : { made, left });
  // With a configured plan, the saved one is either, by turns.
  if (!hasConfiguredPlan && plan !== null && plan !== account.current().plan) await forgetItemRefusals(sql);
  await account.save({
    plan: plan ?? account.current().plan,
    accountPath,
    checkedAt: clock.now(),
    monthLimit: unlimited ? null : made + left,
  });
  return plan;
}

/** How soon a refused key is tried again. */
const RETRY_MS = 60_000;
const backoff = createBackoff({ firstMs: RETRY_MS, mostMs: 6 * HOUR, factor: 4 });

/** The error message names this instant, and every process computes it from the same row. */
function retryAt({ at, times }: Pick<KeyRefusal, 'at' | 'times'>): Instant {
  return at + backoff(times - 1, WHOLE_BOUND);
}

/** `retryAt`: when the key is tried again. */
export type StandingRefusal = KeyRefusal & { readonly retryAt: Instant };

type SentKey = { readonly id: string; readonly sentAs: KeyRefusal['sentAs'] };

/** The refusal of this key. It stands until the upstream accepts the key; null: none stands. */
export async function standingRefusal(sql: Sql, { id, sentAs }: SentKey): Promise<StandingRefusal | null> {
  const known = await readKeyRefusal(sql, id);
  // The upstream may accept the same key in another auth scheme. (Another key is another account.)
  if (known === null || (known.sentAs !== 'auto' && known.sentAs !== sentAs)) return null;
  return { ...known, retryAt: retryAt(known) };
}

/**
 * The refusal of this key, or else of another key that a live service sends: both belong to one operator. `not known yet`: the upstream has never
 * judged this key.
 */
export async function refusalInUse(
  sql: Sql,
  { hasKey, ...key }: SentKey & { readonly hasKey: boolean },
  now: Instant,
): Promise<(StandingRefusal & { readonly accountId?: string }) | 'not known yet' | null> {
  const mine = await standingRefusal(sql, key);
  if (mine !== null) return mine;
  for (const { accountId } of await liveInstances(sql, now)) {
    const other = accountId == null || accountId === key.id ? null : await readKeyRefusal(sql, accountId);
    if (other !== null) return { ...other, accountId: accountId!, retryAt: retryAt(other) };
  }
  return hasKey && (await readAccount(sql, key.id)) === null ? 'not known yet' : null;
}

/**
 * Rejects until a refused key may be tried again, so that no request is spent on the same refusal. When the time has come, it resolves to `try
 * again` for one of all processes. `none`: no refusal stands. @throws KeyRefused
 */
export async function checkKeyRefusal(
  sql: Sql,
  { now, ...key }: SentKey & { readonly now: Instant },
): Promise<'none' | 'try again'> {
  const known = await standingRefusal(sql, key);
  if (known === null) return 'none';
  // The refusal lies in the future: it was recorded before a clock was set back.
  const isTime = now >= known.retryAt || known.at > now + MOST_SKEW_MS;
  if (isTime && (await claimKeyRetry(sql, key.id, known, now))) return 'try again';
  const again = isTime ? now + RETRY_MS : known.retryAt;
  throw new KeyRefused(refusedBefore(known.message, known.at, again), again);
}
