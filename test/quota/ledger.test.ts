import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { createQuota, type QuotaOptions } from '../../src/quota/ledger.ts';
import type { Limits, Quota, Reserved, Spender, Take } from '../../src/quota/quota.ts';
import { createClient } from '../../src/store/connection/connect.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createManualClock, type ManualClock } from './manual-clock.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const at = (text: string) => Date.parse(text);
const NOON = at('2024-03-10T12:00:00Z');
const scheduled: Spender = { class: 'scheduled', name: 'catalogue' };
const backfill: Spender = { class: 'backfill', name: 'backfill 1' };
const NO_LIMITS: Limits = { perMonth: null, perDay: null, perSecond: null };

let accounts = 0;
type Bench = { readonly quota: Quota; readonly clock: ManualClock; readonly accountId: string };

/** A new account on a clock that stands still. Options for an existing account make a second process of it. */
function open(limits: Partial<Limits>, options: Partial<QuotaOptions> & { clock?: ManualClock } = {}): Bench {
  const clock = options.clock ?? createManualClock(NOON);
  const accountId = options.accountId ?? `account-${++accounts}`;
  const quota = createQuota({
    sql: database.sql,
    accountId,
    limits: { ...NO_LIMITS, ...limits },
    reserved: () => ({ day: 0, month: 0 }),
    useDatabaseClock: false,
    random: () => 0,
    ...options,
    clock,
  });
  return { quota, clock, accountId };
}

function granted(take: Take): number {
  expect(take).toMatchObject({ kind: 'granted' });
  return take.kind === 'granted' ? take.sendAt : Number.NaN;
}

/** What denied the take, and how many milliseconds later it is worth trying again. */
function denied(take: Take, clock: ManualClock): [string, number] {
  expect(take).toMatchObject({ kind: 'denied' });
  return take.kind === 'denied' ? [take.reason, take.until - clock.now()] : ['', Number.NaN];
}

describe('the connection of the ledger', () => {
  it('is replaced when it is cut in the middle of a change while other takes wait behind it', async () => {
    const own = createClient({ url: database.url, max: 1, applicationName: 'ledger to be cut' });
    const { quota, clock, accountId } = open({ perSecond: 10 }, { sql: own });
    granted(await quota.take(backfill));
    const locked = await database.sql.reserve();
    try {
      await locked`begin`;
      await locked`select from ops.quota where account_id = ${accountId} for update`;
      const told = quota.limited({ sentAt: clock.now(), retryAfterMs: 5_000, message: 'slow down' }).catch(() => 'cut');
      const takes = [backfill, scheduled].map((spender) => quota.take(spender).catch(() => 'cut'));
      await expect.poll(() => waitingForLock('ledger to be cut')).toHaveLength(1);
      const [cut] = await waitingForLock('ledger to be cut');
      await database.sql`select pg_terminate_backend(${cut!.pid})`;
      expect(await told).toBe('cut');
      await locked`rollback`;
      // The takes behind the change may have been lost with it, or the new connection answers them.
      await Promise.all(takes);
    } finally {
      locked.release();
    }
    await quota.limited({ sentAt: clock.now(), retryAfterMs: 5_000, message: 'slow down' });
    expect(denied(await quota.take(backfill), clock)).toEqual(['limited', 5_000]);
    await own.end();
  });

  it('does not block a caller that only reads, while a take waits on it', async () => {
    const own = createClient({ url: database.url, max: 1, applicationName: 'ledger that waits' });
    const { quota, accountId } = open({ perSecond: 10 }, { sql: own, reads: database.sql });
    granted(await quota.take(backfill));
    const locked = await database.sql.reserve();
    await locked`begin`;
    await locked`select from ops.quota where account_id = ${accountId} for update`;
    const take = quota.take(backfill);
    try {
      await expect.poll(() => waitingForLock('ledger that waits')).toHaveLength(1);
      expect((await quota.state()).month.spent).toBe(1);
      expect(await quota.spenders()).toMatchObject([{ name: 'backfill 1', month: 1 }]);
      expect(await waitingForLock('ledger that waits')).toHaveLength(1);
    } finally {
      await locked`rollback`;
      locked.release();
      granted(await take);
      await own.end();
    }
  });
});

function waitingForLock(name: string) {
  return database.sql<{ pid: number }[]>`select pid from pg_stat_activity
    where application_name = ${name} and datname = current_database() and wait_event_type = 'Lock'`;
}

