/** The walls of the current plan, one per interval: kept in step with the database as answers teach, and read again by who lives long. */
import type { Clock, Instant } from '../../clock.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import { DAY, INTERVALS, type Interval } from '../../core/interval.ts';
import { activeWalls, recordOpenWall, recordWall } from '../../store/candle/refusal.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { documentedWall, knownDepth, type Wall } from './history-limit.ts';
import type { Depth } from './parsed-limit.ts';

export type Walls = {
  of(interval: Interval): Wall;
  /** Upstream refused for the plan's sake; remembered until the plan changes, and after a day looked for again by one request. */
  meet(interval: Interval, met: Depth & { readonly message: string; readonly fetchId: number | null }): Promise<void>;
  /** Upstream gave candles from beyond the documented wall; remembered likewise. */
  open(interval: Interval): Promise<void>;
  /** Reads again what is known: other processes learn, too, and what was learned a day ago is doubted. For who lives long. */
  reload(): Promise<void>;
};

export async function readWalls(sql: Sql, clock: Clock, plan: Plan): Promise<Walls> {
  const walls = new Map<Interval, Wall>();
  /** Being written down: newer than what can be read. */
  const learning = new Set<Interval>();
  const reload = async () => {
    const known = await activeWalls(sql, plan.name);
    for (const interval of INTERVALS) {
      if (learning.has(interval)) continue;
      const row = known.find((one) => one.interval === interval);
      const wall = row === undefined ? documentedWall(plan, interval) : asKnown(row, clock.now());
      const before = walls.get(interval);
      // How far upstream's clock is ahead of ours is not written down.
      if (before?.kind === 'met' && wall.kind === 'met' && before.depthMs === wall.depthMs) continue;
      walls.set(interval, wall);
    }
  };
  await reload();
  /** Known at once to everybody here; forgotten again when it cannot be written down, so that trying again writes it. */
  const learn = async (interval: Interval, wall: Wall, record: () => Promise<void>) => {
    const known = walls.get(interval)!;
    walls.set(interval, wall);
    learning.add(interval);
    await record()
      .catch((error: unknown) => {
        if (walls.get(interval) === wall) walls.set(interval, known);
        throw error;
      })
      .finally(() => learning.delete(interval));
  };
  return {
    reload,
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

type Row = Awaited<ReturnType<typeof activeWalls>>[number];

/** What it was about may have passed, or a clock have been wrong: after a day it is a forecast, which one request tries. */
function asKnown({ open, depthMs, message, learnedAt }: Row, now: Instant): Wall {
  if (open) return { kind: 'open' };
  if (now - learnedAt > DAY) return { kind: 'documented', depthMs: depthMs ?? 0, refusedBefore: true };
  return { kind: 'met', depthMs: depthMs ?? 0, skewMs: 0, message };
}

type Met = Extract<Wall, { kind: 'met' }>;

function reach(wall: Met): number {
  return wall.depthMs === 0 ? Number.NEGATIVE_INFINITY : knownDepth(wall)!;
}
