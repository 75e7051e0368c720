/** Notifiers of one or several services without the other parts of a service, on a clock that the test moves, with a real webhook. */
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { type App, openApp } from '../../../src/app.ts';
import { createMetrics } from '../../../src/background/health/metrics.ts';
import { createIncidents } from '../../../src/background/health/service-status.ts';
import { createServingMetrics } from '../../../src/background/http/market-http-metrics.ts';
import { LOOK_MS, notifyOperator } from '../../../src/background/operator/notifier.ts';
import type { ServiceContext } from '../../../src/background/service-context.ts';
import type { Clock, Instant } from '../../../src/clock.ts';
import { parseConfig } from '../../../src/config.ts';
import { scheduleVariable } from '../../../src/ingest/schedule/schedule-plan.ts';
import { SCHEDULE_NAMES } from '../../../src/ingest/schedule/schedules.ts';
import { createFailureLog, createLog } from '../../../src/log.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type Hook, startHook } from '../../support/hook.ts';
import { createVirtualClock, type VirtualClock } from '../../support/virtual-clock.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** In the middle of a day and of a month, so that no window ends during a test. */
export const START = Date.UTC(2030, 4, 15, 10);
export const ACCOUNT = 'anonymous@127.0.0.1:9';

export let database: TestDatabase;
export let hook: Hook;
/** It moves only while a test lets time pass, so that no test waits for a look that is not due. */
export let clock: VirtualClock;
/** Until when each notifier sleeps after a look. */
const resting = new Map<object, Instant>();
/** What other programs do before each look. */
export const meanwhile = new Set<() => Promise<unknown>>();
const ending: (() => Promise<void>)[] = [];

export function useHook(): void {
  beforeEach(async () => {
    database = await createTestDatabase();
    hook = await startHook();
    clock = createVirtualClock(START);
  });
  afterEach(async () => {
    for (const end of ending.splice(0)) await end();
    meanwhile.clear();
    await hook.close();
    await database.drop();
  });
}

type Notifier = {
  readonly metrics: () => Promise<string>;
  readonly incidents: () => readonly string[];
  /** As the other parts of a service do when they find out who holds a lock. */
  readonly report: (what: string, message: string | null) => void;
  readonly log: () => string;
  stop(): Promise<void>;
};

/** Only the notifier of a service. */
export async function notifier(settings: Record<string, string> = {}): Promise<Notifier> {
  const parsed = parseConfig({
    DATABASE_URL: database.url,
    CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1',
    CHANDLER_DAILY_REQUESTS: '1000',
    CHANDLER_WEBHOOK_URL: hook.url,
    CHANDLER_STUCK_AFTER: '5m',
    ...settings,
  });
  if ('problems' in parsed) throw new Error(parsed.problems.join('\n'));
  const stop = new AbortController();
  let lines = '';
  const log = createLog({
    level: 'debug',
    write: (line) => {
      lines += line;
    },
  });
  const me = {};
  const mine: Clock = {
    now: clock.now,
    sleep: (ms, signal) => {
      if (ms === LOOK_MS) resting.set(me, clock.now() + ms);
      return clock.sleep(ms, signal);
    },
  };
  resting.set(me, START);
  const app: App = await openApp(parsed.ok, { clock: mine, log, schema: 'require' });
  const metrics = createMetrics();
  const incidents = createIncidents(log, mine);
  const context: ServiceContext = {
    config: parsed.ok,
    clock: mine,
    log,
    roles: ['http'],
    owner: `test:${Math.random()}`,
    concurrency: 1,
    migrate: false,
    signal: stop.signal,
    status: { owner: 'test', roles: ['http'], startedAt: START, phase: 'ready' },
    incidents,
    metrics,
    served: createServingMetrics(),
    failed: createFailureLog(log, mine, stop.signal),
    open: { app, ingestion: null, market: null, peers: null, states: null },
  };
  const running = notifyOperator(context, app, { record: async () => undefined });
  const end = async () => {
    stop.abort();
    await running;
    resting.delete(me);
    await app.close();
  };
  ending.push(end);
  const nothing = { warehouse: null, ledger: null, queued: null, disks: [], incidents: [], isReady: true };
  return {
    metrics: async () => (await metrics.text(async () => ({ ...nothing, states: context.open.states }))).text,
    incidents: () => incidents.open().map(({ what, message }) => `${what}: ${message}`),
    report: (what, message) =>
      message === null ? incidents.resolve(what) : incidents.report(what, new Error(message)),
    log: () => lines,
    stop: async () => {
      ending.splice(ending.indexOf(end), 1);
      await end();
    },
  };
}

