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

/** A fresh account on a clock that stands still; options given again for the same account make a second process of it. */
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

/** What denied, and how far ahead of the clock it is worth asking again. */
function denied(take: Take, clock: ManualClock): [string, number] {
  expect(take).toMatchObject({ kind: 'denied' });
  return take.kind === 'denied' ? [take.reason, take.until - clock.now()] : ['', Number.NaN];
}

describe('one connection', () => {
  it('that is cut in the midst of a change, with takes behind it, is made anew', async () => {
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
      // Those behind it may have been lost with it, or are answered on the new one.
      await Promise.all(takes);
    } finally {
      locked.release();
    }
    await quota.limited({ sentAt: clock.now(), retryAfterMs: 5_000, message: 'slow down' });
    expect(denied(await quota.take(backfill), clock)).toEqual(['limited', 5_000]);
    await own.end();
  });

  it('is not waited for by who only looks', async () => {
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

describe('the pace', () => {
  it('spaces grants by a hundredth more than the limit, and refuses to run further ahead than two seconds', async () => {
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

  it('lets backfill run half as far ahead, so that scheduled work finds a place however many wait', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    for (let i = 0; i < 10; i++) granted(await quota.take(backfill));
    expect(denied(await quota.take(backfill), clock)).toEqual(['queue', 10]);
    expect(granted(await quota.take(scheduled))).toBe(NOON + 1010);
    expect(denied(await quota.take(backfill), clock)).toEqual(['queue', 111]);
  });

  it('does not save up what was not used', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    granted(await quota.take(backfill));
    clock.advance(HOUR);
    expect(granted(await quota.take(backfill))).toBe(clock.now());
    expect(granted(await quota.take(backfill))).toBe(clock.now() + 101);
  });

  it('is not stopped by a clock that was set back by a day', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    granted(await quota.take(scheduled));
    clock.advance(-24 * HOUR);
    expect(granted(await quota.take(scheduled))).toBe(clock.now() + 2000);
    expect(denied(await quota.take(scheduled), clock)).toEqual(['queue', 101]);
    clock.advance(101);
    expect(granted(await quota.take(scheduled))).toBe(clock.now() + 2000);
  });

  it('may be slower than one a second', async () => {
    const { quota, clock } = open({ perSecond: 0.1 });
    granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)).toEqual(['queue', 8100]);
  });
});

describe('a window', () => {
  it('gives exactly its limit, then says when it begins anew', async () => {
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

  it('takes from all or from none: a day that is spent costs the month nothing', async () => {
    const { quota } = open({ perDay: 1, perMonth: 100 });
    granted(await quota.take(scheduled));
    for (let i = 0; i < 5; i++) await quota.take(scheduled);
    const state = await quota.state();
    expect([state.day.spent, state.month.spent]).toEqual([1, 1]);
  });

  it('is the one in which the request will be sent, not the one in which it was asked for', async () => {
    const { quota, clock } = open(
      { perDay: 2, perSecond: 1 },
      { clock: createManualClock(at('2024-03-10T23:59:57Z')), runAheadMs: 60_000 },
    );
    expect(granted(await quota.take(scheduled))).toBe(at('2024-03-10T23:59:57Z'));
    // Would be sent at :58.01, within two seconds of midnight.
    expect(granted(await quota.take(scheduled))).toBe(at('2024-03-11T00:00:02Z'));
    expect(granted(await quota.take(scheduled))).toBe(at('2024-03-11T00:00:03.010Z'));
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('day');
  });

  it('has a quiet zone around its border: nothing is sent within two seconds of it', async () => {
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
    // A day is left in yesterday, as far as this clock knows; the ledger has already seen today.
    granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)).toEqual(['day', 25 * HOUR + 2000]);
    expect((await quota.state()).day).toMatchObject({ start: at('2024-03-11T00:00:00Z'), spent: 2 });
  });
});