describe('the rate', () => {
  it('leaves one percent more time between grants than the limit requires, and grants at most two seconds ahead', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    const sendAts: number[] = [];
    let last = await quota.take(scheduled);
    while (last.kind === 'granted') {
      sendAts.push(last.sendAt - NOON);
      last = await quota.take(scheduled);
    }
    expect(sendAts.slice(0, 4)).toEqual([0, 101, 202, 303]);
    expect(sendAts).toHaveLength(20);
    expect(denied(last, clock)).toEqual(['queue', 20]);
  });

  it('lets backfills take at most one second ahead, so that scheduled work finds a place however many backfills wait', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    for (let i = 0; i < 10; i++) granted(await quota.take(backfill));
    expect(denied(await quota.take(backfill), clock)).toEqual(['queue', 10]);
    expect(granted(await quota.take(scheduled))).toBe(NOON + 1010);
    expect(denied(await quota.take(backfill), clock)).toEqual(['queue', 111]);
  });

  it('does not save up unused requests', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    granted(await quota.take(backfill));
    clock.advance(HOUR);
    expect(granted(await quota.take(backfill))).toBe(clock.now());
    expect(granted(await quota.take(backfill))).toBe(clock.now() + 101);
  });

  it('keeps granting when the clock is set back by a day', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    granted(await quota.take(scheduled));
    clock.advance(-24 * HOUR);
    expect(granted(await quota.take(scheduled))).toBe(clock.now() + 2000);
    expect(denied(await quota.take(scheduled), clock)).toEqual(['queue', 101]);
    clock.advance(101);
    expect(granted(await quota.take(scheduled))).toBe(clock.now() + 2000);
  });

  it('may be slower than one request a second', async () => {
    const { quota, clock } = open({ perSecond: 0.1 });
    granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)).toEqual(['queue', 8100]);
  });
});

describe('a quota window', () => {
  it('grants exactly its limit, then says when the next window begins', async () => {
    const { quota, clock } = open({ perDay: 3 });
    for (let i = 0; i < 3; i++) granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)).toEqual(['day', 12 * HOUR + 2000]);
    clock.set(at('2024-03-11T00:00:02Z'));
    for (let i = 0; i < 3; i++) granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('day');
  });

  it('of a month ends with the calendar month, in leap years too', async () => {
    const { quota, clock } = open({ perMonth: 1 }, { clock: createManualClock(at('2024-02-10T00:00:00Z')) });
    granted(await quota.take(scheduled));
    const take = await quota.take(scheduled);
    expect(take).toEqual({ kind: 'denied', reason: 'month', until: at('2024-03-01T00:00:02Z') });
    clock.set(at('2024-12-31T23:00:00Z'));
    granted(await quota.take(scheduled));
    expect(await quota.take(scheduled)).toEqual({ kind: 'denied', reason: 'month', until: at('2025-01-01T00:00:02Z') });
  });

  it('is charged together with the others or not at all: a take that the day denies costs the month nothing', async () => {
    const { quota } = open({ perDay: 1, perMonth: 100 });
    granted(await quota.take(scheduled));
    for (let i = 0; i < 5; i++) await quota.take(scheduled);
    const state = await quota.state();
    expect([state.day.spent, state.month.spent]).toEqual([1, 1]);
  });

  it('counts a request at its send time, not at the time of the take', async () => {
    const { quota, clock } = open(
      { perDay: 2, perSecond: 1 },
      { clock: createManualClock(at('2024-03-10T23:59:57Z')), runAheadMs: 60_000 },
    );
    expect(granted(await quota.take(scheduled))).toBe(at('2024-03-10T23:59:57Z'));
    // It would be sent at :58.01, within two seconds of midnight.
    expect(granted(await quota.take(scheduled))).toBe(at('2024-03-11T00:00:02Z'));
    expect(granted(await quota.take(scheduled))).toBe(at('2024-03-11T00:00:03.010Z'));
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('day');
  });

  it('has a guard time at its border: no request is sent within two seconds of it', async () => {
    for (const [asked, sent] of [
      ['2024-03-31T23:59:57.999Z', '2024-03-31T23:59:57.999Z'],
      ['2024-03-31T23:59:58.000Z', '2024-04-01T00:00:02.000Z'],
      ['2024-03-31T23:59:59.999Z', '2024-04-01T00:00:02.000Z'],
      ['2024-04-01T00:00:00.000Z', '2024-04-01T00:00:02.000Z'],
      ['2024-04-01T00:00:01.999Z', '2024-04-01T00:00:02.000Z'],
      ['2024-04-01T00:00:02.001Z', '2024-04-01T00:00:02.001Z'],
    ] as const) {
      const { quota } = open({ perMonth: 10 }, { clock: createManualClock(at(asked)), runAheadMs: 5000 });
      expect(granted(await quota.take(scheduled))).toBe(at(sent));
      const unlimited = open({}, { clock: createManualClock(at(asked)) });
      expect(granted(await unlimited.quota.take(scheduled))).toBe(at(asked));
    }
  });

  it('never moves back, whatever the clock does', async () => {
    const { quota, clock } = open({ perDay: 2 }, { clock: createManualClock(at('2024-03-11T00:00:10Z')) });
    granted(await quota.take(scheduled));
    clock.set(at('2024-03-10T23:00:00Z'));
    // By this clock, yesterday has a day left. The ledger has already seen today.
    granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)).toEqual(['day', 25 * HOUR + 2000]);
    expect((await quota.state()).day).toMatchObject({ start: at('2024-03-11T00:00:00Z'), spent: 2 });
  });
});

