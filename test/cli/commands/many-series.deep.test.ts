/** Rarer cases of `chandler status` with very many series: counts that are not shown, and which service counts when. */
import { beforeEach, describe, expect, test } from 'vitest';
import { MINUTE } from '../../../src/core/interval.ts';
import { countedEveryMs, SERIES_COUNTS } from '../../../src/views/operations/series-counts.ts';
import { runCommand } from '../../support/cli.ts';
import { startServiceProcess } from '../../support/service-process.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';
import {
  beService,
  count,
  countNow,
  covered,
  database,
  forgetServices,
  run,
  testCountedWhenAsked,
  useManySeries,
} from './many-series.ts';

useManySeries();

describe('status', () => {
  beforeEach(forgetServices);

  testCountedWhenAsked([
    ['only a service runs that answers callers', ['http'], '1 second'],
    ['the services could not count for long', ['worker'], '1 day'],
    ['the count was made before a clock was set back', ['worker'], '-1 day'],
  ]);

  test('counts all series on request, also while a service counts them', async () => {
    await beService(['worker']);
    expect(await count()).toBe(true);
    await database.sql`update ops.counted set answer = jsonb_set(answer, '{series}', '[]')`;
    const status = JSON.parse((await run('status', '--json', '--count')).out);
    expect(status.countedAt).toBeNull();
    expect(covered(status.series)).toEqual(covered((await countNow(Date.now())).series));
  });

  test('shows the count of a running service, and no count once that service has stopped', async () => {
    const { sql, url } = database;
    // Nothing listens there.
    const env = { DATABASE_URL: url, CHANDLER_PLAN: 'enterprise', CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1' };
    const service = await startServiceProcess('scheduler', env);
    try {
      await expect
        .poll(() => sql`select from ops.counted where name = ${SERIES_COUNTS}`, { timeout: 60_000 })
        .toHaveLength(1);
      const { out } = await runCommand(['status', '--json'], { env });
      expect(JSON.parse(out)).toMatchObject({ countedAt: expect.any(String), now: { services: [expect.any(String)] } });
    } finally {
      await service.stop();
    }
    expect(JSON.parse((await runCommand(['status', '--json'], { env })).out)).toMatchObject({
      countedAt: null,
      series: null,
    });
  });

  test('is counted by one service, also while the first count lasts', async () => {
    const clock = createVirtualClock(Date.now());
    let first: Promise<boolean> | undefined;
    await database.sql.begin(async (tx) => {
      await tx`lock table ops.fetch in access exclusive mode`;
      first = count(clock);
      const waiting = () => tx`select from pg_locks where not granted and relation = 'ops.fetch'::regclass`;
      await expect.poll(waiting, { timeout: 60_000 }).toHaveLength(1);
      clock.advance(2 * MINUTE);
      expect(await count(clock)).toBe(false);
    });
    expect(await first).toBe(true);
    const [{ tookMs }] = (await database.sql`select took_ms from ops.counted`) as unknown as [{ tookMs: number }];
    expect(tookMs).toBe(2 * MINUTE);
    // A count that takes so long is made seldom.
    expect(countedEveryMs(tookMs)).toBe(50 * tookMs);
    clock.advance(50 * tookMs - 2 * MINUTE - 1);
    expect(await count(clock)).toBe(false);
    clock.advance(1);
    expect(await count(clock)).toBe(true);
  });

  test('is counted again soon, but not at once, after a count that failed', async () => {
    const clock = createVirtualClock(Date.now());
    await database.sql`alter view market.coverage rename to hidden`;
    await expect(count(clock)).rejects.toThrow('coverage');
    await database.sql`alter view market.hidden rename to coverage`;
    expect(await count(clock)).toBe(false);
    clock.advance(MINUTE);
    expect(await count(clock)).toBe(true);
  });
});
