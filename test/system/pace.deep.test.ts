/** A 429 or a 503 in the middle of a run at full rate. */
import { afterEach, describe, expect, test } from 'vitest';
import { says } from '../support/scripted.ts';
import { make, readLast, testRetryAfter, upstream, WORK, world } from './pace.ts';

afterEach(() => world?.close());

describe('429', () => {
  testRetryAfter('as a date');

  test.each([429, 503])(
    'a %i with Retry-After stops the process that reads it at once: not even permits that it holds are used',
    async (status) => {
      // Not faster than the clock: a busy machine would send more slowly than the rate, and nothing would wait for a permit.
      await make({ speed: 1, limits: { perSecond: 10 } });
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
      // The lost permits were granted, so they stay counted. No worker lost more than one.
      const [ledger] = await world.database.sql<{ spent: number }[]>`
        select month_spent::int as spent from ops.quota_spent where class = 'backfill'`;
      expect(ledger!.spent).toBeGreaterThan(upstream.ohlcv().length);
      expect(ledger!.spent).toBeLessThanOrEqual(upstream.ohlcv().length + 8);
    },
  );
});
