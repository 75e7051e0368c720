/** The dashboard over an open warehouse. It reads the figures of the account and of what needs attention once for all pages. */
import type { App } from '../../app.ts';
import { type Budget, readBudget } from '../../budget.ts';
import { type Clock, type Instant, systemClock } from '../../clock.ts';
import type { Handler } from '../../contract/interface/handler.ts';
import { asError } from '../../core/as-error.ts';
import { callerAddress } from '../../core/caller/address.ts';
import { withDeadline } from '../../core/concurrency/unless-aborted.ts';
import { createDashboard } from '../../dashboard/dashboard.ts';
import type { Chip, Head, WindowLeft } from '../../dashboard/parts/head.tsx';
import { readComingWork } from '../../ingest/schedule/demand.ts';
import { createTokenBuckets } from '../../service/access/token-bucket.ts';
import { createClient } from '../../store/connection/connect.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import { readBackfills } from '../../views/backfills/backfills.ts';
import { createDataAt, type DataAt } from '../../views/dashboard/data-at.ts';
import { createRequestsByHour } from '../../views/dashboard/requests-by-hour.ts';
import { hasManySeries } from '../../views/operations/series-filter.ts';
import { checksForPage } from '../doctor/checks.ts';
import type { State } from '../notice/states.ts';
import { withoutConsequences } from '../notice/states.ts';
import { readOperatorState } from '../operator/operator-state.ts';
import { readBackfillReport } from './backfill-report.ts';
import { createActions } from './dashboard-actions.ts';
import { readHolds } from './holds.ts';
import { failedChip, type MissingData, readMissingData, readMissingPerDay, readNeeds } from './needs.ts';
import { readDemandOf, readQuotaReport } from './quota-report.ts';
import { forecastOf, requestsOfOpen } from './window-forecast.ts';

type DashboardOptions = {
  readonly app: App;
  /** The states that the operator is told of, if this process knows them. Null when the pages must read them. */
  readonly states: () => readonly State[] | null;
  /** Whether `/docs` is at the same address. */
  readonly hasDocs: boolean;
  readonly onError: (error: unknown, url: string) => void;
};

/** Pages that are opened at the same time share the figures at their top. */
const KEPT_MS = 2_000;
/** The states are read less often, because they depend on the last hours. */
const STATES_KEPT_MS = 20_000;
const CHECKS_KEPT_MS = 60_000;
const HOURS_KEPT_MS = 60_000;
const BUDGET_MAY_BE_MS = 60_000;
/**
 * Without a service that counts, the dashboard counts due work itself, over all series. When there are very many, it uses an older count of
 * any age, as with a service's count, and subtracts what was due since then. So only the first visitor waits, and nobody after `prepare`.
 */
const DUE_KEPT_MS = 60_000;
/** A read that takes longer counts as hung: later callers start a new one. */
const LONGEST_READ_MS = 10_000;
const LATE = new Error('could not read the top of the pages in time');

export type OpenDashboard = Handler & {
  /** Reads what takes longest, so that the first visitor need not wait. Stops after ten seconds: the visitor's page then reads the rest. */
  prepare(): Promise<void>;
  close(): Promise<void>;
};

export function openDashboard({ app, states, hasDocs, onError }: DashboardOptions): OpenDashboard {
  const { clock } = app;
  const { url, watchdog } = app.database;
  // A pool of its own, so that visitors take no connections from the work, and with a timeout for the statements of pages.
  const timeouts = { statement_timeout: String(STATEMENT_TIMEOUT_MS), lock_timeout: String(LOCK_TIMEOUT_MS) };
  const settings = { ...timeouts, jit: 'off' };
  const sql = createClient({ url, max: CONNECTIONS, applicationName: 'chandler dashboard', watchdog, settings });
  const signIns = createTokenBuckets(clock);
  const readDue = () => readComingWork(app.database.sql, clock.now());
  const dueOfMany = shared(clock, DUE_KEPT_MS, readDue, Number.POSITIVE_INFINITY);
  const due = async () => ((await hasManySeries(sql)) ? dueOfMany() : readDue());
  const budget = shared(clock, KEPT_MS, async () => readBudget(app, await due()), BUDGET_MAY_BE_MS);
  const readOwnStates = async () => (await readOperatorState(app, clock.now(), await budget())).states;
  const readStates = shared(clock, STATES_KEPT_MS, readOwnStates, BUDGET_MAY_BE_MS);
  const openStates = async () => {
    const all = states() ?? (await readStates());
    return withoutConsequences(all).filter(({ since }) => since !== null);
  };
  const readOwnDemand = async () => readDemandOf(app, await budget(), await due());
  const demand = shared(clock, STATES_KEPT_MS, readOwnDemand, BUDGET_MAY_BE_MS);
  const missingData = shared(clock, STATES_KEPT_MS, async () => readMissingData(app, await budget()), BUDGET_MAY_BE_MS);
  const readMissing = shared(
    clock,
    STATES_KEPT_MS,
    async () => readMissingPerDay(app, await budget()),
    BUDGET_MAY_BE_MS,
  );
  const readDataAt = createDataAt(sql);
  const countHours = createRequestsByHour(sql);
  const readRequestsByHour = shared(clock, HOURS_KEPT_MS, () => countHours(clock.now()));
  const readHead = shared(clock, KEPT_MS, async () => {
    const [states, failed, missing, dataAt] = await Promise.all([
      openStates(),
      failedChip(app),
      missingData(),
      readDataAt(),
    ]);
    return headOf(app, await budget(), { states, failed, missing, dataAt });
  });
  const readQuota = shared(clock, KEPT_MS, async () => readQuotaReport(app, await budget(), await demand()));
  const never = new AbortController().signal;
  const handler = createDashboard({
    ...{ sql, clock, hasDocs, onError, isUnavailable: isDatabaseUnavailable },
    trustedProxies: app.config.trustedProxies,
    signIns: {
      take: (address) => signIns.take(callerAddress(address), SIGN_INS_PER_SECOND),
      putBack: (address) => signIns.putBack(callerAddress(address), SIGN_INS_PER_SECOND),
    },
    actions: createActions(app),
    ...{ readHead, readQuota, readRequestsByHour },
    readNeeds: shared(clock, KEPT_MS, async () => {
      const [states, holds, missing] = await Promise.all([openStates(), readHolds(app, await budget()), missingData()]);
      const missingPerDay = states.some(({ event }) => event === 'behind') ? await readMissing() : null;
      return readNeeds(app, { states, holds, missing, missingPerDay });
    }),
    readBackfill: async (id) => readBackfillReport(app, id, await budget()),
    readChecks: shared(clock, CHECKS_KEPT_MS, () => checksForPage(app, never)),
  });
  return Object.assign(handler, {
    prepare: () => {
      const read = () => Promise.all([readHead(), readQuota(), readRequestsByHour()]);
      return withDeadline(systemClock, { ms: LONGEST_READ_MS, late: LATE }, read).then(
        () => undefined,
        (error: unknown) => app.log.warn(`the first page will take longer: ${asError(error).message}`),
      );
    },
    close: () => sql.end({ timeout: 5 }),
  });
}

