/** The schedule plan: which schedules run, how often under a plan, its limits and the settings, and how many requests that takes. */
import type { Instant } from '../../clock.ts';
import { PLAN_NAMES, type PlanName } from '../../contract/plan/plans.ts';
import { dayReset, dayStart, monthReset, monthStart } from '../../core/calendar.ts';
import { formatCount } from '../../core/format.ts';
import { DAY } from '../../core/interval.ts';
import { freshnessPerRun } from '../../quota/achievable-ages.ts';
import { requestsPerDayAt } from '../../quota/adaptive-rate.ts';
import type { Limits } from '../../quota/quota.ts';
import { CATALOGUE_KINDS, type CatalogueDemand, type CatalogueKind } from '../../store/catalogue/catalogue-item.ts';
import { REFUSED_EVERY_MS } from '../catalogue/catalogue-outcome.ts';
import {
  achievableAgeMs,
  CATALOGUE_PLAN,
  type CatalogueNeed,
  type PerTier,
  requestsPerRun,
  type Tier,
} from '../catalogue/catalogue-plan.ts';
import { ConfigurationError } from '../outcome.ts';
import { type Cadence, cadenceOf } from './cadence.ts';
import { SCHEDULES, type ScheduleEntry, type ScheduleName } from './schedules.ts';

export type Schedule = {
  readonly name: ScheduleName;
  readonly fetches: string;
  /** Requests that a run sends to the upstream, on average. */
  readonly requests: number;
  /** For a schedule of the catalogue, the most requests of one run; null for other schedules. */
  readonly most?: number | null;
  /** Null: the schedule is off. */
  readonly cadence: Cadence | null;
  /** True when the cadence was configured; false when it comes from the plan. */
  readonly isSet: boolean;
  readonly isAccountRequest: boolean;
  /** The upstream refuses what the schedule requests. Until this instant it sends no requests, and then one a month. */
  readonly refusedUntil?: Instant | undefined;
};

/** How often a schedule runs, as configured: a valid cron expression, or `off`. */
export type Cadences = Readonly<Partial<Record<ScheduleName, string>>>;

type SchedulePlanTerms = {
  readonly plan: PlanName;
  readonly limits: Limits;
  readonly hasKey: boolean;
  /** The configured places that some schedules write to. */
  readonly places: ReadonlySet<NonNullable<ScheduleEntry['needs']>>;
  readonly cadences: Cadences;
  /** Requests a day for freshness; 0 while no series is tracked. */
  readonly freshnessPerDay?: number;
  /** The wanted part of the catalogue. Absent: unknown; then only configured schedules count, with their most requests. */
  readonly catalogue?: CatalogueDemand;
  /** The kinds of the catalogue that the upstream refuses to the account, and until when Chandler does not request them. */
  readonly refused?: Readonly<Partial<Record<CatalogueKind, Instant>>>;
  /** The cadences that services run now. They replace the plan's and the configured ones, and a schedule that is not named is off. */
  readonly running?: Cadences | undefined;
};

/**
 * The share of a limited window that the plan's own cadences may take. If configured limits are too low for that, a smaller plan's cadences apply.
 */
const MOST_SHARE = 0.5;
const TIERS: readonly Tier[] = ['sparse', ...PLAN_NAMES];

/** Without a key there is no account, and so no schedule that requests it. Without a place to write to, there is no schedule that writes there. */
export function schedulePlan(terms: SchedulePlanTerms): readonly Schedule[] {
  const entries = SCHEDULES.filter(
    (entry) =>
      (terms.hasKey || !entry.isAccountRequest) && (entry.needs === undefined || terms.places.has(entry.needs)),
  );
  const tier = tiersUpTo(terms.plan).find((one) => leavesRoom(entries, one, terms.limits)) ?? 'sparse';
  return schedulesOf(entries, tier, terms);
}

type Wishes = Pick<SchedulePlanTerms, 'cadences' | 'freshnessPerDay' | 'catalogue' | 'refused' | 'running'>;

function schedulesOf(entries: readonly ScheduleEntry[], tier: Tier, wishes: Wishes): readonly Schedule[] {
  const schedules = entries.map((entry) => scheduleOf(entry, tier, wishes));
  const off = new Set<string>(schedules.filter(({ cadence }) => cadence === null).map(({ name }) => name));
  return schedules.map((schedule, i) => {
    const { without } = entries[i]!;
    if (without === undefined || !off.has(without.schedule)) return schedule;
    return { ...schedule, requests: schedule.requests + without.requests };
  });
}

