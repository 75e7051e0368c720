/** The schedules as several processes run them, in virtual time, on both engines: every tick once, whatever happens to them. */
import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { ConfigurationError } from '../../../src/ingest/outcome.ts';
import { openTickQueue, type TickQueue } from '../../../src/ingest/queue/tick-queue.ts';
import { type Cadences, schedulePlan } from '../../../src/ingest/schedule/schedule-plan.ts';
import { createScheduleWorker, type ScheduleWorker } from '../../../src/ingest/schedule/schedule-worker.ts';
import { createScheduler, type Scheduler } from '../../../src/ingest/schedule/scheduler.ts';
import { type Runs, SCHEDULE_NAMES } from '../../../src/ingest/schedule/schedules.ts';
import type { Run, RunOutcome } from '../../../src/ingest/schedule-run.ts';
import { recordItem } from '../../../src/store/catalogue/catalogue-item.ts';
import { latestFailures, latestRuns } from '../../../src/store/work/schedule-run.ts';
import { createTestDatabase, type TestDatabase, testRedisUrl } from '../../support/database.ts';
import { everyKind } from '../../support/every-kind.ts';
import { createVirtualClock, type VirtualClock } from '../../support/virtual-clock.ts';

const START = Date.UTC(2026, 10, 21, 12);
const MINUTE = 60_000;
const done: RunOutcome = { kind: 'done' };
/** Everything that is not under test is off. */
const ONLY_TICKERS: Cadences = {
  ...Object.fromEntries(SCHEDULE_NAMES.map((name) => [name, 'off'])),
  tickers: '*/15 * * * *',
};

type Ran = { readonly schedule: string; readonly tick: number; readonly by: string; readonly at: number };
type Process = { readonly scheduler: Scheduler; readonly worker: ScheduleWorker; readonly queue: TickQueue };

type Bench = {
  readonly clock: VirtualClock;
  readonly database: TestDatabase;
  /** Nobody's, for looking and meddling. */
  readonly queue: TickQueue;
  /** Runs that were begun, in order. */
  readonly ran: Ran[];
  /** What a run does; changed in the middle of a test. */
  run: (ran: Ran, signal: AbortSignal) => Promise<RunOutcome>;
  start(name: string, cadences?: Cadences): Promise<Process>;
  stop(name: string): Promise<void>;
  /** As if it were killed: what it has in hand is left as it is. */
  kill(name: string): Promise<void>;
  /** Resolves when all have looked and nothing is in the queue but `inHand` runs that do not end. */
  settle(inHand?: number): Promise<void>;
  advance(ms: number, inHand?: number): Promise<void>;
};

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function makeBench(kind: 'postgres' | 'redis'): Promise<Bench> {
  const database = await createTestDatabase({ max: 12 });
  closers.push(() => database.drop());
  const clock = createVirtualClock(START);
  const engine = kind === 'redis' ? ({ kind, url: testRedisUrl()! } as const) : ({ kind, url: database.url } as const);
  const name = `ticks-${randomUUID()}`;
  const processes = new Map<string, Process>();
  const open = () => openTickQueue({ engine, name, onError: () => undefined, lockMs: 500 });
  const watcher = await open();
  closers.push(() => watcher.close());
  const bench: Bench = {
    clock,
    database,
    queue: watcher,
    ran: [],
    run: async () => done,
    start: async (by, cadences = ONLY_TICKERS) => {
      const queue = await open();
      const runOf =
        (schedule: string): Run =>
        ({ tick, signal }) => {
          const ran = { schedule, tick, by, at: clock.now() };
          bench.ran.push(ran);
          return bench.run(ran, signal);
        };
      const none = () => Promise.reject(new Error('not here'));
      const runs: Runs = {
        sql: database.sql,
        clock,
        session: { sendRequest: none, check: none },
        tickers: runOf('tickers'),
        global: runOf('global'),
        exchanges: runOf('exchanges'),
        catalogue: everyKind(runOf),
        freshness: runOf('freshness'),
        gaps: runOf('gaps'),
        retention: runOf('retention'),
      };
      const limits = { perMonth: 20_000, perDay: 1_000, perSecond: 10 };
      const schedules = schedulePlan({ plan: 'free', limits, hasKey: false, cadences });
      const { sql } = database;
      const worker = createScheduleWorker({ sql, clock, queue, runs, owner: by });
      const scheduler = createScheduler({ sql, clock, queue, schedules, onError: () => undefined });
      scheduler.start();
      const process = { scheduler, worker, queue };
      processes.set(by, process);
      closers.push(() => bench.kill(by));
      return process;
    },
    stop: (by) => end(by, false),
    kill: (by) => end(by, true),
    settle: (inHand = 0) =>
      vi.waitFor(
        async () => {
          expect(clock.sleepers()).toBe(processes.size + inHand);
          expect(await watcher.size()).toBe(inHand);
        },
        { timeout: 60_000, interval: 2 },
      ),
    advance: async (ms, inHand) => {
      clock.advance(ms);
      await bench.settle(inHand);
    },
  };
  return bench;

  async function end(by: string, force: boolean): Promise<void> {
    const process = processes.get(by);
    if (process === undefined) return;
    processes.delete(by);
    await process.scheduler.stop();
    await process.worker.close(force);
    await process.queue.close();
  }
}

