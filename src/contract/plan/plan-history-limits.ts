/** Which data a plan may read, and how far back: one rule for the simulator and for the service of the warehouse. */
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

/** `plan` returns the plan with that name, including the numbers that the operator overrides. */
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

/** The upstream's clock has nanoseconds. We derive some from the instant, so that the text looks and parses like the upstream's. */
function nanosecondsOf(at: Instant): number {
  return (Math.floor(at) * 7_919) % 1_000_000;
}
