/** Checks the database: version, clock, quota, and backfills whose process died. */
import type { App } from '../../app.ts';
import { readBudget } from '../../budget.ts';
import { systemClock } from '../../clock.ts';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatDuration,
  formatInstant,
  formatRelative,
} from '../../core/format.ts';
import { readHealth } from '../../views/operations/health.ts';
import { waitingFor } from '../output/wait-reasons.ts';
import { type Check, fail, ok, warn } from './check.ts';

const NEWEST_TESTED = 18;
const SKEW_WARN_MS = 2000;
const SKEW_FAIL_MS = 60_000;

export async function checkWarehouse(app: App): Promise<Check[]> {
  const { sql } = app.database;
  const asked = systemClock.now();
  const health = await readHealth(sql, app.clock.now());
  const answered = systemClock.now();
  const checks: Check[] = [];

  const version = `Postgres ${health.version}${app.config.databaseUrl === null ? ' (embedded)' : ''}, ${formatBytes(health.bytes)}`;
  checks.push(
    health.majorVersion <= NEWEST_TESTED
      ? ok('database', version)
      : warn('database', version, `Chandler was tested up to Postgres ${NEWEST_TESTED}`),
    ok('schema', `up to date (${health.migration})`),
  );

  // The part of the difference that the round trip does not explain.
  const skew = Math.max(asked - health.now, health.now - answered, 0);
  const clocks = `${formatDuration(skew)} between this machine's and the database's`;
  const sync = 'synchronise both with NTP: the quota uses the clock of the database';
  if (skew > SKEW_FAIL_MS) checks.push(fail('clocks', clocks, sync));
  else
    checks.push(
      skew > SKEW_WARN_MS ? warn('clocks', clocks, sync) : ok('clocks', 'this machine and the database agree'),
    );

  checks.push(await checkQuota(app));
  for (const { id, owner, heartbeatAt } of health.silentBackfills) {
    const silence = `${owner} gave its last sign of life ${formatRelative(heartbeatAt, app.clock.now())}`;
    checks.push(
      warn(`backfill ${id}`, silence, 'run the same chandler backfill command again; it requests only what is missing'),
    );
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
  return checks;
}

async function checkQuota(app: App): Promise<Check> {
  const { quota, accountId } = await readBudget(app);
  const state = await quota.state();
  for (const name of ['month', 'day'] as const) {
    const { spent, limit, reset } = state[name];
    if (limit !== null && spent >= limit) {
      const fix = `nothing is lost; requests continue after ${formatInstant(reset)}`;
      return warn(
        'quota',
        `${accountId}: the quota of the ${name} is used up (${formatCount(spent)} of ${formatCount(limit)})`,
        fix,
      );
    }
  }
  if (state.hold !== null) {
    const { reason, until, message } = state.hold;
    return warn(
      'quota',
      `${accountId}: all requests wait, because ${waitingFor(reason)} (${message})`,
      `they continue by themselves ${formatRelative(until, state.now)}`,
    );
  }
  const { spent, limit } = state.month;
  return ok(
    'quota',
    `${accountId}: ${formatCount(spent)} of ${limit === null ? 'unlimited' : formatCount(limit)} spent this month`,
  );
}