/**
 * Runs one read at a time. All callers within `ms` share its result. While a new read runs, callers get the older result if it is younger
 * than `mayBeMs`. A failed result is not kept.
 */
function shared<T>(clock: Clock, ms: number, read: () => Promise<T>, mayBeMs = ms): () => Promise<T> {
  type Reading = { readonly at: Instant; readonly value: Promise<T>; isDone: boolean };
  const state: { done: Reading | null; last: Reading | null } = { done: null, last: null };
  const isOfLast = (one: Reading, now: Instant, most: number) => now >= one.at && now - one.at < most;
  const begin = (now: Instant): Reading => {
    const mine: Reading = { at: now, value: read(), isDone: false };
    state.last = mine;
    mine.value.then(
      () => {
        mine.isDone = true;
        state.done = mine;
      },
      () => {
        state.done = null;
        if (state.last === mine) state.last = null;
      },
    );
    return mine;
  };
  return () => {
    const now = clock.now();
    const { done, last } = state;
    const isFresh = last !== null && isOfLast(last, now, last.isDone ? ms : Math.max(ms, LONGEST_READ_MS));
    const mine = isFresh ? last : begin(now);
    return !mine.isDone && done !== null && isOfLast(done, now, mayBeMs) ? done.value : mine.value;
  };
}

type Known = {
  readonly states: readonly State[];
  readonly failed: Chip | null;
  readonly missing: readonly MissingData[];
  readonly dataAt: DataAt;
};

async function headOf(app: App, budget: Budget, { states, failed, missing, dataAt }: Known): Promise<Head> {
  const [{ state, holds }, backfills] = await Promise.all([
    readHolds(app, budget),
    readBackfills(app.database.sql, { all: false }),
  ]);
  const { now, rate } = state;
  const open = requestsOfOpen(backfills, now);
  const reserved = budget.reserved(now);
  const windows = (['day', 'month'] as const).flatMap((name): WindowLeft[] => {
    const { limit, spent, reset, start } = state[name];
    if (limit === null) return [];
    const left = Math.max(0, limit - spent);
    return [
      {
        name,
        left,
        limit,
        reset,
        reserved: Math.min(left, reserved[name]),
        forecast: forecastOf({
          ...{ start, reset, now, spent, limit, open },
          reserved: reserved[name],
          perSecond: rate.limit,
          day: state.day,
        }),
      },
    ];
  });
  return {
    plan: budget.plan,
    windows,
    dataAt,
    holds,
    chips: [...states.map(chipOf), ...(failed === null ? [] : [failed]), ...missing.flatMap(({ chip }) => chip ?? [])],
  };
}

function chipOf({ event }: State): Chip {
  return { text: NAMES[event] ?? event, href: '/', kind: event === 'behind' ? 'warn' : 'bad' };
}

const NAMES: Readonly<Record<string, string>> = {
  'key-refused': 'key refused',
  'upstream-down': 'upstream down',
  'database-locked': 'database locked',
  stuck: 'stuck',
  behind: 'less fresh than wanted',
  disk: 'little disk left',
  lake: 'files not written',
};

const CONNECTIONS = 4;
const STATEMENT_TIMEOUT_MS = 10_000;
/** Ends first, so that the page says that the database is locked. */
const LOCK_TIMEOUT_MS = 5_000;

/** Per address. Nobody can guess a key; this limit keeps guesses away from the database. */
const SIGN_INS_PER_SECOND = 10;
