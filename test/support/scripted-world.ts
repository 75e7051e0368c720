/** A whole Chandler whose upstream answers as the test wants; the simulator answers the rest. */
import { DAY } from '../../src/core/interval.ts';
import { createScripted } from './scripted.ts';
import { createWorld, type World, type WorldOptions } from './world.ts';

/** The start of such a world: a noon, far from the border of any window. */
export const NOW = Date.UTC(2026, 10, 18, 12);
export const TODAY = Math.floor(NOW / DAY) * DAY;

export type ScriptedWorld = { readonly world: World; readonly upstream: ReturnType<typeof createScripted> };

export async function createScriptedWorld(options: WorldOptions = {}): Promise<ScriptedWorld> {
  const upstream = createScripted();
  const world = await createWorld({
    startAt: NOW,
    fetch: upstream.fetch,
    simulator: { seed: 3, coins: 6, unlimited: true },
    ...options,
  });
  return { world, upstream };
}
