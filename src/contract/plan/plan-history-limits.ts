/** How far back a plan may look, and at what: the refusals of the simulator and of the warehouse's own service, which must not differ. */
import type { Clock, Instant } from '../../clock.ts';
import { historyWallText, ID_CHANGES_WALL, intervalWallText, tickerWallText } from '../answer/errors.ts';
import type { Access } from './access.ts';
import { type Plan, type PlanName, planOf } from './plans.ts';

/** `plan`: the plan of a name, with what the operator has changed of it. */
export function createPlanWalls(
  clock: Clock,
  plan: (name: PlanName) => Plan = planOf,
): Pick<Access, 'refuseHistory' | 'refuseTickerHistory' | 'refuseIdChanges'> {
  return {
    refuseHistory(name, interval, start) {
      const { intervals, historyDepthMs } = plan(name);
      if (!intervals.includes(interval)) return intervalWallText(interval);
      const wall = historyDepthMs === null ? Number.NEGATIVE_INFINITY : clock.now() - historyDepthMs;
      return start < wall ? historyWallText(wall, nanosecondsOf(wall)) : null;
    },
    refuseTickerHistory(name, resolution, start) {
      const depthMs = plan(name).tickerHistoryDepthMs[resolution];
      if (depthMs === null) return null;
      const wall = clock.now() - depthMs;
      if (depthMs > 0 && start >= wall) return null;
      return depthMs === 0 ? tickerWallText(resolution, null) : tickerWallText(resolution, wall, nanosecondsOf(wall));
    },
    refuseIdChanges: (name) => (plan(name).idChanges ? null : ID_CHANGES_WALL),
  };
}

/** The upstream's own clock has nanoseconds; ours are made from the instant, so that the text looks and parses like theirs. */
function nanosecondsOf(at: Instant): number {
  return (Math.floor(at) * 7_919) % 1_000_000;
}