describe('the border of a quota window', () => {
  const LAST_MS = at('2024-02-29T23:59:59.999Z');
  const MARCH = at('2024-03-01T00:00:00Z');
  /** The tests are about the border itself, so the guard time is zero. */
  const atTheBorder = () => ({ clock: createManualClock(LAST_MS), graceMs: 0, runAheadMs: 0 });

  it('counts a take in the last millisecond of a day in that day, and a take at midnight in the next', async () => {
    const { quota, clock } = open({ perDay: 2 }, atTheBorder());
    for (let i = 0; i < 2; i++) expect(granted(await quota.take(scheduled))).toBe(LAST_MS);
    expect(await quota.take(scheduled)).toEqual({ kind: 'denied', reason: 'day', until: MARCH });
    expect((await quota.state()).day).toEqual({ start: MARCH - 24 * HOUR, reset: MARCH, spent: 2, limit: 2 });
    expect(await quota.spenders()).toMatchObject([{ day: 2, month: 2 }]);

    clock.set(MARCH);
    expect((await quota.state()).day).toMatchObject({ start: MARCH, spent: 0 });
    for (let i = 0; i < 2; i++) expect(granted(await quota.take(scheduled))).toBe(MARCH);
    expect(await quota.take(scheduled)).toEqual({ kind: 'denied', reason: 'day', until: MARCH + 24 * HOUR });
    expect((await quota.state()).day).toEqual({ start: MARCH, reset: MARCH + 24 * HOUR, spent: 2, limit: 2 });
    expect(await quota.spenders()).toMatchObject([{ day: 2, month: 2 }]);
  });

  it('counts a take in the last millisecond of a month in that month, and a take at midnight in the next', async () => {
    const { quota, clock } = open({ perMonth: 2 }, atTheBorder());
    for (let i = 0; i < 2; i++) expect(granted(await quota.take(scheduled))).toBe(LAST_MS);
    expect(await quota.take(scheduled)).toEqual({ kind: 'denied', reason: 'month', until: MARCH });
    expect((await quota.state()).month).toMatchObject({ start: at('2024-02-01T00:00:00Z'), reset: MARCH, spent: 2 });

    clock.set(MARCH);
    for (let i = 0; i < 2; i++) expect(granted(await quota.take(scheduled))).toBe(MARCH);
    const until = at('2024-04-01T00:00:00Z');
    expect(await quota.take(scheduled)).toEqual({ kind: 'denied', reason: 'month', until });
    expect((await quota.state()).month).toMatchObject({ start: MARCH, reset: until, spent: 2 });
    expect(await quota.spenders()).toMatchObject([{ month: 2 }]);
  });
});

describe('the reservation', () => {
  it('is left alone by backfills and used by the schedules', async () => {
    const { quota, clock } = open({ perDay: 10 }, { reserved: () => ({ day: 3, month: 40 }) });
    for (let i = 0; i < 7; i++) granted(await quota.take(backfill));
    expect(denied(await quota.take(backfill), clock)).toEqual(['reserved', 12 * HOUR + 2000]);
    for (let i = 0; i < 3; i++) granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('day');
    expect(denied(await quota.take(backfill), clock)[0]).toBe('day');
  });

  it('shrinks with time, and backfills go on', async () => {
    let aside: Reserved = { day: 0, month: 5 };
    const { quota, clock } = open({ perMonth: 6 }, { reserved: () => aside });
    granted(await quota.take(backfill));
    expect(denied(await quota.take(backfill), clock)[0]).toBe('reserved');
    aside = { day: 0, month: 4 };
    granted(await quota.take(backfill));
  });

  it('keeps one request for the account when everything else is spent', async () => {
    const account: Spender = { class: 'scheduled', name: 'account', isAccountRequest: true };
    const { quota, clock } = open(
      { perMonth: 5 },
      { reserved: () => ({ day: 0, month: 3, account: { day: 0, month: 1 } }) },
    );
    for (let i = 0; i < 2; i++) granted(await quota.take(backfill));
    for (let i = 0; i < 2; i++) granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('reserved');
    granted(await quota.take(account));
    expect(denied(await quota.take(account), clock)[0]).toBe('month');
  });
});