/** Do the cadences of this tier leave enough of the limits? Freshness and the catalogue get what the other schedules leave. */
function leavesRoom(entries: readonly ScheduleEntry[], tier: Tier, { perDay, perMonth, perSecond }: Limits): boolean {
  const { day, month } = loadOf(schedulesOf(entries, tier, { cadences: {} }), A_YEAR);
  const within = (asked: number, limit: number | null) => limit === null || asked <= limit * MOST_SHARE;
  return (
    within(day.requests, perDay) &&
    within(month.requests, perMonth) &&
    within(day.requests, requestsPerDayAt(perSecond))
  );
}

/** Any year: the cadences of the table are the same every day. */
const A_YEAR = Date.UTC(2024, 0);

/** The tiers up to this one, the largest first. */
function tiersUpTo(tier: Tier): readonly Tier[] {
  return TIERS.slice(0, TIERS.indexOf(tier) + 1).reverse();
}

function perTier<T>(of: PerTier<T>, tier: Tier): T {
  const named = tiersUpTo(tier).find((one) => of[one] !== undefined) ?? 'sparse';
  return of[named]!;
}

function scheduleOf(entry: ScheduleEntry, tier: Tier, wishes: Wishes): Schedule {
  const { cadences, freshnessPerDay = 0, catalogue, refused, running } = wishes;
  const configured = cadences[entry.name];
  const isSet = configured !== undefined;
  const settled = configured ?? perTier(entry.cadence, tier);
  const cron = running === undefined ? settled : (running[entry.name] ?? 'off');
  const own = cron === 'off' ? null : cadence(cron);
  const runsPerDay = own === null ? 0 : ticksPerDay(own.cron);
  const kind = catalogueKindOf(entry);
  const most = kind === null ? null : perTier(CATALOGUE_PLAN[kind].most, tier);
  const refusedUntil = kind === null ? undefined : refused?.[kind];
  const requests = () => {
    if (entry.requests === 'freshness') return freshnessPerRun(freshnessPerDay, runsPerDay);
    if (entry.requests !== 'catalogue') return entry.requests;
    const need = catalogue?.[kind!];
    if (need === undefined) return isSet && own !== null ? most! : 0;
    const perRun = requestsPerRun(kind!, need, { mostPerRun: most!, runsPerDay });
    return refusedUntil === undefined ? perRun : Math.min(perRun, 1, DAY / (REFUSED_EVERY_MS * runsPerDay));
  };
  const { name, fetches, isAccountRequest = false } = entry;
  return { name, fetches, requests: requests(), most, cadence: own, isSet, isAccountRequest, refusedUntil };
}

/** The kind of the catalogue that a schedule requests; null: it is no schedule of the catalogue. */
export function catalogueKindOf({ name }: { readonly name: ScheduleName }): CatalogueKind | null {
  return CATALOGUE_KINDS.find((kind) => kind === name) ?? null;
}

/** How old the answers become with this cadence, in milliseconds; null when the schedule is off, or is no schedule of the catalogue. */
export function ageOfCatalogue(schedule: Schedule, need: CatalogueNeed): number | null {
  const kind = catalogueKindOf(schedule);
  if (kind === null) return null;
  const runsPerDay = schedule.cadence === null ? 0 : ticksPerDay(schedule.cadence.cron);
  return achievableAgeMs(kind, need, { mostPerRun: schedule.most ?? 0, runsPerDay });
}

/** The average of a year, because some cadences run on some days only. */
export function ticksPerDay(cron: string): number {
  return cadence(cron).count(A_YEAR, A_YEAR + 366 * DAY) / 366;
}

const known = new Map<string, Cadence>();

/** Each expression is parsed once. */
function cadence(cron: string): Cadence {
  const made = known.get(cron) ?? cadenceOf(cron);
  known.set(cron, made);
  return made;
}

export type Load = {
  /** The bounds of the window. */
  readonly from: Instant;
  readonly to: Instant;
  readonly requests: number;
};

