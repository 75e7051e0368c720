/** An upstream that tells us to slow down, and how fast it was asked. */
import { DAY } from '../../src/core/interval.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { WorldOptions } from '../support/world.ts';

export const COINS = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'];
export const WORK = { coins: COINS, from: TODAY - 603 * DAY, to: TODAY - 3 * DAY };

export let world: ScriptedWorld['world'];
export let upstream: ScriptedWorld['upstream'];
export async function make(options: WorldOptions = {}): Promise<void> {
  ({ world, upstream } = await createScriptedWorld(options));
}

export function arrivals(): number[] {
  return upstream.ohlcv().map((asked) => asked.at);
}

/** The most of them in any stretch of time this long. */
export function mostWithin(ms: number, instants: readonly number[]): number {
  return Math.max(...instants.map((from) => instants.filter((at) => at >= from && at < from + ms).length));
}

/** The same answer; tells when the last of it is read. */
export function readLast(answer: Response, onRead: () => void): Response {
  const body = new ReadableStream(
    {
      async start(controller) {
        controller.enqueue(new Uint8Array(await answer.arrayBuffer()));
      },
      pull: (controller) => {
        onRead();
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: answer.status, headers: answer.headers });
}
