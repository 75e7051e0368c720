/** The schedules over days, and with clocks that jump, on both engines. */
import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { ConfigurationError } from '../../../src/ingest/outcome.ts';
import type { RunOutcome } from '../../../src/ingest/schedule-run.ts';
import { recordItem } from '../../../src/store/catalogue/catalogue-item.ts';
import { latestRuns } from '../../../src/store/work/schedule-run.ts';
import { closers, done, engines, MINUTE, makeBench, ONLY_TICKERS, START, times } from './scheduler.ts';

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe.each(engines)('on %s', (engine) => {
  test('a schedule that depends on items of others runs again once when there are some; and not forever if that brings nothing', async () => {
    const bench = await makeBench(engine);
    const { sql } = bench.database;
    const cadences = { ...ONLY_TICKERS, tickers: 'off', contracts: '24 */6 * * *' };
    await Promise.all(['a', 'b'].map((name) => bench.start(name, cadences)));
    await bench.settle();
    for (let looks = 0; looks < 5; looks++) await bench.advance(10_000);
    expect(bench.ran).toHaveLength(1);

    await sql`insert into market.platform (id, place, first_seen_at, last_seen_at) values ('eth-ethereum', 1, now(), now())`;
    bench.run = async ({ at }) => {
      const end = { kind: 'contracts', id: 'eth-ethereum', askedAt: at, waitUntil: null, message: null } as const;
      await recordItem(sql, { ...end, outcome: 'stored', rows: 3 });
      return done;
    };
    for (let looks = 0; looks < 5; looks++) await bench.advance(10_000);
    const [before, after] = bench.ran;
    expect(bench.ran).toHaveLength(2);
    expect(after).toMatchObject({ tick: before!.tick, at: START + 60_000 });

    // This run stores no record of its items.
    bench.run = async () => done;
    await sql`delete from ops.catalogue_item`;
    await Promise.all(['a', 'b'].map((name) => bench.stop(name)));
    await bench.start('c', cadences);
    for (let looks = 0; looks < 10; looks++) await bench.advance(10_000);
    expect(bench.ran).toHaveLength(4);
  });

  test('a schedule that fails run after run runs less and less often; a process that starts tries at once', async () => {
    const bench = await makeBench(engine);
    const everyMinute = { ...ONLY_TICKERS, tickers: '* * * * *' };
    bench.run = async () => Promise.reject(new ConfigurationError('the key is wrong'));
    await Promise.all(['a', 'b'].map((name) => bench.start(name, everyMinute)));
    await bench.settle();
    for (let minute = 1; minute <= 240; minute++) await bench.advance(MINUTE);
    expect(bench.ran.map(({ at }) => (at - START) / MINUTE)).toEqual([0, 1, 6, 16, 36, 76, 136, 196]);
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject({ state: 'failed', failures: 8 });
    bench.run = async () => done;
    await bench.start('c', everyMinute);
    await bench.settle();
    await bench.advance(MINUTE);
    expect(bench.ran.slice(8).map(({ tick }) => (tick - START) / MINUTE)).toEqual([240, 241]);
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject({ state: 'done', failures: 0 });
  });

  test('schedules held for days try each tick once, nothing piles up, and the last tick runs when the hold ends', async () => {
    const bench = await makeBench(engine);
    const until = START + DAY;
    bench.run = async ({ at }) => (at < until ? { kind: 'held', until, reason: 'month' } : done);
    await Promise.all(['a', 'b'].map((name) => bench.start(name)));
    await bench.settle();
    for (let at = START; at < until; at += 15 * MINUTE) await bench.advance(15 * MINUTE);
    await bench.advance(10_000);
    expect(Object.values(times(bench.ran)).every((n) => n === 1)).toBe(true);
    const rows = await bench.database.sql<{ state: string; n: number }[]>`
      select state, count(*) as n from ops.schedule_run group by state order by state`;
    expect([...rows]).toEqual([
      { state: 'done', n: 1 },
      { state: 'superseded', n: 96 },
    ]);
  });

  test('no second run joins one that is longer than its interval; one run catches up what it missed', async () => {
    const bench = await makeBench(engine);
    let finish: (outcome: RunOutcome) => void = () => undefined;
    bench.run = () =>
      new Promise((resolve) => {
        finish = resolve;
      });
    await Promise.all(['a', 'b'].map((name) => bench.start(name)));
    // The run renews its lease while it lasts.
    await bench.settle(1);
    for (let i = 0; i < 50 * 6; i++) await bench.advance(10_000, 1);
    expect(bench.ran).toHaveLength(1);
    bench.run = async () => done;
    finish(done);
    await bench.settle();
    await bench.advance(10_000);
    expect(times(bench.ran)).toEqual({ 0: 1, 45: 1 });
  });

  test.each([
    ['forward and back again', [DAY, -DAY]],
    ['back and forward again', [-DAY, DAY]],
    ['back for good', [-DAY]],
    ['forward for good', [DAY]],
  ])('a clock that jumps a day %s: the cadence is kept, and no process runs what another did', async (_, jumps) => {
    const bench = await makeBench(engine);
    await Promise.all(['a', 'b'].map((name) => bench.start(name)));
    await bench.settle();
    const quarter = () => bench.advance(15 * MINUTE);
    // The clock passes the same hours a second time.
    for (let i = 0; i < 4; i++) await quarter();
    for (const jump of jumps) {
      bench.clock.set(bench.clock.now() + jump);
      const before = bench.ran.length;
      for (let i = 0; i < 8; i++) {
        const now = bench.clock.now();
        await quarter();
        expect(bench.ran.at(-1)!.tick, `after ${i + 1} quarters`).toBe(now + 15 * MINUTE);
      }
      // One for each quarter of an hour; the ticks that the jump skipped are not caught up one by one.
      expect(bench.ran.length - before).toBe(8);
    }
  });
});
