/** An upstream that answers 402, for one reason or another. */
import { DAY, HOUR } from '../../src/core/interval.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { World, WorldOptions } from '../support/world.ts';

export const MONTH_RESET = Date.UTC(2026, 11, 1);
export const WORK = {
  coins: ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'],
  from: TODAY - 1_500 * DAY,
  to: TODAY - 3 * DAY,
  concurrency: 4,
  maxWaitMs: HOUR,
};
export const CHUNKS = 3 * Math.ceil(1_497 / 366);
export const SPENT = 'you have reached maximum request limit';

export let world: World;
export let upstream: ScriptedWorld['upstream'];

export async function make(options: WorldOptions): Promise<void> {
  ({ world, upstream } = await createScriptedWorld(options));
}
export const accountAsked = () => upstream.log.filter((asked) => asked.path.endsWith('/users/me')).length;
export const refusals = () => upstream.ohlcv().filter((asked) => asked.status === 402).length;
export const account =
  (made: number, left: number, status = 'active', plan = 'ultimate') =>
  (request: Request) =>
    request.url.endsWith('/users/me')
      ? Response.json({
          plan,
          plan_started_at: '2026-01-01T00:00:00Z',
          plan_status: status,
          portal_url: null,
          usage: { message: '', current_month: { requests_made: made, requests_left: left } },
        })
      : null;
