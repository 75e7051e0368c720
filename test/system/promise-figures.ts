/**
 * What a service says of its ages and of its reservation, looked at tick by tick and compared with what came of it: is any series older than the
 * age that is told to be achievable, and how far are the requests that are reserved from those that the schedules then really take?
 */
import { readDemand, reservationsOf, schedulesOf } from '../../src/budget.ts';
import { effectiveLimits } from '../../src/config.ts';
import type { PlanName } from '../../src/contract/plan/plans.ts';
import { dayReset, monthReset } from '../../src/core/calendar.ts';
import { formatDuration, formatPercent } from '../../src/core/format.ts';
import { CONFIRM_HOLES } from '../../src/ingest/queue/chunk-job.ts';
import { accountIdOf } from '../../src/ingest/request/account.ts';
import { readTierStatus } from '../../src/views/operations/tiers.ts';
import type { ServiceWorld } from '../support/service-world.ts';

export type AgeFigure = {
  readonly at: number;
  readonly tier: string;
  readonly oldestMs: number;
  readonly promisedMs: number;
};

/** Of a look, when its window is over. */
export type ReservationFigure = {
  readonly at: number;
  readonly window: 'day' | 'month';
  readonly reserved: number;
  /** Requests that the schedules took from then until the window ended. */
  readonly needed: number;
};

export type PromiseFigures = {
  /** Just before a tick data is as old as it becomes. `withAges` false: something was away, or ticks were skipped. */
  look(options: { readonly withAges: boolean }): Promise<void>;
  readonly ages: readonly AgeFigure[];
  readonly reservations: readonly ReservationFigure[];
};

type Open = { readonly at: number; readonly end: number; readonly spent: number; readonly reserved: number };

export function createPromiseFigures(world: ServiceWorld, plan: PlanName): PromiseFigures {
  const { sql } = world.database;
  const ages: AgeFigure[] = [];
  const reservations: ReservationFigure[] = [];
  const open: Record<'day' | 'month', Open[]> = { day: [], month: [] };
  const accountId = accountIdOf(world.config.apiKey, world.config.baseUrl);
  const limits = effectiveLimits(plan, world.config);

  /** Since the beginning: nothing is reserved for what is left over. */
  const readSpent = async () => {
    const [row] = await sql<{ spent: number }[]>`
      select coalesce(sum(month_spent), 0)::int as spent from ops.quota_spent
      where account_id = ${accountId} and class = 'scheduled' and name <> ${CONFIRM_HOLES}`;
    return row!.spent;
  };
  /** Looks of a window that is over: what was spent by the last look in it counts. */
  let before = 0;
  const close = (window: 'day' | 'month', now: number) => {
    for (const { at, reserved, spent } of open[window].filter(({ end }) => end <= now))
      reservations.push({ at, window, reserved, needed: before - spent });
    open[window] = open[window].filter(({ end }) => end > now);
  };

  return {
    ages,
    reservations,
    look: async ({ withAges }) => {
      const now = world.clock.now();
      for (const window of ['day', 'month'] as const) close(window, now);
      const spent = await readSpent();
      before = spent;
      const demand = await readDemand(sql, { accountId, plan, now });
      const reserved = reservationsOf(schedulesOf(world.config, plan, limits, demand), demand.scheduling)(now);
      open.day.push({ at: now, end: dayReset(now), spent, reserved: reserved.day });
      open.month.push({ at: now, end: monthReset(now), spent, reserved: reserved.month });
      if (!withAges) return;
      for (const { tier, interval, oldestAgeMs, achievableAgeMs } of await readTierStatus(sql, now)) {
        if (oldestAgeMs === null || achievableAgeMs === null) continue;
        ages.push({ at: now, tier: `${tier} ${interval}`, oldestMs: oldestAgeMs, promisedMs: achievableAgeMs });
      }
    },
  };
}

/** Looks at which a series was older than promised. */
export function overruns({ ages }: Pick<PromiseFigures, 'ages'>): readonly string[] {
  return ages
    .filter(({ oldestMs, promisedMs }) => oldestMs > promisedMs)
    .map(
      ({ at, tier, oldestMs, promisedMs }) =>
        `${new Date(at).toISOString()} ${tier}: ${formatDuration(oldestMs)}, promised ${formatDuration(promisedMs)}`,
    );
}

/** Of the looks of a window: how many requests were reserved too many (above 0) or too few (below). */
export function errorsOf(
  { reservations }: Pick<PromiseFigures, 'reservations'>,
  window: 'day' | 'month',
): { readonly looks: number; readonly most: number; readonly least: number; readonly reserved: number } {
  const some = reservations.filter((one) => one.window === window);
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
  const windows = (['day', 'month'] as const).map((window) => {
    const { looks, most, least, reserved } = errorsOf(figures, window);
    const share = (n: number) => (reserved === 0 ? '–' : formatPercent(Math.abs(n), reserved));
    return `  reserved until the ${window} ends: at most ${reserved}; up to ${most} too many (${share(most)}), up to ${-least} too few (${share(least)}), ${looks} looks`;
  });
  return [...lines, ...windows].join('\n');
}
