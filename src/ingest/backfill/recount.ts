/** Recounts what is left for waiting backfills when another backfill that wants the same slots has come or changed: no slot counts twice. */
import type { Instant } from '../../clock.ts';
import { keptPart, type Retention } from '../../core/settings/retention-settings.ts';
import { readWaitingForSame, saveLeft } from '../../store/backfill/slot-owner.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { LearnedLimits } from '../limits/learned-limits.ts';
import { type PlanOptions, planBackfill } from './plan.ts';

export type RecountDeps = {
  readonly sql: Sql;
  readonly now: Instant;
  readonly plan: PlanOptions['plan'];
  readonly historyLimits: Pick<LearnedLimits, 'of'>;
  readonly keep?: Partial<Retention['candles']>;
};

/** Recounts this backfill, and those that want its slots. A process that runs a backfill counts it itself. */
export async function recountWaiting(deps: RecountDeps, id: number): Promise<void> {
  const { sql, now, plan, historyLimits, keep = {} } = deps;
  for (const place of await readWaitingForSame(sql, id)) {
    const { interval } = place;
    const target = { ...place, span: keptPart(place.span, interval, keep, now) };
    const historyLimit = historyLimits.of(interval);
    const planned = await planBackfill({ sql, target, now, requestedSince: now, plan, historyLimit, place });
    const { cost, othersSlots } = planned;
    await saveLeft(sql, place.id, { left: cost.requests, hasOnlyOthers: cost.slots === 0 && othersSlots > 0 });
  }
}
