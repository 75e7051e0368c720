/** An upstream that asks for a pause, and the rate of the requests that arrived. */
import { expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { says } from '../support/scripted.ts';
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

/** The highest number of them in any stretch of time this long. */
export function mostWithin(ms: number, instants: readonly number[]): number {
  return Math.max(...instants.map((from) => instants.filter((at) => at >= from && at < from + ms).length));
}

/** The same answer. Reports when its end is read. */
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

const RETRY_AFTER = {
  'in seconds': (at: number) => String(Math.ceil((at - world.clock.now()) / 1000)),
  'as a date': (at: number) => new Date(Math.ceil(at / 1000) * 1000).toUTCString(),
};

/** Longer than it takes the other process to hear of the pause. */
const PAUSE_MS = 5_000;

export function testRetryAfter(how: keyof typeof RETRY_AFTER): void {
  test(`with Retry-After ${how} stops all workers of all processes: no request is sent during the pause`, async () => {
    const header = RETRY_AFTER[how];
    await make({ speed: 2 });
    const chandlers = [await world.open({ candlesPerRequest: 20 }), await world.open({ candlesPerRequest: 20 })];
    const TWO = COINS.slice(1);
    const pauses: { from: number; to: number }[] = [];
    let n = 0;
    upstream.forget();
    upstream.script = (request) => {
      if (!request.url.includes('ohlcv') || ++n % 25 !== 0 || pauses.length === 2) return null;
      const to = world.clock.now() + PAUSE_MS;
      pauses.push({ from: world.clock.now(), to });
      return says(429, 'slow down', { 'Retry-After': header(to) });
    };
    const [one, two] = await Promise.all(
      chandlers.map((chandler, i) =>
        chandler.backfill({ ...WORK, concurrency: 4, coins: i === 0 ? TWO : [...TWO].reverse() }),
      ),
    );
    expect([one!.end, two!.end]).toEqual([{ kind: 'done' }, { kind: 'done' }]);
    expect(pauses).toHaveLength(2);
    // The other process hears of it from the ledger. Until then its workers may have sent requests with permits that they held.
    const HEARD_OF_MS = 1_500;
    for (const { from, to } of pauses) {
      const inside = upstream.ohlcv().filter((asked) => asked.at > from && asked.at < to - 1_000);
      expect(inside.filter((asked) => asked.at > from + HEARD_OF_MS)).toEqual([]);
    }
    expect(upstream.ohlcv().filter((asked) => asked.status === 429)).toHaveLength(2);
  });
}