/** How often each tick was run, by its offset from the start in minutes. */
function times(ran: readonly Ran[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { tick } of ran) counts[(tick - START) / MINUTE] = (counts[(tick - START) / MINUTE] ?? 0) + 1;
  return counts;
}

const engines = ['postgres' as const, ...(testRedisUrl() === null ? [] : ['redis' as const])];

describe.each(engines)('on %s', (engine) => {
  test('what asks about things that others bring is run again when there are some, once; and not for ever if that comes to nothing', async () => {
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

    // As if it were asked about without an end that could be written down.
    bench.run = async () => done;
    await sql`delete from ops.catalogue_item`;
    await Promise.all(['a', 'b'].map((name) => bench.stop(name)));
    await bench.start('c', cadences);
    for (let looks = 0; looks < 10; looks++) await bench.advance(10_000);
    expect(bench.ran).toHaveLength(4);
  });

  test('two processes tick for a day, one of them restarted in the middle: every tick is run once, when it is due', async () => {
    const bench = await makeBench(engine);
    const cadences = { ...ONLY_TICKERS, global: '*/30 * * * *', gaps: '52 */3 * * *' };
    await Promise.all(['a', 'b'].map((name) => bench.start(name, cadences)));
    await bench.settle();
    bench.ran.length = 0;
    for (let minute = 1; minute <= 24 * 60; minute++) {
      // Only what is near a tick matters; the rest of the hour passes at once.
      if (![0, 15, 30, 45, 52].includes(minute % 60)) {
        bench.clock.advance(MINUTE);
        continue;
      }
      await bench.advance(MINUTE);
      if (minute === 5 * 60) await bench.stop('a');
      if (minute === 5 * 60 + 30) await bench.start('a', cadences);
    }
    const due = (schedule: string) => bench.ran.filter((ran) => ran.schedule === schedule).map(({ tick }) => tick);
    expect(due('tickers')).toEqual(Array.from({ length: 96 }, (_, i) => START + (i + 1) * 15 * MINUTE));
    expect(due('global')).toEqual(Array.from({ length: 48 }, (_, i) => START + (i + 1) * 30 * MINUTE));
    expect(due('gaps')).toEqual(Array.from({ length: 8 }, (_, i) => START + 52 * MINUTE + i * 3 * HOUR));
    expect(bench.ran.every(({ at, tick }) => at === tick)).toBe(true);
    const [row] = await bench.database.sql<{ n: number; by: number }[]>`
      select count(*) as n, count(*) filter (where state = 'done') as by from ops.schedule_run where tick > ${START}`;
    expect(row).toEqual({ n: 96 + 48 + 8, by: 96 + 48 + 8 });
  });

  test('what was missed while nobody was there is caught up by one run, however many start at once', async () => {
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

  test('a tick that was run and has left the queue is not run again, whoever offers it', async () => {
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
    // Nobody works on what it offers now.
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

  test('a queue that is lost while a run is under way does not make another join it', async () => {
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

  test('a run that fails is tried a few times, longer apart each time, and then with the next tick; why is written down', async () => {
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

  test('what no attempt could mend is not tried again', async () => {
    const bench = await makeBench(engine);
    bench.run = async () => Promise.reject(new ConfigurationError('the key is wrong'));
    await bench.start('a');
    await bench.settle();
    for (let i = 0; i < 12; i++) await bench.advance(MINUTE);
    expect(bench.ran).toHaveLength(1);
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject({ state: 'failed', attempts: 1 });
  });

  test('what fails run after run is run more and more seldom; a process that starts tries at once', async () => {
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

  test('a run that the quota holds waits until it may go on, and no attempt is burned', async () => {
    const bench = await makeBench(engine);
    const until = START + 10 * MINUTE;
    bench.run = async ({ at }) => (at < until ? { kind: 'held', until: at + 2 * MINUTE, reason: 'spent' } : done);
    await Promise.all(['a', 'b'].map((name) => bench.start(name)));
    await bench.settle();
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject({
      state: 'held',
      attempts: 0,
      message: 'spent',
      waitUntil: START + 2 * MINUTE,
    });
    for (let i = 0; i < 60; i++) await bench.advance(10_000);
    // At once, and every two minutes.
    expect(times(bench.ran)).toEqual({ 0: 6 });
    expect((await latestRuns(bench.database.sql, ['tickers']))[0]).toMatchObject({ state: 'done', attempts: 1 });
  });

  test('held for days, each tick is tried once, nothing piles up, and the last one is run when it ends', async () => {
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
      { state: 'overtaken', n: 96 },
    ]);
  });

  test('a run longer than its interval is not joined by another; what it missed is caught up by one', async () => {
    const bench = await makeBench(engine);
    let finish: (outcome: RunOutcome) => void = () => undefined;
    bench.run = () =>
      new Promise((resolve) => {
        finish = resolve;
      });
    await Promise.all(['a', 'b'].map((name) => bench.start(name)));
    // The run gives signs of life while it lasts.
    await bench.settle(1);
    for (let i = 0; i < 50 * 6; i++) await bench.advance(10_000, 1);
    expect(bench.ran).toHaveLength(1);
    bench.run = async () => done;
    finish(done);
    await bench.settle();
    await bench.advance(10_000);
    expect(times(bench.ran)).toEqual({ 0: 1, 45: 1 });
  });

  test('a run whose process is killed is done by another, once its signs of life have ceased', async () => {
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

  test('a process that is stopped tells its runs to end, and hands back the one that does', async () => {
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
    // It has a past that is lived through again.
    for (let i = 0; i < 4; i++) await quarter();
    for (const jump of jumps) {
      bench.clock.set(bench.clock.now() + jump);
      const before = bench.ran.length;
      for (let i = 0; i < 8; i++) {
        const now = bench.clock.now();
        await quarter();
        expect(bench.ran.at(-1)!.tick, `after ${i + 1} quarters`).toBe(now + 15 * MINUTE);
      }
      // One for each quarter of an hour; what was jumped over is not caught up tick by tick.
      expect(bench.ran.length - before).toBe(8);
    }
  });
});

test('a queue that does not answer does not hold up who stops, and is asked again when it rejects', async () => {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const clock = createVirtualClock(START);
  const limits = { perMonth: null, perDay: null, perSecond: null };
  const schedules = schedulePlan({ plan: 'free', limits, hasKey: false, cadences: ONLY_TICKERS });
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