/** Resolves when every notifier has done what it does at this time. */
const rested = () =>
  vi.waitFor(() => expect([...resting.values()].filter((until) => until <= clock.now())).toEqual([]), {
    timeout: 60_000,
    interval: 2,
  });

/** Lets this much time pass: with every look in it while other programs act before each, else with one look in `everyMs`, as on a busy machine. */
export async function pass(ms: number, everyMs = meanwhile.size > 0 ? LOOK_MS : MINUTE): Promise<void> {
  const until = clock.now() + ms;
  await rested();
  while (clock.now() < until) {
    for (const act of meanwhile) await act();
    clock.advance(Math.min(everyMs, until - clock.now()));
    await rested();
  }
}

const LONGEST_MS = 2 * HOUR;

/** Lets time pass until this holds. */
export async function comes(check: () => unknown): Promise<void> {
  const until = clock.now() + LONGEST_MS;
  await rested();
  while (true) {
    try {
      return void (await check());
    } catch (error) {
      if (clock.now() >= until) throw error;
    }
    await pass(LOOK_MS);
  }
}

export const texts = (n: number) => comes(() => expect(hook.texts()).toHaveLength(n)).then(() => hook.texts());
export const at = (ms: number) => new Date(ms).toISOString();

export async function spend(day: number): Promise<void> {
  await database.sql`
    insert into ops.quota (account_id, day_start, day_spent, month_start, month_spent)
    values (${ACCOUNT}, ${at(Date.UTC(2030, 4, 15))}, ${day}, ${at(Date.UTC(2030, 4, 1))}, ${day})
    on conflict (account_id) do update set day_spent = ${day}, month_spent = ${day}`;
}

export async function fetched(outcome: string, message: string | null = null): Promise<void> {
  await database.sql`
    insert into market.coin (id, name, symbol, rank, is_new, is_active, type, first_seen_at, last_seen_at, rank_seen_at)
    values ('btc-bitcoin', 'Bitcoin', 'BTC', 1, false, true, 'coin', now(), now(), now()) on conflict do nothing`;
  await database.sql`
    insert into market.series (coin_id, quote, interval, wanted) values ('btc-bitcoin', 'usd', '1h', '{}') on conflict do nothing`;
  await database.sql`
    insert into ops.fetch (sent_at, as_of, account_id, endpoint, series_id, attempt, status, outcome, duration_ms, rows, stored, revised,
      quarantined, bytes, message)
    select ${at(clock.now())}, ${at(clock.now())}, ${ACCOUNT}, 'ohlcv', (select min(id) from market.series), 1,
      ${message?.startsWith('nothing listens') ? null : outcome === 'stored' ? 200 : 503}::smallint, ${outcome}, 5, 1, 1, 0, 0, 10, ${message}`;
}

export async function queueBackfill(): Promise<void> {
  await database.sql`
    insert into ops.backfill (requested_at, state, is_detached, spec, coin_ids, span, interval, quote, planned_requests, left_requests)
    values (${at(START - 9 * HOUR)}, 'queued', true, '{}', '{btc-bitcoin}', '[2030-01-01, 2030-02-01)', '1h', 'usd', 3, 3)`;
}

/** All schedules are off, so that none is overdue. */
export const NO_SCHEDULES = Object.fromEntries(SCHEDULE_NAMES.map((name) => [scheduleVariable(name), 'off']));
