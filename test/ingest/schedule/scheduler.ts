/** Several processes that run the schedules in virtual time, on either engine. */
import { randomUUID } from 'node:crypto';
import { expect, vi } from 'vitest';
import type { TickQueue } from '../../../src/ingest/queue/tick-queue.ts';
import { type Cadences, schedulePlan } from '../../../src/ingest/schedule/schedule-plan.ts';
import { createScheduleWorker, type ScheduleWorker } from '../../../src/ingest/schedule/schedule-worker.ts';
import { createScheduler, type Scheduler } from '../../../src/ingest/schedule/scheduler.ts';
import { type Runs, SCHEDULE_NAMES } from '../../../src/ingest/schedule/schedules.ts';
import type { Run, RunOutcome } from '../../../src/ingest/schedule-run.ts';
import { createTestDatabase, type TestDatabase, testRedisUrl } from '../../support/database.ts';
import { everyKind } from '../../support/every-kind.ts';
import { openTickQueue } from '../../support/queues.ts';
import { createVirtualClock, type VirtualClock } from '../../support/virtual-clock.ts';

export const START = Date.UTC(2026, 10, 21, 12);
export const MINUTE = 60_000;
export const done: RunOutcome = { kind: 'done' };
/** Every schedule that is not under test is off. */
export const ONLY_TICKERS: Cadences = {
  ...Object.fromEntries(SCHEDULE_NAMES.map((name) => [name, 'off'])),
  tickers: '*/15 * * * *',
};

export type Ran = { readonly schedule: string; readonly tick: number; readonly by: string; readonly at: number };
export type Process = { readonly scheduler: Scheduler; readonly worker: ScheduleWorker; readonly queue: TickQueue };

export type Bench = {
  readonly clock: VirtualClock;
  readonly database: TestDatabase;
  /** A queue that belongs to no process, to look at and to change. */
  readonly queue: TickQueue;
  /** Runs that were begun, in order. */
  readonly ran: Ran[];
  /** What a run does; changed in the middle of a test. */
  run: (ran: Ran, signal: AbortSignal) => Promise<RunOutcome>;
  start(name: string, cadences?: Cadences): Promise<Process>;
  stop(name: string): Promise<void>;
  /** As if the process were killed: its runs in progress stay as they are. */
  kill(name: string): Promise<void>;
  /** Resolves when all processes have looked and nothing is in the queue except `inHand` runs that do not end. */
  settle(inHand?: number): Promise<void>;
  advance(ms: number, inHand?: number): Promise<void>;
};

export const closers: (() => Promise<unknown>)[] = [];

export async function makeBench(kind: 'postgres' | 'redis'): Promise<Bench> {
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
        session: { accountId: 'anonymous@upstream.test', sendRequest: none, check: none },
        tickers: runOf('tickers'),
        global: runOf('global'),
        exchanges: runOf('exchanges'),
        catalogue: everyKind(runOf),
        freshness: runOf('freshness'),
        gaps: runOf('gaps'),
        confirmHoles: runOf('confirm_holes'),
        attest: runOf('attest'),
        lake: runOf('lake'),
        retention: runOf('retention'),
      };
      const limits = { perMonth: 20_000, perDay: 1_000, perSecond: 10 };
      const schedules = schedulePlan({ plan: 'free', limits, hasKey: false, places: new Set(), cadences });
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

/** How often each tick ran, by its offset from the start in minutes. */
export function times(ran: readonly Ran[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { tick } of ran) counts[(tick - START) / MINUTE] = (counts[(tick - START) / MINUTE] ?? 0) + 1;
  return counts;
}

export const engines = ['postgres' as const, ...(testRedisUrl() === null ? [] : ['redis' as const])];
