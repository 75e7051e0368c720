/** Writes into the ledger how the upstream answered our requests. `backoff-state.ts` computes the new state. */
import type { Clock, Instant } from '../clock.ts';
import type { Sql } from '../store/connection/connect.ts';
import { changeLedger, type Ledger } from '../store/quota/quota.ts';
import {
  afterAnswered,
  afterExhausted,
  afterLimited,
  afterReconciled,
  afterUnavailable,
  LONGEST_OUTAGE_WAIT_MS,
} from './backoff-state.ts';
import type { LedgerClock } from './clock-offset.ts';
import type { Gate } from './gate.ts';
import type { Quota } from './quota.ts';

/** The shortest backoff. This process waits so long before it knows the shared backoff from the ledger. */
const SHORTEST_BACK_OFF_MS = 500;
const LONGEST_MESSAGE = 300;

type ReportDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly ledgerClock: LedgerClock;
  readonly accountId: string;
  readonly gate: Gate;
  readonly graceMs: number;
  /** In [0, 1): spreads backoffs. */
  readonly random: () => number;
};

type UpstreamReports = Pick<Quota, 'pause' | 'limited' | 'exhausted' | 'unavailable' | 'answered' | 'reconcile'> & {
  /** Records that the ledger contains failures or refusals of the upstream, so that the next good answer is written into it. */
  noteBackoff(): void;
};

export function createUpstreamReports(deps: ReportDeps): UpstreamReports {
  const { sql, clock, ledgerClock, accountId, gate, graceMs, random } = deps;
  // Known without a read of the ledger: whether it has failures that a good answer ends, and when the newest answered request was sent.
  let isBackingOff = false;
  let lastAnswered = Number.NEGATIVE_INFINITY;

  const at = () => ({ accountId, now: ledgerClock.now() });
  /** The newest answer, if it is not dated in the future: the clock was set back since, and then it says nothing about the requests of now. */
  const newestAnswered = () => (lastAnswered > clock.now() ? Number.NEGATIVE_INFINITY : lastAnswered);
  /** Converts `sentAt` from our clock to the ledger's for `step`. A request of before the clock was set back counts as sent now. */
  const change = async (
    sentAt: Instant,
    step: (ledger: Ledger, now: Instant, sentAt: Instant) => Ledger,
  ): Promise<void> => {
    const agoMs = Math.max(0, clock.now() - sentAt);
    const ledger = await changeLedger(sql, at(), (old, now) => step(old, now, now - agoMs));
    isBackingOff = ledger.downStreak > 0 || ledger.limitedStreak > 0 || ledger.probe !== null;
  };

  return {
    noteBackoff: () => {
      isBackingOff = true;
    },
    pause({ reason, retryAfterMs }) {
      const wait = retryAfterMs ?? (reason === 'limited' ? SHORTEST_BACK_OFF_MS : 0);
      const bound = reason === 'limited' ? wait : Math.min(wait, LONGEST_OUTAGE_WAIT_MS);
      if (bound > 0) gate.hold(clock.now(), { reason, until: clock.now() + bound });
    },
    async limited({ sentAt, retryAfterMs, message }) {
      const event = { retryAfterMs, message: message.slice(0, LONGEST_MESSAGE), random: random() };
      let waitMs = 0;
      await change(sentAt, (ledger, now, sent) => {
        const next = afterLimited(ledger, now, { ...event, sentAt: sent });
        waitMs = next.limitedUntil - now;
        return next;
      });
      if (waitMs > 0) gate.hold(clock.now(), { reason: 'limited', until: clock.now() + waitMs });
    },
    async exhausted({ sentAt, window, message }) {
      const event = { window, graceMs, message: message.slice(0, LONGEST_MESSAGE) };
      await change(sentAt, (ledger, _now, sent) => afterExhausted(ledger, { ...event, sentAt: sent }));
    },
    async unavailable({ sentAt, retryAfterMs, message }) {
      // The upstream has answered a request that was sent after this one, so it is not down.
      if (sentAt < newestAnswered() && retryAfterMs === null) return;
      const event = { retryAfterMs, message: message.slice(0, LONGEST_MESSAGE), random: random() };
      await change(sentAt, (ledger, now, sent) => afterUnavailable(ledger, now, { ...event, sentAt: sent }));
    },
    async answered({ sentAt }) {
      const sentBy = Math.min(sentAt, clock.now());
      lastAnswered = Math.max(newestAnswered(), sentBy);
      gate.answered(sentBy);
      if (!isBackingOff) return;
      const record = async (answeredRequestAt: Instant) => {
        isBackingOff = false;
        try {
          await change(answeredRequestAt, (ledger, now, sent) => afterAnswered(ledger, now, { sentAt: sent }));
        } catch (error) {
          // The caller repeats the report, and the repetition must record it.
          isBackingOff = true;
          throw error;
        }
      };
      let known = lastAnswered;
      await record(sentBy);
      // The answers that came meanwhile were not recorded. The newest of them may end an outage that this one did not end.
      while (isBackingOff && lastAnswered > known) {
        known = lastAnswered;
        await record(known);
      }
    },
    async reconcile(usage) {
      await changeLedger(sql, at(), (ledger, now) => afterReconciled(ledger, now, usage));
    },
  };
}