describe('a 429', () => {
  const limited = (sentAt: number, retryAfterMs: number | null = null) => ({
    sentAt,
    retryAfterMs,
    message: 'slow down',
  });

  it('holds all takes until Retry-After and slows the rate, more for each further 429; the rate recovers within minutes', async () => {
    const a = open({ perSecond: 10 });
    const b = open({ perSecond: 10 }, { accountId: a.accountId, clock: a.clock });
    granted(await a.quota.take(scheduled));
    await a.quota.limited(limited(NOON, 7000));
    expect(denied(await b.quota.take(backfill), b.clock)).toEqual(['limited', 7000]);
    expect((await b.quota.state()).hold).toEqual({ until: NOON + 7000, reason: 'limited', message: 'slow down' });
    a.clock.advance(7000);
    const gapNow = async () => {
      const first = granted(await b.quota.take(backfill));
      const gap = granted(await b.quota.take(backfill)) - first;
      a.clock.advance(gap);
      return gap;
    };
    // A single 429 means that one instant was too full.
    expect(await gapNow()).toBe(127);
    a.clock.set(NOON + 67_000);
    expect(await gapNow()).toBeCloseTo(114, -1);
    // Another one soon after means that the rate is too high.
    await a.quota.limited(limited(NOON + 67_000, 0));
    a.clock.set(NOON + 68_000);
    expect(await gapNow()).toBeCloseTo(225, -1);
    a.clock.set(NOON + 12 * 60_000);
    expect(await gapNow()).toBe(102);
    a.clock.set(NOON + 100 * 60_000);
    expect(await gapNow()).toBe(101);
    expect((await b.quota.state()).rate).toMatchObject({ limit: 10 });
  });

  it('counts once for all requests that were in flight together', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    const sent = Array.from({ length: 8 }, (_, i) => NOON + i);
    clock.advance(100);
    for (const sentAt of sent) await quota.limited(limited(sentAt, 1000));
    expect((await quota.state()).rate.now).toBeCloseTo(8);
    clock.advance(1000);
    await quota.limited(limited(clock.now(), 1000));
    expect((await quota.state()).rate.now).toBeCloseTo(4);
  });

  it('counts once for requests that other processes send with permits from before it', async () => {
    const a = open({ perSecond: 10 });
    const { clock } = a;
    const others = Array.from({ length: 5 }, () => open({ perSecond: 10 }, { accountId: a.accountId, clock }));
    granted(await a.quota.take(backfill));
    const permits: number[] = [];
    for (const { quota } of others) permits.push(granted(await quota.take(scheduled)));
    clock.advance(20);
    await a.quota.limited(limited(NOON));
    for (const [i, sentAt] of permits.entries()) {
      clock.set(sentAt + 50);
      await others[i]!.quota.limited(limited(sentAt));
    }
    clock.set(NOON + 20);
    expect(denied(await a.quota.take(backfill), clock)).toEqual(['limited', 1_000]);
    expect((await a.quota.state()).rate.now).toBeCloseTo(8);
  });

  it('that repeats makes the backoff longer each time, up to five minutes and a thirty-second of the rate', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    const waits: number[] = [];
    for (let i = 0; i < 12; i++) {
      await quota.limited(limited(clock.now()));
      const [, wait] = denied(await quota.take(backfill), clock);
      waits.push(wait);
      expect((await quota.state()).rate.now).toBeGreaterThanOrEqual(10 / 32 - 1e-9);
      clock.advance(wait);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300].map((s) => s * 1000));
  });

  it('with a Retry-After of 0 does not cause a busy loop', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    let wait = 0;
    for (let i = 0; i < 6; i++) {
      clock.advance(wait + 1);
      await quota.limited(limited(clock.now(), 0));
      const take = await quota.take(backfill);
      wait = take.kind === 'denied' ? take.until - clock.now() : 0;
    }
    expect(wait).toBeGreaterThan(10_000);
  });

  it('is forgotten, except for the rate, when answers arrive again', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    for (let i = 0; i < 5; i++) {
      await quota.limited(limited(clock.now()));
      clock.advance(denied(await quota.take(backfill), clock)[1]);
    }
    await quota.answered({ sentAt: clock.now() });
    await quota.limited(limited(clock.now() + 1));
    expect(denied(await quota.take(backfill), clock)[1]).toBe(1000);
  });

  it('has a backoff with jitter from the given random numbers', async () => {
    const { quota, clock } = open({}, { random: () => 0.5 });
    await quota.limited(limited(NOON));
    expect(denied(await quota.take(backfill), clock)[1]).toBe(750);
  });
});

