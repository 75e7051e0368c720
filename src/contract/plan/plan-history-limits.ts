/** How far back a plan may look, and at what: one rule for the simulator and for the warehouse's own service. */
import type { Clock, Instant } from '../../clock.ts';
import {
  historyLimitText,
  ID_CHANGES_REFUSAL,
  intervalLimitText,
  MAPPINGS_REFUSAL,
  tickerHistoryLimitText,
} from '../answer/errors.ts';
import type { Access } from './access.ts';
import { type Plan, type PlanName, planOf } from './plans.ts';

/** `plan`: the plan by its name, with the numbers that the operator overrides. */
export function createPlanHistoryLimits(
  clock: Clock,
  plan: (name: PlanName) => Plan = planOf,
): Pick<Access, 'refuseHistory' | 'refuseTickerHistory' | 'refuseIdChanges' | 'refuseMappings'> {
  return {
    refuseHistory(name, interval, start) {
      const { intervals, historyDepthMs } = plan(name);
      if (!intervals.includes(interval)) return intervalLimitText(interval);
      const earliest = historyDepthMs === null ? Number.NEGATIVE_INFINITY : clock.now() - historyDepthMs;
      return start < earliest ? historyLimitText(earliest, nanosecondsOf(earliest)) : null;
    },
    refuseTickerHistory(name, resolution, start) {
      const depthMs = plan(name).tickerHistoryDepthMs[resolution];
      if (depthMs === null) return null;
      const earliest = clock.now() - depthMs;
      if (depthMs > 0 && start >= earliest) return null;
      return depthMs === 0
        ? tickerHistoryLimitText(resolution, null)
        : tickerHistoryLimitText(resolution, earliest, nanosecondsOf(earliest));
    },
    refuseIdChanges: (name) => (plan(name).idChanges ? null : ID_CHANGES_REFUSAL),
    refuseMappings: (name) => (plan(name).mappings ? null : MAPPINGS_REFUSAL),
  };
}

/** The upstream's clock has nanoseconds; ours are derived from the instant, so that the text looks and parses like theirs. */
function nanosecondsOf(at: Instant): number {
  return (Math.floor(at) * 7_919) % 1_000_000;
}
