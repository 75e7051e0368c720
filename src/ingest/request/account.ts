/** Who we are to the upstream: which plan, how the key is sent, what it says we have spent. */
import { createHash } from 'node:crypto';
import { type Clock, type Instant, MOST_SKEW_MS } from '../../clock.ts';
import { ACCOUNT_PATHS, type AccountPath } from '../../contract/interface/paths.ts';
import { isPlanName, type PlanName } from '../../contract/plan/plans.ts';
import { type AccountInfo, accountInfoSchema, readRecord } from '../../contract/record/records.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { HOUR } from '../../core/interval.ts';
import type { Quota } from '../../quota/quota.ts';
import type { Sql } from '../../store/connection/connect.ts';
import {
  forgetKeyRefusal,
  type KeyRefusal,
  mayAskAgain,
  readKeyRefusal,
  type SavedAccount,
  saveAccount,
  saveKeyRefusal,
} from '../../store/quota/account.ts';
import { recordFetch } from '../../store/work/fetch.ts';
import { KeyRefused } from '../outcome.ts';
import { refusedBefore, wrongKey } from './configuration-errors.ts';
import type { Ask } from './send-request.ts';

/** How old what `/users/me` said may be before it is asked again. */
export const ACCOUNT_FRESH_MS = 6 * HOUR;

/** Names an account without its key: `anonymous@host` or `key-<12 hex digits of its SHA-256>@host`. */
export function accountIdOf(apiKey: string | null, baseUrl: string): string {
  const { host } = new URL(baseUrl);
  if (apiKey === null) return `anonymous@${host}`;
  return `key-${createHash('sha256').update(apiKey).digest('hex').slice(0, 12)}@${host}`;
}

export type AccountCheck =
  | { readonly kind: 'known'; readonly info: AccountInfo; readonly plan: PlanName | null }
  /** This upstream has no such endpoint. */
  | { readonly kind: 'not told' }
  /** Nothing that can be used came back: an outage, a 429. */
  | { readonly kind: 'unanswered'; readonly message: string }
  /** Not asked: the budget says no until then. */
  | { readonly kind: 'held'; readonly until: number; readonly reason: string };

/**
 * Asks `/users/me`, on 404 `/key/info`, remembers which answered, and reconciles the ledger.
 * @throws KeyRefused
 */
export async function checkAccount(deps: {
  readonly ask: Ask;
  readonly quota: Quota;
  readonly sql: Sql;
  readonly clock: Clock;
  /** What is known of the account at that moment: the answer itself may teach how its key is sent. */
  readonly saved: () => SavedAccount;
  /** As configured. */
  readonly sentAs: KeyRefusal['sentAs'];
  readonly signal?: AbortSignal | undefined;
}): Promise<AccountCheck> {
  const { ask, quota, sql, clock, saved, sentAs } = deps;
  const paths: readonly AccountPath[] = saved().accountPath === null ? ACCOUNT_PATHS : [saved().accountPath!];
  for (const path of paths) {
    const asked = await ask(
      { path },
      {
        spender: { class: 'scheduled', name: 'account', asksAccount: true },
        record: { endpoint: 'account' },
        signal: deps.signal,
      },
    );
    if (asked.kind === 'held') return asked;
    const { answer, record } = asked;
    if (answer.kind === 'refused' && answer.reason === 'forbidden')
      throw await keyRefused(sql, saved(), {
        at: clock.now(),
        sentAs,
        message: wrongKey(answer.message, asked.keySent),
      });
    if (answer.kind === 'refused' && (answer.reason === 'unknown route' || answer.reason === 'unknown id')) continue;
    if (answer.kind === 'malformed' && answer.astray) continue;
    if (answer.kind !== 'answered') {
      return { kind: 'unanswered', message: answer.message };
    }
    const read = readRecord(accountInfoSchema, answer.body);
    await recordFetch(sql, {
      ...record,
      outcome: read.ok ? 'stored' : 'malformed',
      message: read.ok ? null : read.problem,
    });
    if (!read.ok) continue;
    const info = read.value;
    const plan = isPlanName(info.plan) ? info.plan : null;
    const { requests_made: made, requests_left: left } = info.usage.current_month;
    const isTold = made !== null && left !== null;
    const unlimited = !isTold || made < 0 || left < 0;
    // A plan without a limit ends the old one's: its number, and that it was spent. Nothing told ends nothing.
    if (isTold) await quota.reconcile(unlimited ? { made: 0, left: null } : { made, left });
    await saveAccount(sql, {
      ...saved(),
      plan: plan ?? saved().plan,
      accountPath: path,
      checkedAt: clock.now(),
      monthLimit: unlimited ? null : made + left,
    });
    await forgetKeyRefusal(sql, saved().id);
    return { kind: 'known', info, plan };
  }
  await forgetKeyRefusal(sql, saved().id);
  return { kind: 'not told' };
}

/** How soon a refused key is tried again. */
const RETRY_MS = 60_000;
const backoff = createBackoff({ firstMs: RETRY_MS, mostMs: 6 * HOUR, factor: 4 });

/** The message names this instant, and every process computes it from the same row. */
function retryAt({ at, times }: KeyRefusal): Instant {
  return at + backoff(times - 1, WHOLE_BOUND);
}

async function keyRefused(sql: Sql, account: SavedAccount, refusal: Omit<KeyRefusal, 'times'>): Promise<KeyRefused> {
  return new KeyRefused(refusal.message, retryAt(await saveKeyRefusal(sql, account, refusal)));
}

/**
 * Whoever is about to ask with a key that was refused a while ago spends nothing on hearing it again; of all processes one asks again
 * when it is time. Another key is another account, and a key that is sent in another way is another question. @throws KeyRefused
 */
export async function heedRefusal(
  sql: Sql,
  { id, sentAs, now }: { readonly id: string; readonly sentAs: KeyRefusal['sentAs']; readonly now: Instant },
): Promise<void> {
  const known = await readKeyRefusal(sql, id);
  if (known === null || (known.sentAs !== 'auto' && known.sentAs !== sentAs)) return;
  const until = retryAt(known);
  // What is written down in the future is of before a clock was set back.
  const isTime = now >= until || known.at > now + MOST_SKEW_MS;
  if (isTime && (await mayAskAgain(sql, id, known, now))) return;
  const again = isTime ? now + RETRY_MS : until;
  throw new KeyRefused(refusedBefore(known.message, known.at, again), again);
}
