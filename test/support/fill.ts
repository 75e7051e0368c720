/** Runs backfills one after the other until nothing is left that time alone would bring, the clock set forward between them. */
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

/** Longer waits are not sat out. */
const MAX_WAIT_MS = 20_000;
const MOST_RUNS = 60;

/** Resolves to how many runs it took. */
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

/** When the next pending span is worth asking about again; null when none is, ever. */
export async function nextDue({ database }: World): Promise<number | null> {
  const [row] = await database.sql<{ due: number | null }[]>`
    select min(retry_at) as due from ops.second_opinion where series_id is not null and retry_at < 'infinity'`;
  return row?.due ?? null;
}
