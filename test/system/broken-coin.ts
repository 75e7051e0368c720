/** A coin on which the upstream always fails, when nothing else is left to request: is it the coin, or an outage? */
import { expect, test } from 'vitest';
import { exitOf } from '../../src/cli/backfill/exit-of.ts';
import { says } from '../support/scripted.ts';
import { HEALTHY, MINUTE, make, others, POISONED, upstream, WORK, world } from './poisoned.ts';

export const COINS = [POISONED, HEALTHY[0]!];
/** The default wait of `chandler backfill`. The clock runs no faster than a busy machine can follow within that time. */
export const BY_DEFAULT = { maxWaitMs: 5 * MINUTE };
export const isOf = (request: Request, coin: string) => request.url.includes(`${coin}/ohlcv`);
export const chunksOf = (coin: string) =>
  upstream.ohlcv().filter((asked) => asked.coin === coin && asked.path.endsWith('/ohlcv/historical'));

export const broken = (request: Request) => (isOf(request, POISONED) ? says(500, 'An unexpected server error') : null);

/** What the upstream answers about the broken coin. */
const ANSWERS = {
  'status 500': () => says(500, 'An unexpected server error'),
  'no JSON': () => new Response('oops', { headers: { 'content-type': 'application/json' } }),
  'no candles': () => Response.json({ candles: [] }),
};

export function testOthersDecide(...kinds: (keyof typeof ANSWERS)[]): void {
  test.each(kinds)(
    'after two requests about other coins when nothing else is requested, for answers of the kind %s',
    async (kind) => {
      const answer = ANSWERS[kind];
      await make({ speed: 25 });
      const chandler = await world.open();
      const work = { ...WORK, ...BY_DEFAULT, concurrency: 1 };
      await chandler.backfill({ ...work, coins: HEALTHY });
      upstream.script = (request) => (isOf(request, POISONED) ? answer() : null);
      upstream.forget();
      const spent = async () => (await chandler.session.quota.state()).day.spent;
      const before = await spent();
      const run = await chandler.backfill({ ...work, coins: COINS });
      expect([run.end.kind, exitOf([run])]).toEqual(['done', 1]);
      expect(chunksOf(POISONED)).toHaveLength(8);
      expect(others()).toHaveLength(2);
      expect(others()).not.toContain(POISONED);
      // They are counted and recorded like any other request. A permit that came too late on a busy machine is counted as well.
      expect(run.totals!.requests).toBe(10);
      expect((await spent()) - before).toBeGreaterThanOrEqual(upstream.log.length);
      const recorded = await world.database.sql<{ subject: string; outcome: string }[]>`
      select subject, outcome from ops.fetch where endpoint = 'ohlcv' and series_id is null order by id`;
      expect(recorded).toEqual(others().map((subject) => ({ subject, outcome: 'stored' })));
    },
  );
}
