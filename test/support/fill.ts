/** Runs backfills one after the other, with the clock set forward between them, until waiting longer would bring nothing more. */
import { expect } from 'vitest';
import type { Interval } from '../../src/core/interval.ts';
import type { Chandler, World } from './world.ts';

export type FillTarget = {
  readonly coins: readonly string[];
  readonly interval?: Interval;
  readonly quote?: 'usd' | 'btc';
  readonly from: number;
  readonly to: number;
  readonly concurrency?: number;
};

/** A run does not wait longer than this. */
const MAX_WAIT_MS = 20_000;
const MOST_RUNS = 60;

/** Resolves to the number of runs. */
export async function fill(world: World, chandler: Chandler, target: FillTarget): Promise<number> {
  for (let runs = 1; ; runs++) {
    expect(runs, 'runs without an end').toBeLessThan(MOST_RUNS);
    const { end } = await chandler.backfill({ ...target, maxWaitMs: MAX_WAIT_MS });
    if (end.kind === 'stopped') world.clock.advanceTo(end.until + 1_000);
    else {
      expect(end).toEqual({ kind: 'done' });
      const due = await nextDue(world);
      if (due === null) return runs;
      world.clock.advanceTo(due + 1_000);
    }
  }
}

/** When the next pending span may be requested again; null when there is none. */
export async function nextDue({ database }: World): Promise<number | null> {
  const [row] = await database.sql<{ due: number | null }[]>`
    select min(retry_at) as due from ops.second_opinion where series_id is not null and retry_at < 'infinity'`;
  return row?.due ?? null;
}