/** Requests of these schedules in `[from, to)`. */
export function requestsIn(schedules: readonly Schedule[], from: Instant, to: Instant): number {
  return Math.round(
    schedules.reduce((sum, { requests, cadence }) => sum + requests * (cadence?.count(from, to) ?? 0), 0),
  );
}

/** The day and the month with the most requests, in the year after `now`. */
export function loadOf(schedules: readonly Schedule[], now: Instant): { readonly day: Load; readonly month: Load } {
  const asking = schedules.filter(({ requests, cadence }) => requests > 0 && cadence !== null);
  const most = (first: Instant, next: (from: Instant) => Instant): Load => {
    let worst: Load = { from: first, to: next(first), requests: -1 };
    for (let from = first; from < now + 366 * DAY; from = next(from)) {
      const requests = requestsIn(asking, from, next(from));
      if (requests > worst.requests) worst = { from, to: next(from), requests };
    }
    return worst;
  };
  return { day: most(dayStart(now), dayReset), month: most(monthStart(now), monthReset) };
}

/** @throws ConfigurationError, with the arithmetic, when the schedules alone need more requests than the limits allow. */
export function refuseOverspending(
  schedules: readonly Schedule[],
  { plan, limits, now }: { readonly plan: PlanName; readonly limits: Limits; readonly now: Instant },
): void {
  const { day, month } = loadOf(schedules, now);
  const windows = [
    {
      load: month,
      limit: limits.perMonth,
      name: `a month of ${(month.to - month.from) / DAY} days`,
      why: `plan ${plan}`,
    },
    { load: day, limit: limits.perDay, name: 'a day', why: `plan ${plan}` },
    {
      load: day,
      limit: requestsPerDayAt(limits.perSecond),
      name: 'a day',
      why: `a little less than ${limits.perSecond} a second, plan ${plan}`,
    },
  ];
  for (const { load, limit, name, why } of windows) {
    if (limit === null || load.requests <= limit) continue;
    const parts = schedules
      .map((schedule) => ({ schedule, requests: requestsIn([schedule], load.from, load.to) }))
      .filter(({ requests }) => requests > 0)
      .sort((a, b) => b.requests - a.requests);
    const sum = parts.map(
      ({ schedule, requests }) =>
        `${schedule.name} ${formatCount(requests / schedule.requests)} × ${formatCount(schedule.requests)}`,
    );
    const variable = scheduleVariable(parts[0]!.schedule.name);
    throw new ConfigurationError(
      `the schedules alone need ${formatCount(load.requests)} requests in ${name} (${sum.join(' + ')}), but the limit is ${formatCount(limit)} (${why}); ` +
        `run them less often, like ${variable}='${suggestion(parts[0]!.schedule)}', or turn one off with ${variable}=off`,
    );
  }
}

export type ScheduleVariable = `CHANDLER_SCHEDULE_${Uppercase<ScheduleName>}`;

/** The variable that configures how often a schedule runs. */
export function scheduleVariable(name: ScheduleName): ScheduleVariable {
  return `CHANDLER_SCHEDULE_${name.toUpperCase() as Uppercase<ScheduleName>}`;
}

/** The default of a small plan, or daily if the cadence is already that default. */
function suggestion({ name, cadence }: Schedule): string {
  const entry = SCHEDULES.find((one) => one.name === name)!;
  const usual = perTier(entry.cadence, 'free');
  return usual === 'off' || usual === cadence?.cron ? '7 0 * * *' : usual;
}

/** What happens to tracked series while one of these schedules is off. */
const WITHOUT: Readonly<Partial<Record<Schedule['name'], string>>> = {
  freshness: 'they are no longer refreshed',
  coins: '--top no longer follows the ranking, and new, inactive or renamed coins are not noticed',
  gaps: 'gaps in their past are not fetched',
};

export type DisabledScheduleWarning = { readonly schedule: Schedule['name']; readonly consequence: string };

/** Warnings about schedules that are off although series are tracked. */
export function disabledScheduleWarnings(
  schedules: readonly Schedule[],
  trackedSeries: number,
): readonly DisabledScheduleWarning[] {
  if (trackedSeries === 0) return [];
  return schedules.flatMap(({ name, cadence }) => {
    const consequence = WITHOUT[name];
    return cadence !== null || consequence === undefined ? [] : [{ schedule: name, consequence }];
  });
}