describe('an outage', () => {
  const down = (sentAt: number, retryAfterMs: number | null = null) => ({ sentAt, retryAfterMs, message: 'refused' });

  it('begins with four failures in a row: then all takes wait, longer each time, and one request at a time probes', async () => {
    const a = open({});
    const b = open({}, { accountId: a.accountId, clock: a.clock });
    const { clock } = a;
    for (let i = 0; i < 3; i++) {
      clock.advance(10);
      await a.quota.unavailable(down(clock.now()));
      granted(await b.quota.take(backfill));
    }
    const waits: number[] = [];
    for (let i = 0; i < 11; i++) {
      clock.advance(10);
      await a.quota.unavailable(down(clock.now()));
      const [reason, wait] = denied(await b.quota.take(backfill), clock);
      expect(reason).toBe('unavailable');
      waits.push(wait);
      clock.advance(wait);
      granted(await b.quota.take(backfill));
      expect(denied(await a.quota.take(backfill), clock)).toEqual(['unavailable', 1_000]);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((s) => s * 1000));
    await b.quota.answered({ sentAt: clock.now() });
    for (let i = 0; i < 3; i++) granted(await a.quota.take(backfill));
    expect((await a.quota.state()).hold).toBeNull();
  });

  it('lets another request probe when the first probe never returned', async () => {
    const { quota, clock } = open({});
    for (let i = 0; i < 4; i++) await quota.unavailable(down(NOON));
    clock.advance(1000);
    granted(await quota.take(backfill));
    clock.advance(59_999);
    expect(denied(await quota.take(backfill), clock)).toEqual(['unavailable', 1]);
    clock.advance(1);
    granted(await quota.take(backfill));
    expect(denied(await quota.take(backfill), clock)).toEqual(['unavailable', 1_000]);
  });

  it('does not get longer through requests that were in flight when it began', async () => {
    const { quota, clock } = open({});
    clock.advance(100);
    for (let i = 0; i < 32; i++) await quota.unavailable(down(NOON + i));
    expect(denied(await quota.take(backfill), clock)[1]).toBe(1000);
  });

  it('does not get longer through requests whose permits were granted before it began', async () => {
    const { quota, clock } = open({});
    for (let i = 0; i < 4; i++) await quota.unavailable(down(NOON));
    // Ten a second, granted up to a second ahead.
    for (let i = 0; i < 9; i++) {
      clock.advance(100);
      await quota.unavailable(down(clock.now()));
    }
    expect(denied(await quota.take(backfill), clock)).toEqual(['unavailable', 100]);
  });

  it('does not end with the answer to a request that was in flight when it began', async () => {
    const a = open({});
    const b = open({}, { accountId: a.accountId, clock: a.clock });
    const { clock } = a;
    const sentBefore = clock.now();
    clock.advance(100);
    for (let i = 0; i < 4; i++) await a.quota.unavailable(down(clock.now()));
    await b.quota.answered({ sentAt: sentBefore });
    await a.quota.answered({ sentAt: sentBefore });
    expect((await a.quota.state()).outage).toEqual({ message: 'refused' });
    clock.advance(1000);
    granted(await a.quota.take(backfill));
    // While one tries, another such answer comes. It lets nobody else try.
    await a.quota.answered({ sentAt: sentBefore });
    expect(denied(await b.quota.take(backfill), clock)).toEqual(['unavailable', 1_000]);
    await a.quota.unavailable(down(clock.now()));
    expect(denied(await b.quota.take(backfill), clock)).toEqual(['unavailable', 2000]);
    clock.advance(2000);
    granted(await b.quota.take(backfill));
    // Nor is the answer to the one that tries lost beside another such answer.
    await Promise.all([b.quota.answered({ sentAt: sentBefore }), b.quota.answered({ sentAt: clock.now() })]);
    expect((await a.quota.state()).outage).toBeNull();
    for (let i = 0; i < 3; i++) granted(await a.quota.take(backfill));
  });

  it('does not end with a 429 or a 402 to a request that was in flight when it began', async () => {
    const late = {
      limited: { retryAfterMs: 0, message: 'slow down' },
      exhausted: { window: 'day', message: 'day used up' },
    } as const;
    for (const report of ['limited', 'exhausted'] as const) {
      const { quota, clock } = open({});
      const sentAt = clock.now();
      clock.advance(100);
      for (let i = 0; i < 4; i++) await quota.unavailable(down(clock.now()));
      clock.advance(1000);
      granted(await quota.take(backfill));
      await (report === 'limited'
        ? quota.limited({ sentAt, ...late.limited })
        : quota.exhausted({ sentAt, ...late.exhausted }));
      expect((await quota.state()).outage).toEqual({ message: 'refused' });
      expect(denied(await quota.take(backfill), clock)[0]).toBe(
        report === 'limited' ? 'unavailable' : 'quota exhausted',
      );
      // An answer to the one that tries ends it.
      await quota.limited({ sentAt: clock.now(), ...late.limited });
      expect((await quota.state()).outage).toBeNull();
    }
  });

  it('lets one request try alone after it, also when the account proved meanwhile that the quota is not exhausted', async () => {
    const { quota, clock } = open({});
    const sentAt = clock.now();
    clock.advance(100);
    for (let i = 0; i < 4; i++) await quota.unavailable(down(clock.now()));
    await quota.exhausted({ sentAt, window: 'day', message: 'day used up' });
    await quota.reconcile({ made: 1, left: 99 });
    clock.advance(1000);
    granted(await quota.take(backfill));
    expect(denied(await quota.take(backfill), clock)).toEqual(['unavailable', 1_000]);
  });

  it('ends with a repeated report of an answer, when the database refused the first one', async () => {
    const own = createClient({ url: database.url, max: 1, applicationName: 'ledger that is refused' });
    try {
      const { quota, clock, accountId } = open({}, { sql: own });
      for (let i = 0; i < 4; i++) await quota.unavailable(down(clock.now()));
      clock.advance(1000);
      granted(await quota.take(backfill));
      await own`set lock_timeout = '10ms'`;
      await database.sql.begin(async (tx) => {
        await tx`select from ops.quota where account_id = ${accountId} for update`;
        await expect(quota.answered({ sentAt: clock.now() })).rejects.toThrow('lock timeout');
      });
      await quota.answered({ sentAt: clock.now() });
      expect((await quota.state()).outage).toBeNull();
    } finally {
      await own.end();
    }
  });

  it('does not begin through single failures between answers, in any number of processes', async () => {
    const a = open({});
    const b = open({}, { accountId: a.accountId, clock: a.clock });
    for (let i = 0; i < 10; i++) {
      a.clock.advance(10);
      await a.quota.unavailable(down(a.clock.now()));
      granted(await b.quota.take(backfill));
      await b.quota.answered({ sentAt: a.clock.now() });
    }
    granted(await a.quota.take(backfill));
  });

  it('does not begin through four requests that hang while later requests are answered', async () => {
    const { quota, clock } = open({});
    clock.advance(30_000);
    await quota.answered({ sentAt: clock.now() });
    for (let i = 0; i < 8; i++) await quota.unavailable(down(NOON + i));
    granted(await quota.take(backfill));
  });

  it('is noticed after the clock was set back, although the last answer is then dated in the future', async () => {
    const { quota, clock } = open({});
    await quota.answered({ sentAt: clock.now() });
    clock.advance(-DAY);
    for (let i = 0; i < 4; i++) await quota.unavailable({ sentAt: clock.now(), retryAfterMs: null, message: 'down' });
    expect((await quota.state()).outage).toEqual({ message: 'down' });
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('unavailable');
    // So it is with an answer to a request that was sent before the clock was set back. It proves no more than any other of now.
    await quota.answered({ sentAt: clock.now() + HOUR });
    expect((await quota.state()).outage).toEqual({ message: 'down' });
    clock.advance(1);
    await quota.answered({ sentAt: clock.now() });
    expect((await quota.state()).outage).toBe(null);
    for (let i = 0; i < 4; i++) await quota.unavailable({ sentAt: clock.now(), retryAfterMs: null, message: 'down' });
    expect((await quota.state()).outage).toEqual({ message: 'down' });
  });

  it('of one failure with Retry-After holds all takes for exactly that time', async () => {
    const { quota, clock } = open({});
    await quota.unavailable(down(NOON, 20_000));
    expect(denied(await quota.take(backfill), clock)).toEqual(['unavailable', 20_000]);
    clock.advance(20_000);
    granted(await quota.take(backfill));
    granted(await quota.take(backfill));
  });

  it('costs nothing while there is none: an answer sends the database no statement', async () => {
    let statements = 0;
    const sql = new Proxy(database.sql, {
      apply: (target, self, args) => {
        statements++;
        return Reflect.apply(target, self, args);
      },
      get: (target, name) => {
        if (name === 'begin') statements++;
        return Reflect.get(target, name);
      },
    });
    const { quota, clock, accountId } = open({}, { sql });
    granted(await quota.take(backfill));
    statements = 0;
    for (let i = 0; i < 50; i++) await quota.answered({ sentAt: clock.now() });
    expect(statements).toBe(0);
    // Once another process has met a failure, the next take reports it to this one.
    await open({}, { accountId, clock }).quota.unavailable(down(NOON));
    granted(await quota.take(backfill));
    statements = 0;
    for (let i = 0; i < 50; i++) await quota.answered({ sentAt: clock.now() });
    expect(statements).toBeGreaterThan(0);
    expect(statements).toBeLessThan(5);
  });
});

