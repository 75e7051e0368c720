/** What keeps Chandler from sending requests: for the top of every page, the page of the quota, and the list of what needs attention. */
import type { App } from '../../app.ts';
import type { Budget } from '../../budget.ts';
import type { Need } from '../../dashboard/parts/needs.tsx';
import { type StandingRefusal, standingRefusal } from '../../ingest/request/account.ts';
import type { QuotaState } from '../../quota/quota.ts';
import { type HeldLock, lockSentence, readHeldLock } from '../../views/operations/blocking-sessions.ts';
import type { State } from '../notice/states.ts';
import { explainAccountWait } from '../operator/wait-explanation.ts';

export type Holds = {
  readonly state: QuotaState;
  readonly refusal: StandingRefusal | null;
  /** A lock that another session holds and Chandler needs. Null when there is none. */
  readonly lock: HeldLock | null;
  /** Sentences that say what holds all requests, or those of backfills, including the lock. */
  readonly holds: readonly string[];
};

export async function readHolds({ clock, config, database: { sql } }: App, budget: Budget): Promise<Holds> {
  const lock = await readHeldLock(sql, clock.now());
  const [state, refusal] = await Promise.all([
    budget.quota.state(),
    standingRefusal(sql, { id: budget.accountId, sentAs: config.authScheme }),
  ]);
  const waits = explainAccountWait({ state, budget, refusal });
  return { state, refusal, lock, holds: lock === null ? waits : [...waits, lockSentence(lock)] };
}

/** The worst need first. Leaves out what the open states already say. */
export function needsOfHolds({ state, refusal, lock, holds }: Holds, states: readonly State[]): readonly Need[] {
  const isShown = (event: State['event']) => states.some((one) => one.event === event);
  const button = { text: 'See the requests', href: '/ui/requests' };
  const waits = lock === null ? holds : holds.slice(0, -1);
  const [refused, others] = refusal === null ? [[], waits] : [waits.slice(0, 1), waits.slice(1)];
  const isSilent = state.outage !== null && state.hold === null && !isShown('upstream-down');
  return [
    ...(isShown('key-refused') ? [] : refused).map(
      (text): Need => ({ text, since: refusal!.since, kind: 'bad', requests: null, button }),
    ),
    ...(isSilent ? [`The upstream gave no usable answer to the last requests: ${state.outage!.message}`] : []).map(
      (text): Need => ({ text, since: null, kind: 'bad', requests: null, button }),
    ),
    ...(lock === null || isShown('database-locked') ? [] : [lock]).map(
      (held): Need => ({ text: lockSentence(held), since: held.since, kind: 'bad', requests: null, button }),
    ),
    ...others.map(
      (text): Need => ({
        ...{ text, since: null, kind: 'warn', requests: null },
        button: { text: 'See the quota', href: '/ui/quota' },
      }),
    ),
  ];
}
