/** The table of schedules: what each one requests, how many requests that takes, how often it runs under which plan, and what a run does. */
import type { Clock } from '../../clock.ts';
import { HOUR } from '../../core/interval.ts';
import { rollUp } from '../../store/candle/rollup.ts';
import { CATALOGUE_KINDS, type CatalogueKind } from '../../store/catalogue/catalogue-item.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { compactAllKeys } from '../../store/upkeep/compact.ts';
import { ensurePartitionsAhead } from '../../store/upkeep/partition.ts';
import { CATALOGUE_PLAN, type PerTier } from '../catalogue/catalogue-plan.ts';
import { readIdChanges } from '../catalogue/id-changes.ts';
import { UpstreamError } from '../outcome.ts';
import type { Run, RunContext, RunOutcome } from '../schedule-run.ts';
import type { Session } from '../session.ts';
import { refreshCatalogue } from '../snapshot/coin-list.ts';
import { REQUESTS_OF_RATES, readRates } from '../snapshot/rates.ts';

/** What the runs of the table need. */
export type Runs = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly session: Pick<Session, 'sendRequest' | 'check' | 'accountId'>;
  readonly tickers: Run;
  readonly global: Run;
  readonly exchanges: Run;
  readonly catalogue: Readonly<Record<CatalogueKind, Run>>;
  readonly freshness: Run;
  readonly gaps: Run;
  readonly confirmHoles: Run;
  readonly retention: Run;
  readonly attest: Run;
  readonly lake: Run;
};

type Entry = {
  readonly name: string;
  readonly fetches: string;
  /** Requests of a run. `freshness`: as many as its allowance; `catalogue`: as many as are due, up to a bound. */
  readonly requests: number | 'freshness' | 'catalogue';
  /** Additional requests when another schedule, whose answers this one uses, is off. */
  readonly without?: { readonly schedule: string; readonly requests: number };
  /** In UTC. A plan that is not named has the cadence of the next smaller plan. `off`: the schedule does not run by default. */
  readonly cadence: PerTier<string>;
  /** Requests `/users/me`: it runs only with a key, and before all other requests. */
  readonly isAccountRequest?: boolean;
  /** Writes to a place that not every installation has: it runs only when that place is configured. */
  readonly needs?: 'attestations' | 'lake';
  readonly run: (runs: Runs, context: RunContext) => Promise<RunOutcome>;
};

/** The schedule of one kind of `catalogue-plan.ts`. */
function catalogueEntry(kind: CatalogueKind): Entry & { readonly name: CatalogueKind } {
  const { fetches, cadence } = CATALOGUE_PLAN[kind];
  return { name: kind, fetches, cadence, requests: 'catalogue', run: (runs, context) => runs.catalogue[kind](context) };
}

async function done(work: Promise<unknown>): Promise<RunOutcome> {
  await work;
  return { kind: 'done' };
}

