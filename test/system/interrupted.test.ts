import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { backfillTotals } from '../../src/store/backfill/backfill.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { World, WorldOptions } from '../support/world.ts';

const WORK = { coins: ['btc-bitcoin', 'eth-ethereum'], from: TODAY - 603 * DAY, to: TODAY - 3 * DAY };

let world: World;
let upstream: ScriptedWorld['upstream'];
afterEach(() => world?.close());

async function make(options: WorldOptions): Promise<void> {
  ({ world, upstream } = await createScriptedWorld(options));
}

/** Runs until so many requests for candles have been sent, and is then interrupted. */
async function interruptedAfter(requests: number, concurrency: number) {
  const chandler = await world.open({ candlesPerRequest: 10 });
  const stop = new AbortController();
  upstream.script = (request) => {
    if (request.url.includes('/ohlcv') && upstream.ohlcv().length >= requests) stop.abort();
    return null;
  };
  return chandler.backfill({ ...WORK, concurrency, signal: stop.signal });
}

async function spentBy(id: number): Promise<number> {
  const [row] = await world.database.sql<{ spent: number }[]>`
    select coalesce(sum(month_spent), 0)::int as spent from ops.quota_spent where name = ${`backfill ${id}`}`;
  return row!.spent;
}

describe('a run that is interrupted while its workers wait for their permits', () => {
  test.each([1, 2, 7])(
    'uses the permits that were granted, so that sent, recorded and counted requests agree (after %i requests)',
    async (requests) => {
      await make({ limits: { perSecond: 5 } });
      const run = await interruptedAfter(requests, 8);
      expect(run.end).toEqual({ kind: 'interrupted' });
      const sent = upstream.ohlcv().length;
      expect(sent).toBeGreaterThanOrEqual(requests);
      const totals = await backfillTotals(world.database.sql, run.id);
      expect(totals).toMatchObject({ requests: sent, byOutcome: { stored: sent } });
      expect(await spentBy(run.id)).toBe(sent);
    },
  );

  test('does not wait for a permit that is far away, and takes no further permits', async () => {
    await make({ speed: 10, limits: { perSecond: 1 / 20 } });
    const run = await interruptedAfter(1, 4);
    expect(run.end).toEqual({ kind: 'interrupted' });
    expect(upstream.ohlcv()).toHaveLength(1);
    expect(await spentBy(run.id)).toBe(1);
  });
});
