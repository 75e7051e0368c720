/** A 429 or a 503 in the midst of a run at full pace. */
import { afterEach, describe, expect, test } from 'vitest';
import { says } from '../support/scripted.ts';
import { make, readLast, upstream, WORK, world } from './pace.ts';

afterEach(() => world?.close());

describe('429', () => {
  test.each([429, 503])(
    'a %i with Retry-After stops the process that reads it at once: not even the turns it had taken are used',
    async (status) => {
      await make({ speed: 4, limits: { perSecond: 10 } });
      const chandler = await world.open({ candlesPerRequest: 20 });
      upstream.forget();
      let read: { readonly at: number; readonly sent: number } | undefined;
      upstream.script = (request) => {
        if (!request.url.includes('ohlcv') || upstream.ohlcv().length !== 12 || read !== undefined) return null;
        return readLast(says(status, 'slow down', { 'Retry-After': '20' }), () => {
          read = { at: world.clock.now(), sent: upstream.ohlcv().length };
        });
      };
      const run = await chandler.backfill({ ...WORK, concurrency: 8 });
      expect(run.end).toEqual({ kind: 'done' });
      expect(run.totals!.requests).toBe(upstream.ohlcv().length);
      const next = upstream.ohlcv()[read!.sent]!;
      expect(next.at - read!.at).toBeGreaterThanOrEqual(20_000);
      // Turns that were lost had been granted, so they stay counted. Nobody lost more than one; how many of the eight had one then, the moment decides.
      const [ledger] = await world.database.sql<{ spent: number }[]>`
        select month_spent::int as spent from ops.quota_spent where class = 'backfill'`;
      expect(ledger!.spent).toBeGreaterThanOrEqual(upstream.ohlcv().length);
      expect(ledger!.spent).toBeLessThanOrEqual(upstream.ohlcv().length + 8);
    },
  );
});