describe('an exhausted quota', () => {
  const event = { window: 'month', message: 'you have reached maximum request limit' } as const;

  it('of a month holds all takes until the month ends; then one request goes first', async () => {
    const { quota, clock } = open({ perMonth: 100 });
    granted(await quota.take(backfill));
    await quota.exhausted({ sentAt: clock.now(), ...event });
    expect(await quota.take(scheduled)).toEqual({
      kind: 'denied',
      reason: 'quota exhausted',
      until: at('2024-04-01T00:00:02Z'),
    });
    expect((await quota.state()).hold).toMatchObject({ reason: 'quota exhausted', message: event.message });
    clock.set(at('2024-04-01T00:00:02Z'));
    granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)).toEqual(['quota exhausted', 1_000]);
    await quota.answered({ sentAt: clock.now() });
    granted(await quota.take(scheduled));
  });

  it('of a day holds all takes until the day ends', async () => {
    const { quota, clock } = open({ perDay: 100 });
    await quota.exhausted({ sentAt: clock.now(), ...event, window: 'day' });
    expect(await quota.take(scheduled)).toEqual({
      kind: 'denied',
      reason: 'quota exhausted',
      until: at('2024-03-11T00:00:02Z'),
    });
  });

  it('of a month that has just begun holds takes for minutes only, because a cache may still repeat the answer of the last month', async () => {
    const { quota } = open({}, { clock: createManualClock(at('2024-04-01T00:00:30Z')) });
    await quota.exhausted({ sentAt: at('2024-04-01T00:00:29Z'), ...event });
    expect(await quota.take(scheduled)).toMatchObject({ reason: 'quota exhausted', until: at('2024-04-01T00:15:02Z') });
  });

  it('ends with the month of now, if the request was sent before the clock was set back', async () => {
    const { quota, clock } = open({});
    await quota.exhausted({ sentAt: at('2025-03-10T12:00:00Z'), window: 'month', message: '402' });
    expect((await quota.state()).hold?.until).toBe(at('2024-04-01T00:00:02Z'));
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('quota exhausted');
  });

  it('still allows the request for the account, whose answer ends the hold', async () => {
    const { quota, clock } = open({ perMonth: 100 });
    await quota.exhausted({ sentAt: clock.now(), ...event });
    granted(await quota.take({ class: 'scheduled', name: 'account', isAccountRequest: true }));
    await quota.answered({ sentAt: clock.now() });
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('quota exhausted');
    await quota.reconcile({ made: 100, left: 0 });
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('month');
    await quota.reconcile({ made: 100, left: 900 });
    granted(await quota.take(scheduled));
    granted(await quota.take(scheduled));
  });
});

