/** A scripted upstream with a real client, ledger and database, for tests of single requests: no simulator, no queue. */
import { createQuota, GRACE_MS } from '../../src/quota/ledger.ts';
import type { Limits, Quota } from '../../src/quota/quota.ts';
import { createUpstream } from '../../src/upstream/client.ts';
import type { FetchFunction } from '../../src/upstream/wire.ts';
import type { TestDatabase } from './database.ts';
import { createJumpingClock, type JumpingClock } from './jumping-clock.ts';

export const UPSTREAM_NOW = Date.UTC(2026, 10, 21, 12);
export const BASE_URL = 'http://upstream.test/v1';
export const NO_LIMITS: Limits = { perMonth: null, perDay: null, perSecond: null };

type Reply = Response | (() => Response | Promise<Response>);

export type SentToUpstream = { readonly path: string; readonly authorization: string | null };

/** Sends the answers in this order and repeats the last one. `sent` holds the requests that arrived. */
export function createScriptedUpstream({ key = null }: { readonly key?: string | null } = {}) {
  const clock: JumpingClock = createJumpingClock({ speed: 1, startAt: UPSTREAM_NOW });
  const sent: SentToUpstream[] = [];
  let replies: readonly Reply[] = [];
  let next = 0;
  const fetch: FetchFunction = async (request) => {
    const url = new URL(request.url);
    sent.push({ path: url.pathname + url.search, authorization: request.headers.get('authorization') });
    const reply = replies[Math.min(next++, replies.length - 1)];
    if (reply === undefined) throw new Error(`nothing was scripted for ${request.url}`);
    return typeof reply === 'function' ? reply() : reply.clone();
  };
  const answers = (...these: readonly Reply[]) => {
    replies = these;
    next = 0;
  };
  return { clock, sent, fetch, answers, client: createUpstream({ baseUrl: BASE_URL, key, clock, fetch }) };
}

/** The ledger of an account, on the clock of the script. */
export function createScriptedQuota(
  { sql }: Pick<TestDatabase, 'sql'>,
  { clock, accountId, limits = NO_LIMITS }: { clock: JumpingClock; accountId: string; limits?: Limits },
): Quota {
  return createQuota({
    sql,
    clock,
    accountId,
    limits,
    reserved: () => ({ day: 0, month: 0 }),
    useDatabaseClock: false,
    random: () => 0.5,
    // A permit does not expire on a busy machine.
    lateMs: GRACE_MS,
  });
}
