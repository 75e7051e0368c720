/**
 * The history limits of the current plan, one per interval. Answers teach them, the database stores them, and long-running processes reload them.
 */
import type { Clock, Instant } from '../../clock.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import { ALL_INTERVALS, DAY, type Interval } from '../../core/interval.ts';
import {
  type KnownLimit,
  readHistoryLimits,
  recordHistoryLimit,
  recordLiftedLimit,
} from '../../store/candle/refusal.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { documentedLimit, type HistoryLimit, knownDepth } from './history-limit.ts';
import type { Depth } from './parsed-limit.ts';
import { openSecondOpinions, type SecondOpinions } from './second-opinions.ts';

export type LearnedLimits = {
  of(interval: Interval): HistoryLimit;
  /** Stores a limit that refusals have proved. It stays until the plan changes; after a day, one request tests whether it still holds. */
  learn(
    interval: Interval,
    limit: Depth & { readonly message: string; readonly fetchId: number | null },
  ): Promise<void>;
  /** Stores that the upstream sent candles from beyond the documented limit, also until the plan changes. */
  lift(interval: Interval): Promise<void>;
  /** Reads what other processes have learned. A limit that was learned more than a day ago becomes a forecast. */
  reload(): Promise<void>;
  /** Limits and other refusals that still need a second opinion. */
  readonly opinions: SecondOpinions;
};

export async function readLearnedLimits(sql: Sql, clock: Clock, plan: Plan): Promise<LearnedLimits> {
  const opinions = await openSecondOpinions(sql, clock, plan.name);
  const limits = new Map<Interval, HistoryLimit>();
  /** Limits that this process is writing now: newer than what it can read. */
  const learning = new Set<Interval>();
  const reload = async () => {
    const known = await readHistoryLimits(sql, plan.name);
    for (const interval of ALL_INTERVALS) {
      if (learning.has(interval)) continue;
      const row = known.find((one) => one.interval === interval);
      const limit = row === undefined ? documentedLimit(plan, interval) : asKnown(row, clock.now());
      const before = limits.get(interval);
      // The database does not store how far the upstream's clock is ahead of ours, so the known value stays.
      if (before?.kind === 'met' && limit.kind === 'met' && before.depthMs === limit.depthMs) continue;
      limits.set(interval, limit);
    }
  };
  await reload();
  /** Changes the limit in memory at once, for all of this process. If the write fails, the old value returns, so that a retry writes again. */
  const remember = async (interval: Interval, limit: HistoryLimit, record: () => Promise<void>) => {
    const before = limits.get(interval)!;
    limits.set(interval, limit);
    learning.add(interval);
    await record()
      .catch((error: unknown) => {
        if (limits.get(interval) === limit) limits.set(interval, before);
        throw error;
      })
      .finally(() => learning.delete(interval));
  };
  return {
    opinions,
    reload: async () => {
      await Promise.all([reload(), opinions.reload()]);
    },
    of: (interval) => limits.get(interval)!,
    learn: async (interval, { depthMs, skewMs, message, fetchId }) => {
      // Several refusals may be under way at the same time; only the strictest is kept.
      const known = limits.get(interval)!;
      const limit: Met = { kind: 'met', depthMs, skewMs, message };
      if (known.kind === 'met' && reach(known) <= reach(limit)) return;
      await remember(interval, limit, () =>
        recordHistoryLimit(sql, {
          plan: plan.name,
          interval,
          depthMs: depthMs === 0 ? null : depthMs,
          message,
          refusedAt: clock.now(),
          fetchId,
        }),
      );
    },
    lift: async (interval) => {
      if (limits.get(interval)!.kind !== 'documented') return;
      await remember(interval, { kind: 'open' }, () =>
        recordLiftedLimit(sql, { plan: plan.name, interval, liftedAt: clock.now() }),
      );
    },
  };
}

/** The limit may have been lifted, or a clock may have been wrong. So after a day the limit is a forecast, which one request tests. */
function asKnown({ open, depthMs, message, learnedAt }: KnownLimit, now: Instant): HistoryLimit {
  if (open) return { kind: 'open' };
  if (now - learnedAt > DAY) return { kind: 'documented', depthMs: depthMs ?? 0, refusedBefore: true };
  return { kind: 'met', depthMs: depthMs ?? 0, skewMs: 0, message };
}

type Met = Extract<HistoryLimit, { kind: 'met' }>;

function reach(limit: Met): number {
  return limit.depthMs === 0 ? Number.NEGATIVE_INFINITY : knownDepth(limit)!;
}
