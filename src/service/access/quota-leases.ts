/**
 * Counts the requests of callers without a write for each: some are taken from the database in advance, and given back when they
 * are not used. A process that dies takes what it held with it: at most one advance of each caller, counted and not used.
 */
import type { Clock, Instant } from '../../clock.ts';
import type { Allowance } from '../../contract/plan/access.ts';
import { DAY } from '../../core/interval.ts';
import {
  type Advance,
  type AdvanceWish,
  forgetAddresses,
  type GiveBack,
  giveBack,
  takeAdvances,
} from '../../store/callers/api-usage.ts';
import type { Sql } from '../../store/connection/connect.ts';

/** Null: no limit. */
export type Windows = { readonly perMonth: number | null; readonly perDay: number | null };

export type Taken =
  | { readonly kind: 'granted'; readonly allowance: Allowance | null }
  | { readonly kind: 'spent'; readonly window: 'month' | 'day'; readonly allowance: Allowance };

export type Advances = {
  /** One request of a caller; resolves at once as long as something was taken in advance. @throws when the database is away. */
  take(subject: string, windows: Windows): Taken | Promise<Taken>;
  /** This month: used by this process and not told to the database yet; taken in advance and not used yet. */
  ofMonth(subject: string): { readonly untold: number; readonly held: number };
  /** Gives everything back. */
  close(): Promise<void>;
};

/** The first advance; twice as many as long as a caller comes back for more within `BUSY_MS`, never more than `MOST`. */
const LEAST = 4;
const MOST = 256;
const BUSY_MS = 5_000;
/** Of what is left to a caller, so that what a crash takes stays small: one in so many. */
const SHARE = 50;
/** Who asks nothing for so long gets back what is held for him. */
const IDLE_MS = 20_000;
const LOOK_MS = 5_000;
/** Another process may give something back: who has nothing left is looked up again so much later. */
const SPENT_MS = 2_000;

type Purse = {
  month: Instant;
  day: Instant;
  held: number;
  /** Used this month, and not told to the database yet. */
  untold: number;
  size: number;
  filledAt: Instant;
  usedAt: Instant;
  filling: Promise<void> | null;
  known: Advance | null;
  windows: Windows;
};

/** `Promise.withResolvers`, which Node 20 does not have. */
type Deferred<T> = {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
};

function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

