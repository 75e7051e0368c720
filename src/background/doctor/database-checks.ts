/** Checks the database (version, clock, quota, backfills whose process died) and the schedules. */
import type { App } from '../../app.ts';
import { type Budget, checkSchedules, readBudget } from '../../budget.ts';
import { systemClock } from '../../clock.ts';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatDuration,
  formatInstant,
  formatLimit,
  formatRelative,
  formatShare,
} from '../../core/format.ts';
import { ConfigurationError } from '../../ingest/outcome.ts';
import { accountIdOf, standingRefusal } from '../../ingest/request/account.ts';
import { disabledScheduleWarnings, loadOf, scheduleVariable } from '../../ingest/schedule/schedule-plan.ts';
import { countTrackedSeries } from '../../store/tracking/tracked-series.ts';
import { latestRuns } from '../../store/work/schedule-run.ts';
import type { HeldLock } from '../../views/operations/blocking-sessions.ts';
import { readHealth } from '../../views/operations/health.ts';
import { waitingFor } from '../operator/wait-reasons.ts';
import { type Check, fail, failWith, ok, warn } from './check.ts';

const NEWEST_TESTED = 18;
const SKEW_WARN_MS = 2000;
const SKEW_FAIL_MS = 60_000;

/** `lock`: a lock that another session holds. A process without a heartbeat may be waiting for it. */
export async function checkDatabase(app: App, lock: HeldLock | null): Promise<Check[]> {
  const { sql } = app.database;
  const before = systemClock.now();
  const health = await readHealth(sql, app.clock.now());
  const after = systemClock.now();
  const checks: Check[] = [];

  const version = `Postgres ${health.version}${app.config.databaseUrl === null ? ' (embedded)' : ''}, ${formatBytes(health.bytes)}`;
  checks.push(
    health.isReadOnly
      ? fail('database', `${version}: read-only (a standby?)`, 'point DATABASE_URL at the primary')
      : health.majorVersion <= NEWEST_TESTED
        ? ok('database', version)
        : warn('database', version, `Chandler was tested up to Postgres ${NEWEST_TESTED}`),
    ok('schema', `up to date (${health.migration})`),
    // The part of the difference that the round trip does not explain.
    checkSkew(Math.max(before - health.now, health.now - after, 0)),
  );

  const budget = await readBudget(app);
  checks.push(await checkQuota(budget));
  for (const { id, owner, heartbeatAt } of health.silentBackfills) {
    const silence = `${owner} sent its last heartbeat ${formatRelative(heartbeatAt, app.clock.now())}`;
    const again = 'run the same chandler backfill command again; it requests only what is missing';
    const fix =
      lock === null ? again : `it may wait for the lock. If it stays silent after the lock is released, ${again}`;
    checks.push(warn(`backfill ${id}`, silence, fix));
  }
  if (health.quarantined > 0) {
    const rows = `${formatCounted(health.quarantined, 'invalid row')} quarantined`;
    checks.push(
      warn('quarantine', rows, 'chandler sql "select reason, count(*) from market.quarantine group by reason"'),
    );
  }
  if (health.connectionsFree < 20) {
    const free = `${formatCount(health.connectionsFree)} of ${formatCount(health.connections)} connections are free`;
    checks.push(warn('connections', free, 'raise max_connections of the server, or run fewer processes on it'));
  }
  return [...checks, ...(await checkScheduled(app, budget))];
}

function checkSkew(skewMs: number): Check {
  if (skewMs <= SKEW_WARN_MS) return ok('clocks', 'this machine and the database agree');
  const clocks = `this machine and the database differ by ${formatDuration(skewMs)}`;
  const fix = 'synchronise both with NTP: the quota uses the clock of the database';
  return skewMs > SKEW_FAIL_MS ? fail('clocks', clocks, fix) : warn('clocks', clocks, fix);
}

/** What a service or a command has learned of the key. Run the check of the upstream first: the upstream may accept the key by now. */
export async function checkRefusal({ config, clock, database: { sql } }: App): Promise<Check[]> {
  const id = accountIdOf(config.apiKey, config.baseUrl);
  const refusal = await standingRefusal(sql, { id, sentAs: config.authScheme });
  if (refusal === null) return [];
  const { message, since, retryAt } = refusal;
  const now = clock.now();
  const [found, ...fix] = message.split('; ');
  const again = `chandler doctor --online tries it now, a service ${formatRelative(Math.max(retryAt, now), now)}`;
  return [fail('key refused', `${found}, since ${formatInstant(since)}`, [...fix, again].join('; '))];
}

async function checkQuota({ quota, accountId }: Budget): Promise<Check> {
  const state = await quota.state();
  for (const name of ['month', 'day'] as const) {
    const { spent, limit, reset } = state[name];
    if (limit === null || spent < limit) continue;
    return warn(
      'quota',
      `${accountId}: the quota of the ${name} is used up (${formatCount(spent)} of ${formatCount(limit)})`,
      `nothing is lost; requests continue after ${formatInstant(reset)}`,
    );
  }
  if (state.hold !== null) {
    const { reason, until, message } = state.hold;
    return warn(
      'quota',
      `${accountId}: all requests wait, because ${waitingFor(reason)} (${message})`,
      `they continue automatically ${formatRelative(until, state.now)}`,
    );
  }
  const { spent, limit } = state.month;
  return ok('quota', `${accountId}: ${formatCount(spent)} of ${formatLimit(limit)} used this month`);
}

/** Whether the plan has room for the schedules, and whether their last runs succeeded. */
async function checkScheduled(app: App, { plan, limits, schedules, scheduling }: Budget): Promise<Check[]> {
  const now = app.clock.now();
  try {
    if (scheduling.kind !== 'running') checkSchedules(app.config, plan, now);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const check = failWith('schedules', error.message);
    // Only a service needs the schedules to fit, and this user may not want to run one.
    return [
      scheduling.kind === 'none' ? { ...check, state: 'warn', found: `no service can start: ${check.found}` } : check,
    ];
  }
  const { sql } = app.database;
  const { requests } = loadOf(schedules, now).month;
  const share = limits.perMonth === null ? '' : `, ${formatShare(requests, limits.perMonth)} of the plan`;
  const names = schedules.map(({ name }) => name);
  const failed = (await latestRuns(sql, names)).filter(({ state }) => state === 'failed');
  const tracked = await countTrackedSeries(sql);
  return [
    ok('schedules', `${formatCounted(requests, 'request')} a month${share}`),
    ...disabledScheduleWarnings(schedules, tracked).map(({ schedule, consequence }) =>
      warn(
        `schedule ${schedule}`,
        `it is off, which affects ${formatCount(tracked)} tracked series: ${consequence}`,
        `unset ${scheduleVariable(schedule)}, or stop tracking those series (chandler track remove)`,
      ),
    ),
    ...failed.map(({ schedule, endedAt, begunAt, message }) =>
      warn(
        `schedule ${schedule}`,
        `its last run failed ${formatRelative(endedAt ?? begunAt, now)}: ${message}`,
        'its next run tries again; chandler schedule shows when',
      ),
    ),
  ];
}