/** The minutes differ, so that urgent requests do not queue behind others. */
const TABLE = [
  {
    name: 'tickers',
    fetches: 'the latest prices of all coins',
    requests: 1,
    cadence: { sparse: 'off', free: '*/15 * * * *', starter: '*/2 * * * *', pro: '* * * * *' },
    run: (runs, context) => runs.tickers(context),
  },
  {
    name: 'global',
    fetches: 'the market as a whole',
    requests: 1,
    cadence: { sparse: 'off', free: '*/30 * * * *', starter: '*/10 * * * *', pro: '*/5 * * * *' },
    run: (runs, context) => runs.global(context),
  },
  {
    name: 'coins',
    fetches: 'the list of coins and their ranks',
    requests: 1,
    // The tickers say when the data of each coin begins.
    without: { schedule: 'tickers', requests: 1 },
    cadence: { sparse: '7 0 * * *', free: '7 */6 * * *', starter: '7 * * * *' },
    run: async ({ session, sql, clock }, { tick, signal, retry }) => {
      // A backfill may have read the list after the tick.
      const deps = { sendRequest: session.sendRequest, sql, clock, signal, retry };
      const read = await refreshCatalogue(deps, clock.now() - tick, HOUR);
      return read.kind === 'held' ? read : { kind: 'done' };
    },
  },
  {
    name: 'renames',
    fetches: 'the coins that got a new id',
    requests: 1,
    cadence: { sparse: 'off', free: 'off', starter: '17 4 * * *' },
    run: ({ session, sql, clock }, { signal, retry }) =>
      readIdChanges({ sendRequest: session.sendRequest, accountId: session.accountId, sql, clock, signal, retry }),
  },
  {
    name: 'exchanges',
    fetches: 'the exchanges',
    requests: 1,
    cadence: { sparse: 'off', free: '22 0 * * *', starter: '22 */6 * * *', pro: '22 * * * *' },
    run: (runs, context) => runs.exchanges(context),
  },
  {
    name: 'rates',
    fetches: 'what other currencies are worth in dollars',
    requests: REQUESTS_OF_RATES,
    cadence: { sparse: 'off', free: '47 3 * * *', starter: '47 * * * *', pro: '*/15 * * * *' },
    run: ({ session, sql, clock }, { signal, retry }) =>
      readRates({ sendRequest: session.sendRequest, accountId: session.accountId, sql, clock, signal, retry }),
  },
  ...CATALOGUE_KINDS.map(catalogueEntry),
  {
    name: 'account',
    fetches: 'the account: its plan, and the quota that it has used',
    requests: 1,
    cadence: { sparse: '37 0 * * *', free: '37 */6 * * *' },
    isAccountRequest: true,
    run: async ({ session }) => {
      const check = await session.check();
      if (check.kind === 'held') return check;
      if (check.kind === 'unanswered') throw new UpstreamError(check.message);
      return { kind: 'done' };
    },
  },
  {
    name: 'freshness',
    fetches: 'the newest candles, and those that were not final yet',
    requests: 'freshness',
    // A run that finds nothing due sends no request, and series that become due wait for the next run.
    cadence: { sparse: '*/5 * * * *' },
    run: (runs, context) => runs.freshness(context),
  },
  {
    name: 'gaps',
    fetches: 'nothing: finds gaps and queues backfills for them',
    requests: 0,
    cadence: { sparse: '52 * * * *' },
    run: (runs, context) => runs.gaps(context),
  },
  {
    name: 'confirm_holes',
    fetches: 'a second answer about slots that one answer left out; only with quota that is left over',
    // No quota is reserved for it.
    requests: 0,
    cadence: { sparse: '27 */6 * * *', free: '27 */6 * * *', starter: '27 * * * *' },
    run: (runs, context) => runs.confirmHoles(context),
  },
  {
    name: 'partitions',
    fetches: 'nothing: creates the partitions of the coming days',
    requests: 0,
    cadence: { sparse: '12 2 * * *' },
    run: ({ sql, clock }) => done(ensurePartitionsAhead(sql, clock.now())),
  },
  {
    name: 'retention',
    fetches: 'nothing: deletes rows that are older than their retention setting',
    requests: 0,
    cadence: { sparse: '42 2 * * *' },
    run: (runs, context) => runs.retention(context),
  },
  {
    name: 'rollups',
    fetches: 'nothing: builds coarse candles from fine ones, so that long spans are served fast',
    requests: 0,
    cadence: { sparse: '32 * * * *' },
    run: ({ sql }, { signal }) => done(rollUp(sql, { signal })),
  },
  {
    name: 'compaction',
    fetches: 'nothing: rebuilds indexes that backfills have left half empty',
    requests: 0,
    cadence: { sparse: '57 */6 * * *' },
    run: ({ sql }, { signal }) => done(compactAllKeys(sql, signal)),
  },
  {
    name: 'attest',
    fetches: 'nothing: writes an attestation, digests of all that is stored, into its folder',
    requests: 0,
    needs: 'attestations',
    // After `retention`: the attestation does not include what retention has removed.
    cadence: { sparse: '12 3 * * *' },
    run: (runs, context) => runs.attest(context),
  },
  {
    name: 'lake',
    fetches: 'nothing: writes the files of the lake whose rows have changed',
    requests: 0,
    needs: 'lake',
    // Before `retention`, which removes only what the lake holds.
    cadence: { sparse: '2 1 * * *' },
    run: (runs, context) => runs.lake(context),
  },
] as const satisfies readonly Entry[];

export type ScheduleName = (typeof TABLE)[number]['name'];
export type ScheduleEntry = Entry & { readonly name: ScheduleName };

export const SCHEDULES: readonly ScheduleEntry[] = TABLE;
export const SCHEDULE_NAMES: readonly ScheduleName[] = TABLE.map((entry) => entry.name);