export function createAdvances({
  sql,
  clock,
  onError,
}: {
  readonly sql: Sql;
  readonly clock: Clock;
  /** Told when something could not be given back: it stays counted. */
  readonly onError: (error: Error) => void;
}): Advances {
  const purses = new Map<string, Purse>();
  const stop = new AbortController();
  let wishes = new Map<string, { wish: AdvanceWish; done: Deferred<Advance> }>();
  let asking = false;

  /** All that is wished for while a statement is under way goes into the next one. */
  const ask = async (): Promise<void> => {
    if (asking) return;
    asking = true;
    while (wishes.size > 0) {
      const batch = wishes;
      wishes = new Map();
      const now = clock.now();
      try {
        const all = [...batch.values()].map(({ wish }) => wish);
        const granted = await takeAdvances(sql, all, { now, month: monthOf(now), day: dayOf(now) });
        for (const advance of granted) batch.get(advance.subject)!.done.resolve(advance);
        // Its row was cleared away just then; whoever asks again has a new one.
        for (const { done } of batch.values()) done.reject(new Error('the count of a caller went away'));
      } catch (error) {
        for (const { done } of batch.values()) done.reject(error);
      }
    }
    asking = false;
  };
  const advance = (wish: AdvanceWish): Promise<Advance> => {
    const done = deferred<Advance>();
    wishes.set(wish.subject, { wish, done });
    void ask();
    return done.promise;
  };

  /** What was taken for a month that is over is worth nothing; for a day that is over, it still counts in the month. */
  const turnTo = (subject: string, purse: Purse, month: Instant, day: Instant): void => {
    if (month === purse.month && day === purse.day) return;
    const before = { month: purse.month, day: purse.day };
    const isKept = month === before.month && purse.windows.perDay === null;
    const unused = isKept ? 0 : purse.held;
    const used = purse.untold;
    Object.assign(purse, { month, day, held: purse.held - unused, untold: 0, known: isKept ? purse.known : null });
    if (unused + used > 0 && month === before.month)
      giveBack(sql, [{ subject, ...before, unused, used }]).catch(onError);
  };

  const fill = (subject: string, purse: Purse): Promise<void> => {
    purse.filling ??= (async () => {
      const now = clock.now();
      purse.size = isWithin(now, purse.filledAt, BUSY_MS) ? Math.min(MOST, purse.size * 2) : LEAST;
      const left = leftOf(purse);
      const wanted = left === null ? purse.size : Math.max(LEAST, Math.min(purse.size, Math.floor(left / SHARE)));
      const got = await advance({ subject, wanted, ...purse.windows });
      turnTo(subject, purse, got.month, got.day);
      Object.assign(purse, { held: purse.held + got.granted, known: got, filledAt: now });
    })().finally(() => {
      purse.filling = null;
    });
    return purse.filling;
  };

  const purseOf = (subject: string, windows: Windows, now: Instant): Purse => {
    let purse = purses.get(subject);
    if (purse === undefined) {
      purse = {
        month: monthOf(now),
        day: dayOf(now),
        held: 0,
        untold: 0,
        size: LEAST,
        filledAt: Number.NEGATIVE_INFINITY,
        usedAt: now,
        filling: null,
        known: null,
        windows,
      };
      purses.set(subject, purse);
    }
    purse.windows = windows;
    turnTo(subject, purse, Math.max(purse.month, monthOf(now)), Math.max(purse.day, dayOf(now)));
    purse.usedAt = now;
    return purse;
  };

  const use = (subject: string, purse: Purse, now: Instant): Taken => {
    purse.held--;
    purse.untold++;
    // Before it is empty, so that nobody waits.
    if (purse.held === Math.floor(purse.size / 4) && purse.size > LEAST) fill(subject, purse).catch(onError);
    return { kind: 'granted', allowance: allowanceOf(purse, now) };
  };

  const takeSlowly = async (subject: string, purse: Purse): Promise<Taken> => {
    for (;;) {
      const now = clock.now();
      const known = purse.known;
      const isSpent = known !== null && known.granted === 0 && isWithin(now, purse.filledAt, SPENT_MS);
      if (!isSpent) await fill(subject, purse);
      if (purse.held > 0) return use(subject, purse, now);
      // Others who waited for the same advance have used it up; nothing was granted only when nothing is left.
      if (purse.known?.granted === 0) {
        const window = windowOf(purse);
        return { kind: 'spent', window, allowance: allowanceOf(purse, now)! };
      }
    }
  };

  /** Of callers who ask no more everything is given back; of all others it is told what they have used. */
  const settle = async (isDone: (purse: Purse) => boolean): Promise<void> => {
    const back: GiveBack[] = [];
    for (const [subject, purse] of purses) {
      const isOver = purse.filling === null && isDone(purse);
      const [unused, used] = [isOver ? purse.held : 0, purse.untold];
      purse.untold = 0;
      if (isOver) purses.delete(subject);
      if (unused + used > 0) back.push({ subject, month: purse.month, day: purse.day, unused, used });
    }
    // Once: given back twice it would be more than the limit (api-usage.ts).
    await giveBack(sql, back).catch(onError);
  };
  const watching = (async () => {
    let forgetAt = clock.now();
    while (!stop.signal.aborted) {
      if (clock.now() >= forgetAt) {
        forgetAt = clock.now() + DAY;
        await forgetAddresses(sql, clock.now()).catch(onError);
      }
      await clock.sleep(LOOK_MS, stop.signal).catch(() => undefined);
      if (!stop.signal.aborted) await settle((purse) => clock.now() - purse.usedAt > IDLE_MS);
    }
  })();

  return {
    take(subject, windows) {
      const now = clock.now();
      const purse = purseOf(subject, windows, now);
      return purse.held > 0 ? use(subject, purse, now) : takeSlowly(subject, purse);
    },
    ofMonth(subject) {
      const purse = purses.get(subject);
      return purse?.month === monthOf(clock.now()) ? purse : { untold: 0, held: 0 };
    },
    async close() {
      stop.abort();
      await watching;
      await Promise.allSettled([...purses.values()].map((purse) => purse.filling));
      await settle(() => true);
    },
  };
}

/** A clock that was set back makes nothing recent. */
function isWithin(now: Instant, since: Instant, ms: number): boolean {
  return now >= since && now - since < ms;
}

/** What no process has taken yet, of the tighter window; null without a limit. */
function leftOf({ known, windows: { perMonth, perDay } }: Purse): number | null {
  const month = perMonth === null ? null : perMonth - (known?.monthSpent ?? 0);
  const day = perDay === null ? null : perDay - (known?.daySpent ?? 0);
  if (month === null) return day;
  return day === null ? month : Math.min(month, day);
}

function windowOf(purse: Purse): 'month' | 'day' {
  const { windows, known } = purse;
  return windows.perMonth !== null && (known?.monthSpent ?? 0) >= windows.perMonth ? 'month' : 'day';
}

/** Of the window that has less left. */
function allowanceOf(purse: Purse, now: Instant): Allowance | null {
  const { windows, known, held } = purse;
  const of = (limit: number | null, spent: number, end: Instant): Allowance | null =>
    limit === null
      ? null
      : {
          limit,
          remaining: Math.max(0, limit - spent + held),
          resetSeconds: Math.max(1, Math.ceil((end - now) / 1000)),
        };
  const month = of(windows.perMonth, known?.monthSpent ?? 0, nextMonth(purse.month));
  const day = of(windows.perDay, known?.daySpent ?? 0, purse.day + DAY);
  if (month === null || day === null) return month ?? day;
  return day.remaining <= month.remaining ? day : month;
}

export function monthOf(at: Instant): Instant {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

function nextMonth(month: Instant): Instant {
  const date = new Date(month);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

function dayOf(at: Instant): Instant {
  return Math.floor(at / DAY) * DAY;
}
