/** Several processes run the schedules in virtual time, on both engines: every tick runs once, whatever happens to the processes. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { ConfigurationError } from '../../../src/ingest/outcome.ts';
import { schedulePlan } from '../../../src/ingest/schedule/schedule-plan.ts';
import { createScheduler } from '../../../src/ingest/schedule/scheduler.ts';
import type { RunOutcome } from '../../../src/ingest/schedule-run.ts';
import { latestFailures, latestRuns } from '../../../src/store/work/schedule-run.ts';
import { createTestDatabase } from '../../support/database.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';
import { closers, done, engines, MINUTE, makeBench, ONLY_TICKERS, START, times } from './scheduler.ts';

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe.each(engines)('on %s', (engine) => {
  test('two processes tick for half a day, one of them restarted in the middle: every tick runs once, when it is due', async () => {
    const bench = await makeBench(engine);
    const cadences = { ...ONLY_TICKERS, global: '*/30 * * * *', gaps: '52 */3 * * *' };
    await Promise.all(['a', 'b'].map((name) => bench.start(name, cadences)));
    await bench.settle();
    bench.ran.length = 0;
    for (let minute = 1; minute <= 12 * 60; minute++) {
      // Only the minutes near a tick matter; the rest of the hour passes at once.
      if (![0, 15, 30, 45, 52].includes(minute % 60)) {
        bench.clock.advance(MINUTE);
        continue;
      }
      await bench.advance(MINUTE);
      if (minute === 5 * 60) await bench.stop('a');
      if (minute === 5 * 60 + 30) await bench.start('a', cadences);
    }
    const due = (schedule: string) => bench.ran.filter((ran) => ran.schedule === schedule).map(({ tick }) => tick);
    expect(due('tickers')).toEqual(Array.from({ length: 48 }, (_, i) => START + (i + 1) * 15 * MINUTE));
    expect(due('global')).toEqual(Array.from({ length: 24 }, (_, i) => START + (i + 1) * 30 * MINUTE));
    expect(due('gaps')).toEqual(Array.from({ length: 4 }, (_, i) => START + 52 * MINUTE + i * 3 * HOUR));
    expect(bench.ran.every(({ at, tick }) => at === tick)).toBe(true);
    const [row] = await bench.database.sql<{ n: number; by: number }[]>`
      select count(*) as n, count(*) filter (where state = 'done') as by from ops.schedule_run where tick > ${START}`;
    expect(row).toEqual({ n: 48 + 24 + 4, by: 48 + 24 + 4 });
  });

  test('one run catches up what was missed while no process ran, however many start at once', async () => {
    const bench = await makeBench(engine);
    await bench.start('a');
    await bench.settle();
    await bench.stop('a');
    bench.ran.length = 0;
    bench.clock.advance(3 * DAY + 20 * MINUTE);
    await Promise.all(['a', 'b', 'c', 'd'].map((name) => bench.start(name)));
    await bench.settle();
    expect(bench.ran.map(({ tick }) => tick)).toEqual([START + 3 * DAY + 15 * MINUTE]);
    await bench.advance(10 * MINUTE);
    expect(bench.ran).toHaveLength(2);
  });

  test('a tick that has run and left the queue does not run again, whichever process offers it', async () => {
    const bench = await makeBench(engine);
    const { queue } = await bench.start('a');
    await bench.settle();
    expect(bench.ran).toHaveLength(1);
    for (let i = 0; i < 3; i++) await queue.offer({ schedule: 'tickers', tick: START });
    await queue.offer({ schedule: 'tickers', tick: START - 15 * MINUTE });
    await queue.offer({ schedule: 'of another version', tick: START });
    await bench.settle();
    expect(bench.ran).toHaveLength(1);
  });

  test('a queue that is lost loses no tick', async () => {
    const bench = await makeBench(engine);
    const { worker } = await bench.start('a');
    await bench.settle();
    // No process works on what it offers now.
    await worker.close();
    bench.clock.advance(15 * MINUTE);
    await vi.waitFor(async () => expect(await bench.queue.size()).toBe(1), { timeout: 60_000 });
    await bench.queue.wipe();
    expect(await bench.queue.size()).toBe(0);
    bench.clock.advance(10_000);
    await vi.waitFor(async () => expect(await bench.queue.size()).toBe(1), { timeout: 60_000 });
    await bench.start('b');
    await bench.settle();
    expect(times(bench.ran)).toEqual({ 0: 1, 15: 1 });
  });

  test('a queue that is lost while a run is under way does not start a second run beside it', async () => {
    const bench = await makeBench(engine);
    let finish: (outcome: RunOutcome) => void = () => undefined;
    bench.run = () =>
      new Promise((resolve) => {
        finish = resolve;
      });
    await bench.start('a');
    await bench.settle(1);
    await bench.queue.wipe();
    await bench.start('b');
    await bench.queue.offer({ schedule: 'tickers', tick: START });
    await bench.queue.offer({ schedule: 'tickers', tick: START + 15 * MINUTE });
    await vi.waitFor(async () => expect(await bench.queue.size()).toBe(0), { timeout: 60_000 });
    finish(done);
    await bench.settle();
    expect(times(bench.ran)).toEqual({ 0: 1 });
  });

  test('a run that fails is tried a few times, with growing pauses, and then with the next tick; the reason is stored', async () => {
    const bench = await makeBench(engine);
    bench.run = async () => Promise.reject(new Error('redis://u:secret@h is no upstream'));
    await Promise.all(['a', 'b'].map((name) => bench.start(name)));
    await bench.settle();
    for (let i = 0; i < 40; i++) await bench.advance(10_000);
    expect(bench.ran).toHaveLength(4);
    const gaps = bench.ran.slice(1).map(({ at }, i) => at - bench.ran[i]!.at);
    expect(gaps[0]).toBeGreaterThanOrEqual(15_000);
    expect(gaps[1]).toBeGreaterThanOrEqual(30_000);
    expect(gaps[2]).toBeGreaterThanOrEqual(60_000);
    const failed = { tick: START, state: 'failed', attempts: 4, message: 'redis://u:***@h is no upstream' };
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject(failed);
    bench.run = async () => done;
    bench.clock.advanceTo(START + 15 * MINUTE);
    await bench.settle();
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject({ state: 'done', attempts: 1 });
    expect((await latestFailures(bench.database.sql, ['tickers']))[0]).toMatchObject(failed);
  });

  test('a run that no attempt can fix is not tried again', async () => {
    const bench = await makeBench(engine);
    bench.run = async () => Promise.reject(new ConfigurationError('the key is wrong'));
    await bench.start('a');
    await bench.settle();
    for (let i = 0; i < 12; i++) await bench.advance(MINUTE);
    expect(bench.ran).toHaveLength(1);
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject({ state: 'failed', attempts: 1 });
  });

  test('a run that the quota holds waits until it may continue, and uses no attempt', async () => {
    const bench = await makeBench(engine);
    const until = START + 10 * MINUTE;
    bench.run = async ({ at }) =>
      at < until ? { kind: 'held', until: at + 2 * MINUTE, reason: 'quota exhausted' } : done;
    await Promise.all(['a', 'b'].map((name) => bench.start(name)));
    await bench.settle();
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject({
      state: 'held',
      attempts: 0,
      message: 'quota exhausted',
      waitUntil: START + 2 * MINUTE,
    });
    for (let i = 0; i < 60; i++) await bench.advance(10_000);
    // At once, and every two minutes.
    expect(times(bench.ran)).toEqual({ 0: 6 });
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject({ state: 'done', attempts: 1 });
  });

  test('when a process is killed, another one does its run once the lease has expired', async () => {
    const bench = await makeBench(engine);
    bench.run = () => new Promise(() => undefined);
    await bench.start('a');
    await bench.settle(1);
    await bench.kill('a');
    bench.run = async () => done;
    await bench.start('b');
    await vi.waitFor(() => expect(bench.clock.sleepers()).toBe(1), { timeout: 60_000 });
    expect(bench.ran.map(({ by }) => by)).toEqual(['a']);
    for (let i = 0; i < 5; i++) await bench.advance(10_000);
    expect(bench.ran.map(({ by, tick }) => [by, tick])).toEqual([
      ['a', START],
      ['b', START],
    ]);
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject({ state: 'done', attempts: 2 });
  });

  test('a process that is stopped aborts its runs, and hands them back', async () => {
    const bench = await makeBench(engine);
    bench.run = (_, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    await bench.start('a');
    await bench.settle(1);
    await bench.stop('a');
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject({ state: 'held', attempts: 0 });
    bench.run = async () => done;
    await bench.start('b');
    await bench.settle();
    expect(bench.ran.map(({ by, tick }) => [by, tick])).toEqual([
      ['a', START],
      ['b', START],
    ]);
  });
});

test('a queue that does not answer does not delay a process that stops, and is asked again when it rejects', async () => {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const clock = createVirtualClock(START);
  const limits = { perMonth: null, perDay: null, perSecond: null };
  const schedules = schedulePlan({ plan: 'free', limits, hasKey: false, places: new Set(), cadences: ONLY_TICKERS });
  const offers: number[] = [];
  const errors: string[] = [];
  const offer = async () => {
    offers.push(clock.now());
    if (offers.length === 1) throw new Error('away');
    return new Promise<void>(() => undefined);
  };
  const onError = (error: Error) => {
    errors.push(error.message);
  };
  const scheduler = createScheduler({ sql: database.sql, clock, queue: { offer }, schedules, onError });
  scheduler.start();
  await vi.waitFor(() => expect(clock.sleepers()).toBe(1), { timeout: 60_000 });
  clock.advance(2_000);
  await vi.waitFor(() => expect(offers).toEqual([START, START + 2_000]), { timeout: 60_000 });
  await scheduler.stop();
  expect(errors).toEqual(['away']);
});
