/**
 * What a service says about its ages and its reservation, read at each tick and compared with what happens: does any series exceed its
 * promised age, and how far are the reserved requests from those that the schedules then send?
 */
import { dayReset, monthReset } from '../../src/core/calendar.ts';
import { formatDuration, formatPercent } from '../../src/core/format.ts';
import { accountIdOf } from '../../src/ingest/request/account.ts';
import { readTierStatus } from '../../src/views/operations/tiers.ts';
import { budgetOf } from '../support/budget.ts';
import type { ServiceWorld } from '../support/service-world.ts';

export type AgeFigure = {
  readonly at: number;
  readonly tier: string;
  readonly oldestMs: number;
  readonly promisedMs: number;
};

/** One look at a reservation, when its window has ended. */
export type ReservationFigure = {
  readonly at: number;
  readonly window: 'day' | 'month';
  readonly reserved: number;
  /** Requests that the schedules sent from the look until the window ended. */
  readonly needed: number;
  /** From the look on nothing was unavailable, and no tick was skipped. */
  readonly isCalm: boolean;
};

export type PromiseFigures = {
  /**
   * Data is oldest just before a tick. `withAges` false: something was unavailable, or ticks were skipped. `isCalm` false: ticks were
   * skipped just now, so their runs are in progress.
   */
  look(options: { readonly withAges: boolean; readonly isCalm: boolean }): Promise<void>;
  /** Something is unavailable, or ticks are skipped, which no forecast can foresee. */
  disturb(): void;
  readonly ages: readonly AgeFigure[];
  readonly reservations: readonly ReservationFigure[];
};

type Open = {
  readonly at: number;
  readonly end: number;
  readonly sent: number;
  readonly reserved: number;
  isCalm: boolean;
};

export function createPromiseFigures(world: ServiceWorld): PromiseFigures {
  const { sql } = world.database;
  const ages: AgeFigure[] = [];
  const reservations: ReservationFigure[] = [];
  const open: Record<'day' | 'month', Open[]> = { day: [], month: [] };
  const accountId = accountIdOf(world.config.apiKey, world.config.baseUrl);

  /**
   * Requests of the schedules since the beginning: all except those of backfills. Where the plan has a rate, a slow machine wakes too late
   * for some permits and takes others (`quota/permit.ts`). These are spent, and no schedule requested them.
   */
  const readSent = async () => {
    const [row] = await sql<{ spent: number }[]>`
      select coalesce(sum(month_spent), 0)::int as spent from ops.quota_spent
      where account_id = ${accountId} and class = 'backfill'`;
    return world.asked.length - row!.spent;
  };
  /** Looks of a window that has ended: what was sent by the last look in it counts. */
  let before = 0;
  const close = (window: 'day' | 'month', now: number) => {
    for (const { at, reserved, sent, isCalm } of open[window].filter(({ end }) => end <= now))
      reservations.push({ at, window, reserved, needed: before - sent, isCalm });
    open[window] = open[window].filter(({ end }) => end > now);
  };

  return {
    ages,
    reservations,
    disturb: () => {
      const now = world.clock.now();
      for (const one of [...open.day, ...open.month]) if (one.end > now) one.isCalm = false;
    },
    look: async ({ withAges, isCalm }) => {
      const now = world.clock.now();
      for (const window of ['day', 'month'] as const) close(window, now);
      const sent = await readSent();
      before = sent;
      const reserved = (await budgetOf(world)).reserved(now);
      open.day.push({ at: now, end: dayReset(now), sent, reserved: reserved.day, isCalm });
      open.month.push({ at: now, end: monthReset(now), sent, reserved: reserved.month, isCalm });
      if (!withAges) return;
      for (const { tier, interval, oldestAgeMs, achievableAgeMs } of await readTierStatus(sql, now)) {
        if (oldestAgeMs === null || achievableAgeMs === null) continue;
        ages.push({ at: now, tier: `${tier} ${interval}`, oldestMs: oldestAgeMs, promisedMs: achievableAgeMs });
      }
    },
  };
}

/** Looks at which a series exceeded its promised age. */
export function overruns({ ages }: Pick<PromiseFigures, 'ages'>): readonly string[] {
  return ages
    .filter(({ oldestMs, promisedMs }) => oldestMs > promisedMs)
    .map(
      ({ at, tier, oldestMs, promisedMs }) =>
        `${new Date(at).toISOString()} ${tier}: ${formatDuration(oldestMs)}, promised ${formatDuration(promisedMs)}`,
    );
}

/**
 * Looks from which on nothing was unavailable, and in whose window other requests were sent than reserved. `unreserved`: the number of
 * further requests that are not reserved.
 */
export function misreserved(
  { reservations }: Pick<PromiseFigures, 'reservations'>,
  { unreserved = 0 } = {},
): readonly string[] {
  const isOff = (more: number) => more < 0 || more > unreserved;
  return reservations
    .filter(({ window, isCalm, reserved, needed }) => window === 'day' && isCalm && isOff(needed - reserved))
    .map(({ at, reserved, needed }) => `${new Date(at).toISOString()}: ${reserved} reserved, ${needed} asked`);
}

type Errors = {
  readonly looks: number;
  readonly most: number;
  readonly least: number;
  readonly reserved: number;
};

/** For the looks of a window: how many requests were reserved too many (above 0) or too few (below). */
export function errorsOf(
  { reservations }: Pick<PromiseFigures, 'reservations'>,
  window: 'day' | 'month',
  isCalm?: boolean,
): Errors {
  const some = reservations.filter((one) => one.window === window && (isCalm === undefined || one.isCalm === isCalm));
  const errors = some.map(({ reserved, needed }) => reserved - needed);
  return {
    looks: some.length,
    most: Math.max(0, ...errors),
    least: Math.min(0, ...errors),
    reserved: Math.max(0, ...some.map(({ reserved }) => reserved)),
  };
}

export function describeFigures(figures: PromiseFigures): string {
  const tiers = [...new Set(figures.ages.map(({ tier }) => tier))];
  const lines = tiers.map((tier) => {
    const some = figures.ages.filter((age) => age.tier === tier);
    const worst = some.reduce((a, b) => (b.oldestMs / b.promisedMs > a.oldestMs / a.promisedMs ? b : a));
    const over = some.filter(({ oldestMs, promisedMs }) => oldestMs > promisedMs).length;
    return `  ${tier}: at most ${formatDuration(worst.oldestMs)} of ${formatDuration(worst.promisedMs)} promised; ${over} of ${some.length} looks over`;
  });
  const windows = (['day', 'month'] as const).flatMap((window) =>
    [true, false].map((isCalm) => {
      const { looks, most, least, reserved } = errorsOf(figures, window, isCalm);
      const share = (n: number) => (reserved === 0 ? '–' : formatPercent(Math.abs(n), reserved));
      const when = isCalm ? 'undisturbed' : 'disturbed, or ticks skipped';
      return `  reserved until the ${window} ends, ${when}: at most ${reserved}; up to ${most} too many (${share(most)}), up to ${-least} too few (${share(least)}), ${looks} looks`;
    }),
  );
  return [...lines, ...windows].join('\n');
}