describe('the account endpoint', () => {
  it('is still requested when others have used up the month, because a larger plan is found that way', async () => {
    const account: Spender = { class: 'scheduled', name: 'account', isAccountRequest: true };
    const { quota, clock } = open({ perMonth: 20 });
    for (let i = 0; i < 3; i++) granted(await quota.take(scheduled));
    await quota.reconcile({ made: 20, left: 0 });
    for (const other of [scheduled, backfill]) expect(denied(await quota.take(other), clock)[0]).toBe('month');
    granted(await quota.take(account));
    await quota.reconcile({ made: 20, left: 80 });
    granted(await quota.take(scheduled));
    expect((await quota.state()).month).toMatchObject({ limit: 100 });
  });

  it('is not requested when we have used up the month ourselves, nor beyond the limit of the operator', async () => {
    const account: Spender = { class: 'scheduled', name: 'account', isAccountRequest: true };
    const ours = open({ perMonth: 5 });
    for (let i = 0; i < 5; i++) granted(await ours.quota.take(scheduled));
    await ours.quota.reconcile({ made: 5, left: 0 });
    expect(denied(await ours.quota.take(account), ours.clock)[0]).toBe('month');
    const capped = open({ perMonth: 5 }, { perMonthFixed: true });
    await capped.quota.reconcile({ made: 6, left: 0 });
    expect(denied(await capped.quota.take(account), capped.clock)[0]).toBe('month');
  });

  it('overrides our count when its own is higher, and sets the limit', async () => {
    const { quota, clock } = open({ perMonth: 5 });
    for (let i = 0; i < 5; i++) granted(await quota.take(scheduled));
    await quota.reconcile({ made: 3, left: 17 });
    expect((await quota.state()).month).toMatchObject({ spent: 5, limit: 20 });
    await quota.reconcile({ made: 19, left: 1 });
    expect((await quota.state()).month).toMatchObject({ spent: 19, limit: 20 });
    granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('month');
    await quota.reconcile({ made: 25, left: null });
    expect((await quota.state()).month).toMatchObject({ spent: 25, limit: null });
    granted(await quota.take(scheduled));
  });

  it('may lower a limit that the operator set, but not raise it', async () => {
    const { quota, clock } = open({ perMonth: 5 }, { perMonthFixed: true });
    await quota.reconcile({ made: 0, left: 1000 });
    for (let i = 0; i < 5; i++) granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('month');
    expect((await quota.state()).month.limit).toBe(5);
    await quota.reconcile({ made: 5, left: null });
    expect((await quota.state()).month.limit).toBe(5);
    await quota.reconcile({ made: 1, left: 2 });
    expect((await quota.state()).month.limit).toBe(3);
  });

  it('does not change the new month with an answer from around the turn of the month', async () => {
    const { quota, clock } = open(
      { perMonth: 20_000 },
      { clock: createManualClock(at('2024-03-31T23:59:59Z')), runAheadMs: 5000 },
    );
    granted(await quota.take(scheduled));
    await quota.reconcile({ made: 19_990, left: 10 });
    expect((await quota.state()).month).toMatchObject({ start: at('2024-04-01T00:00:00Z'), spent: 1 });
    clock.set(at('2024-04-01T00:05:00Z'));
    await quota.reconcile({ made: 19_991, left: 9 });
    expect((await quota.state()).month).toMatchObject({ spent: 1, limit: 20_000 });
    clock.set(at('2024-04-01T00:20:00Z'));
    await quota.reconcile({ made: 4, left: 19_996 });
    expect((await quota.state()).month).toMatchObject({ spent: 4 });
  });
});