describe('the border of a window', () => {
  const LAST_MS = at('2024-02-29T23:59:59.999Z');
  const MARCH = at('2024-03-01T00:00:00Z');
  /** The border itself is tested, so nothing is kept away from it. */
  const atTheBorder = () => ({ clock: createManualClock(LAST_MS), graceMs: 0, runAheadMs: 0 });

  it('a take in the last millisecond of a day counts in that day, one at midnight in the next', async () => {
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

  it('a take in the last millisecond of a month counts in that month, one at midnight in the next', async () => {
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

describe('what is reserved', () => {
  it('is left by backfill and used by the schedules', async () => {
    const { quota, clock } = open({ perDay: 10 }, { reserved: () => ({ day: 3, month: 40 }) });
    for (let i = 0; i < 7; i++) granted(await quota.take(backfill));
    expect(denied(await quota.take(backfill), clock)).toEqual(['reserved', 12 * HOUR + 2000]);
    for (let i = 0; i < 3; i++) granted(await quota.take(scheduled));
    expect(denied(await quota.take(scheduled), clock)[0]).toBe('day');
    expect(denied(await quota.take(backfill), clock)[0]).toBe('day');
  });

  it('shrinks with time, and backfill goes on', async () => {
    let aside: Reserved = { day: 0, month: 5 };
    const { quota, clock } = open({ perMonth: 6 }, { reserved: () => aside });
    granted(await quota.take(backfill));
    expect(denied(await quota.take(backfill), clock)[0]).toBe('reserved');
    aside = { day: 0, month: 4 };
    granted(await quota.take(backfill));
  });

  it('keeps the account askable when everything else is spent', async () => {
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

describe('429', () => {
  const limited = (sentAt: number, retryAfterMs: number | null = null) => ({
    sentAt,
    retryAfterMs,
    message: 'slow down',
  });

  it('holds everybody until Retry-After, slows the pace, more when it comes again, and the pace comes back within minutes', async () => {
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
    // One in a while means that an instant was too full.
    expect(await gapNow()).toBe(127);
    a.clock.set(NOON + 67_000);
    expect(await gapNow()).toBeCloseTo(114, -1);
    // Another one soon after means that the pace is too fast.
    await a.quota.limited(limited(NOON + 67_000, 0));
    a.clock.set(NOON + 68_000);
    expect(await gapNow()).toBeCloseTo(225, -1);
    a.clock.set(NOON + 12 * 60_000);
    expect(await gapNow()).toBe(102);
    a.clock.set(NOON + 100 * 60_000);
    expect(await gapNow()).toBe(101);
    expect((await b.quota.state()).rate).toMatchObject({ limit: 10 });
  });

  it('counts once for all requests that were under way together', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    const sent = Array.from({ length: 8 }, (_, i) => NOON + i);
    clock.advance(100);
    for (const sentAt of sent) await quota.limited(limited(sentAt, 1000));
    expect((await quota.state()).rate.now).toBeCloseTo(8);
    clock.advance(1000);
    await quota.limited(limited(clock.now(), 1000));
    expect((await quota.state()).rate.now).toBeCloseTo(4);
  });

  it('counts once also for what other processes send with permits that they had before', async () => {
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

  it('again and again, backs off longer each time, to five minutes and a thirty-second of the pace', async () => {
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

  it('with a Retry-After of nothing does not make a loop', async () => {
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

  it('is forgotten, but for the pace, when answers come again', async () => {
    const { quota, clock } = open({ perSecond: 10 });
    for (let i = 0; i < 5; i++) {
      await quota.limited(limited(clock.now()));
      clock.advance(denied(await quota.take(backfill), clock)[1]);
    }
    await quota.answered({ sentAt: clock.now() });
    await quota.limited(limited(clock.now() + 1));
    expect(denied(await quota.take(backfill), clock)[1]).toBe(1000);
  });

  it('back-offs are spread by the random that was given', async () => {
    const { quota, clock } = open({}, { random: () => 0.5 });
    await quota.limited(limited(NOON));
    expect(denied(await quota.take(backfill), clock)[1]).toBe(750);
  });
});

describe('an outage', () => {
  const down = (sentAt: number, retryAfterMs: number | null = null) => ({ sentAt, retryAfterMs, message: 'refused' });

  it('is four failures in a row; then everybody waits, longer each time, and one at a time tries', async () => {
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
      expect(denied(await a.quota.take(backfill), clock)).toEqual(['unavailable', 60_000]);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((s) => s * 1000));
    await b.quota.answered({ sentAt: clock.now() });
    for (let i = 0; i < 3; i++) granted(await a.quota.take(backfill));
    expect((await a.quota.state()).hold).toBeNull();
  });

  it('lets another one try when the one that was to try never came back', async () => {
    const { quota, clock } = open({});
    for (let i = 0; i < 4; i++) await quota.unavailable(down(NOON));
    clock.advance(1000);
    granted(await quota.take(backfill));
    clock.advance(59_999);
    expect(denied(await quota.take(backfill), clock)).toEqual(['unavailable', 1]);
    clock.advance(1);
    granted(await quota.take(backfill));
    expect(denied(await quota.take(backfill), clock)).toEqual(['unavailable', 60_000]);
  });

  it('is not made worse by the requests that were under way when it began', async () => {
    const { quota, clock } = open({});
    clock.advance(100);
    for (let i = 0; i < 32; i++) await quota.unavailable(down(NOON + i));
    expect(denied(await quota.take(backfill), clock)[1]).toBe(1000);
  });

  it('is not made worse by requests whose permits had been granted before it began', async () => {
    const { quota, clock } = open({});
    for (let i = 0; i < 4; i++) await quota.unavailable(down(NOON));
    // Ten a second, granted a second ahead.
    for (let i = 0; i < 9; i++) {
      clock.advance(100);
      await quota.unavailable(down(clock.now()));
    }
    expect(denied(await quota.take(backfill), clock)).toEqual(['unavailable', 100]);
  });

  it('does not end with the answer to a request that was under way when it began', async () => {
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
    expect(denied(await b.quota.take(backfill), clock)).toEqual(['unavailable', 60_000]);
    await a.quota.unavailable(down(clock.now()));
    expect(denied(await b.quota.take(backfill), clock)).toEqual(['unavailable', 2000]);
    clock.advance(2000);
    granted(await b.quota.take(backfill));
    // Nor is the answer to the one that tries lost beside another such answer.
    await Promise.all([b.quota.answered({ sentAt: sentBefore }), b.quota.answered({ sentAt: clock.now() })]);
    expect((await a.quota.state()).outage).toBeNull();
    for (let i = 0; i < 3; i++) granted(await a.quota.take(backfill));
  });

  it('is not what single failures among answers are, in any number of processes', async () => {
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

  it('is not four that hang while what was asked after them is answered', async () => {
    const { quota, clock } = open({});
    clock.advance(30_000);
    await quota.answered({ sentAt: clock.now() });
    for (let i = 0; i < 8; i++) await quota.unavailable(down(NOON + i));
    granted(await quota.take(backfill));
  });

  it('may tell how long, once, and that is kept to', async () => {
    const { quota, clock } = open({});
    await quota.unavailable(down(NOON, 20_000));
    expect(denied(await quota.take(backfill), clock)).toEqual(['unavailable', 20_000]);
    clock.advance(20_000);
    granted(await quota.take(backfill));
    granted(await quota.take(backfill));
  });

  it('leaves the good times cheap: an answer without trouble asks the database nothing', async () => {
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
    // And once another process has met trouble, the next take tells this one.
    await open({}, { accountId, clock }).quota.unavailable(down(NOON));
    granted(await quota.take(backfill));
    statements = 0;
    for (let i = 0; i < 50; i++) await quota.answered({ sentAt: clock.now() });
    expect(statements).toBeGreaterThan(0);
    expect(statements).toBeLessThan(5);
  });
});

describe('a spent month', () => {
  const event = { window: 'month', message: 'you have reached maximum request limit' } as const;

  it('holds everybody until the month ends, and then one goes first', async () => {
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
    expect(denied(await quota.take(scheduled), clock)).toEqual(['quota exhausted', 60_000]);
    await quota.answered({ sentAt: clock.now() });
    granted(await quota.take(scheduled));
  });

  it('or day', async () => {
    const { quota, clock } = open({ perDay: 100 });
    await quota.exhausted({ sentAt: clock.now(), ...event, window: 'day' });
    expect(await quota.take(scheduled)).toEqual({
      kind: 'denied',
      reason: 'quota exhausted',
      until: at('2024-03-11T00:00:02Z'),
    });
  });

  it('is not believed for a month that has only begun: a cache may still tell of the last', async () => {
    const { quota } = open({}, { clock: createManualClock(at('2024-04-01T00:00:30Z')) });
    await quota.exhausted({ sentAt: at('2024-04-01T00:00:29Z'), ...event });
    expect(await quota.take(scheduled)).toMatchObject({ reason: 'quota exhausted', until: at('2024-04-01T00:15:02Z') });
  });

  it('still lets the account be asked, and what the account says ends it', async () => {
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

describe('what the account says', () => {
  it('that others have used up the month does not keep it from being asked, which is how a larger plan is found', async () => {
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

  it('is not asked when the month is used up by us, nor beyond what the operator allows', async () => {
    const account: Spender = { class: 'scheduled', name: 'account', isAccountRequest: true };
    const ours = open({ perMonth: 5 });
    for (let i = 0; i < 5; i++) granted(await ours.quota.take(scheduled));
    await ours.quota.reconcile({ made: 5, left: 0 });
    expect(denied(await ours.quota.take(account), ours.clock)[0]).toBe('month');
    const capped = open({ perMonth: 5 }, { perMonthFixed: true });
    await capped.quota.reconcile({ made: 6, left: 0 });
    expect(denied(await capped.quota.take(account), capped.clock)[0]).toBe('month');
  });

  it('wins when it is higher than our count, and its limit is the limit', async () => {
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

  it('may lower a limit the operator set, and not raise it', async () => {
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

  it('around the turn of the month is not taken for the new month', async () => {
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

describe('who spent it', () => {
  it('adds up to what was spent, most first, and begins anew with the month', async () => {
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

it('accounts do not share anything', async () => {
  const a = open({ perDay: 1, perSecond: 1 });
  const b = open({ perDay: 1, perSecond: 1 });
  granted(await a.quota.take(scheduled));
  expect(granted(await b.quota.take(scheduled))).toBe(NOON);
});

it('a clock that is set back by a day while a request is taken makes nobody wait for a day', async () => {
  const { quota, clock } = open({ perSecond: 10 }, { useDatabaseClock: true });
  granted(await quota.take(scheduled));
  const taking = quota.take(scheduled);
  await setImmediate();
  clock.set(NOON - DAY);
  expect(granted(await taking) - clock.now()).toBeLessThanOrEqual(1_000);
  expect(granted(await quota.take(scheduled)) - clock.now()).toBeLessThanOrEqual(1_000);
});

it('on the database clock, the grant is told on ours, however far off that is', async () => {
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
