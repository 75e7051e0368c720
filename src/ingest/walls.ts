/** The walls of the current plan, one per interval: read once, kept in step with the database as answers teach. */
import type { Clock } from '../clock.ts';
import type { Plan } from '../contract/plans.ts';
import { DAY, INTERVALS, type Interval } from '../core/interval.ts';
import type { Sql } from '../store/connect.ts';
import { activeWalls, recordOpenWall, recordWall } from '../store/refusal.ts';
import { documentedWall, knownDepth, type Wall } from './wall.ts';
import type { Depth } from './wall-depth.ts';

export type Walls = {
  of(interval: Interval): Wall;
  /** Upstream refused for the plan's sake; remembered until the plan changes, and after a day looked for again by one request. */
  meet(interval: Interval, met: Depth & { readonly message: string; readonly fetchId: number | null }): Promise<void>;
  /** Upstream gave candles from beyond the documented wall; remembered likewise. */
  open(interval: Interval): Promise<void>;
};

export async function readWalls(sql: Sql, clock: Clock, plan: Plan): Promise<Walls> {
  const walls = new Map<Interval, Wall>(INTERVALS.map((interval) => [interval, documentedWall(plan, interval)]));
  for (const { interval, open, depthMs, message, learnedAt } of await activeWalls(sql, plan.name)) {
    // What it was about may have passed, or a clock have been wrong: after a day it is a forecast, which one request tries.
    if (open) walls.set(interval, { kind: 'open' });
    else if (clock.now() - learnedAt > DAY)
      walls.set(interval, { kind: 'documented', depthMs: depthMs ?? 0, refusedBefore: true });
    else walls.set(interval, { kind: 'met', depthMs: depthMs ?? 0, skewMs: 0, message });
  }
  /** Known at once to everybody here; forgotten again when it cannot be written down, so that trying again writes it. */
  const learn = async (interval: Interval, wall: Wall, record: () => Promise<void>) => {
    const known = walls.get(interval)!;
    walls.set(interval, wall);
    await record().catch((error: unknown) => {
      if (walls.get(interval) === wall) walls.set(interval, known);
      throw error;
    });
  };
  return {
    of: (interval) => walls.get(interval)!,
    meet: async (interval, { depthMs, skewMs, message, fetchId }) => {
      // Of several refusals under way at once the strictest tells most.
      const known = walls.get(interval)!;
      const wall: Met = { kind: 'met', depthMs, skewMs, message };
      if (known.kind === 'met' && reach(known) <= reach(wall)) return;
      await learn(interval, wall, () =>
        recordWall(sql, {
          plan: plan.name,
          interval,
          depthMs: depthMs === 0 ? null : depthMs,
          message,
          refusedAt: clock.now(),
          fetchId,
        }),
      );
    },
    open: async (interval) => {
      if (walls.get(interval)!.kind !== 'documented') return;
      await learn(interval, { kind: 'open' }, () =>
        recordOpenWall(sql, { plan: plan.name, interval, provenAt: clock.now() }),
      );
    },
  };
}

type Met = Extract<Wall, { kind: 'met' }>;

function reach(wall: Met): number {
  return wall.depthMs === 0 ? Number.NEGATIVE_INFINITY : knownDepth(wall)!;
}
