/** An account without any limit, and what is counted of its requests. */
import { expect } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { World, WorldOptions } from '../support/world.ts';

export const WORK = {
  coins: ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'],
  from: TODAY - 2_003 * DAY,
  to: TODAY - 3 * DAY,
};
export const SLOTS = 20;
export const CONCURRENCY = 4;
/** Of some hundred permits. */
export const MOST_LATE = 20;

export let world: World;
export let upstream: ScriptedWorld['upstream'];

export async function make(options?: WorldOptions): Promise<void> {
  ({ world, upstream } = await createScriptedWorld(options));
}

export async function counted(): Promise<number> {
  const [row] = await world.database.sql<{ n: number; spent: number }[]>`
    select (select sum(month_spent)::int from ops.quota_spent) as n, (select month_spent::int from ops.quota) as spent`;
  expect(row!.spent).toBe(row!.n);
  return row!.n;
}