describe('the list of spenders', () => {
  it('adds up to all that was spent, largest first, and starts anew with the month', async () => {
    const { quota, clock } = open({ perMonth: 100 });
    for (let i = 0; i < 3; i++) granted(await quota.take(backfill));
    granted(await quota.take(scheduled));
    clock.advance(24 * HOUR);
    for (let i = 0; i < 2; i++) granted(await quota.take(scheduled));
    expect(await quota.spenders()).toEqual([
      { class: 'backfill', name: 'backfill 1', day: 0, month: 3 },
      { class: 'scheduled', name: 'catalogue', day: 2, month: 3 },
    ]);
    expect((await quota.state()).month.spent).toBe(6);
    clock.set(at('2024-04-02T00:00:00Z'));
    expect(await quota.spenders()).toEqual([]);
    expect((await quota.state()).month.spent).toBe(0);
  });
});

it('accounts share nothing', async () => {
  const a = open({ perDay: 1, perSecond: 1 });
  const b = open({ perDay: 1, perSecond: 1 });
  granted(await a.quota.take(scheduled));
  expect(granted(await b.quota.take(scheduled))).toBe(NOON);
});

it('nobody waits for a day when the clock is set back by a day during a take', async () => {
  const { quota, clock } = open({ perSecond: 10 }, { useDatabaseClock: true });
  granted(await quota.take(scheduled));
  const taking = quota.take(scheduled);
  await setImmediate();
  clock.set(NOON - DAY);
  expect(granted(await taking) - clock.now()).toBeLessThanOrEqual(1_000);
  expect(granted(await quota.take(scheduled)) - clock.now()).toBeLessThanOrEqual(1_000);
});

it('a grant on the database clock is converted to our clock, however far off ours is', async () => {
  const { quota, clock } = open(
    { perSecond: 10 },
    { useDatabaseClock: true, clock: createManualClock(at('1999-01-01')) },
  );
  const first = granted(await quota.take(scheduled));
  expect(first).toBe(clock.now());
  const second = granted(await quota.take(scheduled));
  expect(second - first).toBeGreaterThan(0);
  expect(second - first).toBeLessThanOrEqual(101);
  const state = await quota.state();
  expect(Math.abs(state.now - clock.now())).toBeLessThanOrEqual(1);
  expect(state.month.spent).toBe(2);
  await quota.limited({ sentAt: clock.now(), retryAfterMs: 60_000, message: '' });
  const [reason, wait] = denied(await quota.take(scheduled), clock);
  expect(reason).toBe('limited');
  expect(wait).toBeGreaterThan(59_000);
  expect(wait).toBeLessThanOrEqual(60_000);
});
