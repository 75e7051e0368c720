/** The plan of the catalogue: for each kind, how old an answer may become, and how many requests a run may send under which plan. */
import type { PlanName } from '../../contract/plan/plans.ts';
import { DAY, HOUR } from '../../core/interval.ts';
import type { CatalogueDemand, CatalogueKind } from '../../store/catalogue/catalogue-item.ts';

/** `sparse`: for configured limits that are too low for the cadences of the plan. */
export type Tier = 'sparse' | PlanName;
/** A tier that is not named has the value of the next smaller one. */
export type PerTier<T> = Readonly<Partial<Record<Tier, T>> & { sparse: T }>;

type CataloguePlan = {
  readonly fetches: string;
  /** An answer of this age is requested again, if quota allows. `idleAgeMs`: for items that seldom change (dead coins and exchanges). */
  readonly ageMs: number;
  readonly idleAgeMs: number;
  readonly cadence: PerTier<string>;
  /** The most requests of a run. The oldest items come first. */
  readonly most: PerTier<number>;
};

const MONTH = 30 * DAY;
/** For kinds with one request per item. Together they take less than a sixth of the free plan, and less of the larger plans. */
const most = (free: number): PerTier<number> => ({
  sparse: 1,
  free,
  starter: 4 * free,
  pro: 8 * free,
  business: 40 * free,
  ultimate: 80 * free,
});

/** The minutes differ, so that urgent requests do not queue behind others. */
export const CATALOGUE_PLAN: Readonly<Record<CatalogueKind, CataloguePlan>> = {
  tags: {
    fetches: 'the tags, and which coins have them',
    ageMs: DAY,
    idleAgeMs: MONTH,
    cadence: { sparse: 'off', free: '17 1 * * *', starter: '17 * * * *' },
    most: most(2),
  },
  platforms: {
    fetches: 'the platforms (chains) of contracts',
    ageMs: DAY,
    idleAgeMs: MONTH,
    cadence: { sparse: 'off', free: '19 1 * * *', starter: '19 */6 * * *' },
    most: { sparse: 1, free: 1 },
  },
  contracts: {
    fetches: 'the contracts of each chain',
    ageMs: 2 * DAY,
    idleAgeMs: MONTH,
    cadence: { sparse: 'off', free: '24 */6 * * *', starter: '24 * * * *' },
    most: most(2),
  },
  coin_details: {
    fetches: 'the details of tracked coins',
    ageMs: 2 * DAY,
    idleAgeMs: MONTH,
    cadence: { sparse: 'off', free: '11 */2 * * *', starter: '11 * * * *' },
    most: most(2),
  },
  coin_events: {
    fetches: 'the events of tracked coins',
    ageMs: DAY,
    idleAgeMs: MONTH,
    cadence: { sparse: 'off', free: '26 */4 * * *', starter: '26 * * * *' },
    most: most(2),
  },
  coin_exchanges: {
    fetches: 'the exchanges of tracked coins',
    ageMs: 2 * DAY,
    idleAgeMs: MONTH,
    cadence: { sparse: 'off', free: '41 */4 * * *', starter: '41 * * * *' },
    most: most(2),
  },
  coin_markets: {
    fetches: 'the markets of tracked coins',
    ageMs: 3 * HOUR,
    idleAgeMs: MONTH,
    cadence: { sparse: 'off', free: '47 */2 * * *', starter: '17,47 * * * *', business: '2-59/10 * * * *' },
    most: most(2),
  },
  coin_mappings: {
    fetches: 'the ids of tracked coins at other providers',
    ageMs: MONTH,
    idleAgeMs: 3 * MONTH,
    // Smaller plans do not have them (upstream-api.md, 1.14).
    cadence: { sparse: 'off', business: '34 * * * *' },
    most: { sparse: 1, business: 40 },
  },
  exchange_markets: {
    fetches: 'the markets of exchanges that trade tracked coins',
    ageMs: 6 * HOUR,
    idleAgeMs: MONTH,
    cadence: { sparse: 'off', free: '56 */4 * * *', starter: '56 * * * *', business: '8-59/20 * * * *' },
    most: most(2),
  },
  people: {
    fetches: 'the people of tracked coins',
    ageMs: MONTH,
    idleAgeMs: 3 * MONTH,
    cadence: { sparse: 'off', free: '31 */6 * * *', starter: '31 * * * *' },
    most: most(1),
  },
};

export type CatalogueNeed = CatalogueDemand[CatalogueKind];
type RunRate = { readonly mostPerRun: number; readonly runsPerDay: number };

/** Requests a day that would keep all items as fresh as planned, with so many runs a day. */
function wantedPerDay(kind: CatalogueKind, { items, idle }: CatalogueNeed, runsPerDay: number): number {
  const { ageMs, idleAgeMs } = CATALOGUE_PLAN[kind];
  const perDay = (some: number, age: number) => (some === 0 ? 0 : (some * DAY) / atRun(age, runsPerDay));
  return perDay(items - idle, ageMs) + perDay(idle, idleAgeMs);
}

/** Items that become due between two runs wait for the second: with a run every two hours, an item due after three hours is requested every four. */
function atRun(ageMs: number, runsPerDay: number): number {
  const betweenMs = DAY / runsPerDay;
  return Math.ceil(ageMs / betweenMs - ROUNDING) * betweenMs;
}

const ROUNDING = 1e-9;

/** The average number of requests of a run. */
export function requestsPerRun(kind: CatalogueKind, need: CatalogueNeed, { mostPerRun, runsPerDay }: RunRate): number {
  return runsPerDay === 0 ? 0 : Math.min(mostPerRun, wantedPerDay(kind, need, runsPerDay) / runsPerDay);
}

/** How old the answers become with so many runs a day, in milliseconds; null: the kind is never requested. */
export function achievableAgeMs(
  kind: CatalogueKind,
  need: CatalogueNeed,
  { mostPerRun, runsPerDay }: RunRate,
): number | null {
  if (runsPerDay === 0) return null;
  const stretch = Math.max(1, wantedPerDay(kind, need, runsPerDay) / (mostPerRun * runsPerDay));
  return atRun(CATALOGUE_PLAN[kind].ageMs, runsPerDay) * stretch;
}
