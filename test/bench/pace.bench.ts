/**
 * How much of the allowed rate a service uses while a backfill has work for it, and what that costs: ten worker processes on one quota, and
 * one process with every role at the rate of the plans, beside a bare process that sends as many requests; and what an idle service costs.
 * Real processes.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase, testRedisUrl } from '../support/database.ts';
import { runCli } from '../support/program.ts';
import { type ServiceProcess, startServiceProcess, UNWATCHED } from '../support/service-process.ts';
import { sessionSeconds } from './backend-time.ts';
import { type RunningSimulator, startSimulator } from './measured-cli.ts';
import { cpuSecondsOf, rssMbOf } from './process-use.ts';
import { median, spread, table, thousands, verdict } from './rounds.ts';

const WORKERS = Number(process.env.BENCH_WORKERS ?? 10);
const PACES = (process.env.BENCH_PACES ?? '10,50,100').split(',').map(Number);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 30);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 2);
const CANDLES = process.env.BENCH_CANDLES;
/** From the first chunk until every worker has begun. */
const SETTLE_MS = 5_000;
/** Until the first runs of the schedules are over. */
const IDLE_AFTER_MS = Number(process.env.BENCH_IDLE_AFTER ?? 60) * 1000;
const IDLE_SECONDS = Number(process.env.BENCH_IDLE_SECONDS ?? 120);
/** A setting of the image, too. */
const OF_THE_IMAGE = { MALLOC_ARENA_MAX: '2' };
const COINS = 1_500;
const BARE = fileURLToPath(new URL('paced-bare-process.mjs', import.meta.url));
const ENGINES = ['postgres', 'redis'] as const;
const CHOSEN = process.env.BENCH_ENGINES ?? ENGINES.join();
type Engine = (typeof ENGINES)[number];

let simulator: RunningSimulator;
beforeAll(async () => {
  simulator = await startSimulator(COINS);
});
afterAll(async () => {
  await simulator?.stop();
});

type Paced = {
  /** Requests sent per second, as a part of the allowed ones. */
  readonly used: number;
  /** Permits that the ledger counted meanwhile, as a part of the allowed ones; lost ones included. */
  readonly granted: number;
  /** Seconds in which less than half of the allowed requests were sent. */
  readonly slackSeconds: number;
  /** Of one core, for all processes of the service together. */
  readonly cpu: number;
  /** Milliseconds of processor time per request, for all processes of the service together. */
  readonly cpuMsPerRequest: number;
};

const WORKER_ROLES = ['scheduler', ...Array<string>(WORKERS).fill('worker')];

/** One service process for each entry of `roles`. */
async function pacedRun(engine: Engine, perSecond: number, roles: readonly string[]): Promise<Paced> {
  const database = await createTestDatabase({ max: 2 });
  const env = {
    ...envOf(database, engine),
    CHANDLER_REQUESTS_PER_SECOND: String(perSecond),
    ...(CANDLES === undefined ? {} : { CHANDLER_CANDLES_PER_REQUEST: CANDLES }),
  };
  const services: ServiceProcess[] = [];
  try {
    services.push(...(await Promise.all(roles.map((role) => startServiceProcess(role, env)))));
    await Promise.all(services.map((service) => service.said(/^ready/)));
    // More than the service can request meanwhile.
    const args = ['backfill', '--all', '--start', '2010-01-01', '--end', '2026-01-01', '--detach', '--json'];
    const recorded = await runCli(args, env);
    if (recorded.code !== 0) throw new Error(`the backfill was not recorded: ${recorded.err}`);
    await Promise.any(services.map((service) => service.said(/^chunk$/)));
    await systemClock.sleep(SETTLE_MS);
    const before = await standing(database, services);
    await systemClock.sleep(SECONDS * 1000);
    const after = await standing(database, services);
    const seconds = (after.at - before.at) / 1000;
    const [sent] = await database.sql<{ n: number; slack: number }[]>`
      with sent as (
        select floor(extract(epoch from sent_at) - ${before.at / 1000}::float8) as second, count(*)::int as n from ops.fetch
        where sent_at >= ${before.at} and sent_at < ${after.at} group by 1)
      select sum(n)::int as n,
        (select count(*)::int from generate_series(0, ${Math.floor(seconds) - 1}) g(second)
          where coalesce((select n from sent where sent.second = g.second), 0) < ${perSecond / 2}) as slack from sent`;
    const allowed = perSecond * seconds;
    return {
      used: sent!.n / allowed,
      granted: (after.spent - before.spent) / allowed,
      slackSeconds: sent!.slack,
      cpu: (after.cpuMs - before.cpuMs) / (after.at - before.at),
      cpuMsPerRequest: (after.cpuMs - before.cpuMs) / sent!.n,
    };
  } finally {
    await Promise.all(services.map((service) => service.stop()));
    await database.drop();
  }
}

function envOf(database: TestDatabase, engine: Engine) {
  return {
    DATABASE_URL: database.url,
    CHANDLER_BASE_URL: simulator.baseUrl,
    CHANDLER_PLAN: 'enterprise',
    ...UNWATCHED,
    ...(engine === 'redis' ? { REDIS_URL: testRedisUrl()! } : {}),
  };
}

async function standing({ sql }: TestDatabase, services: readonly ServiceProcess[]) {
  const [ledger] = await sql<{ spent: number }[]>`select sum(month_spent)::int as spent from ops.quota_spent`;
  const cpuMs = 1_000 * cpuSecondsOf(services.map(({ pid }) => pid));
  return { at: systemClock.now(), spent: ledger!.spent, cpuMs };
}

/** The least processor time of a request with the same libraries, in milliseconds; with Redis, also of a job of a queue. */
async function bareCpuMsPerRequest(redisUrl: string | null): Promise<number> {
  const database = await createEmptyDatabase({ max: 1 });
  try {
    const args = [BARE, simulator.baseUrl, database.url, String(3 * SETTLE_MS), String(SECONDS * 1000)];
    const { stdout } = await promisify(execFile)(process.execPath, [...args, ...(redisUrl === null ? [] : [redisUrl])]);
    const { cpuMsPerRequest, rows } = JSON.parse(stdout) as { cpuMsPerRequest: number; rows: number };
    // As many as a backfill gets from most coins.
    expect(rows).toBeGreaterThan(200);
    return cpuMsPerRequest;
  } finally {
    await database.drop();
  }
}

const engines = () =>
  ENGINES.filter((engine) => CHOSEN.includes(engine) && (engine === 'postgres' || testRedisUrl() !== null));

const percent = (values: readonly number[]) =>
  `${spread(
    values.map((value) => value * 100),
    1,
  )} %`;

it(`${WORKERS} workers use 98 % of the rate they share`, async () => {
  const lines: [string, string][] = [];
  for (const perSecond of PACES) {
    for (const engine of engines()) {
      const runs: Paced[] = [];
      for (let round = 0; round < ROUNDS; round++) runs.push(await pacedRun(engine, perSecond, WORKER_ROLES));
      const used = runs.map((run) => run.used);
      const slack = runs.map((run) => run.slackSeconds);
      lines.push([
        `${thousands(perSecond)}/s, queue on ${engine} (≥ 98 %)`,
        `${percent(used)} ${verdict(median(used) >= 0.98)}; with permits that were lost ${percent(runs.map((run) => run.granted))}; ${Math.max(...slack)} s below half; ${spread(runs.map((run) => run.cpu))} cores`,
      ]);
      expect(Math.min(...used)).toBeGreaterThan(0);
    }
  }
  console.info(
    table(
      `${WORKERS} workers, one quota, one backfill: sent of what is allowed, ${SECONDS} s, median of ${ROUNDS}`,
      lines,
    ),
  );
});

it('one service holds the rate of the plans with a twentieth of a core', async () => {
  const perSecond = 10;
  const lines: [string, string][] = [];
  for (const engine of engines()) {
    const runs: Paced[] = [];
    const bare: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      bare.push(await bareCpuMsPerRequest(engine === 'redis' ? testRedisUrl() : null));
      runs.push(await pacedRun(engine, perSecond, ['scheduler,worker,http']));
    }
    const used = runs.map((run) => run.used);
    const cpu = runs.map((run) => run.cpu);
    lines.push(
      [`sent of what is allowed, queue on ${engine} (≥ 98 %)`, `${percent(used)} ${verdict(median(used) >= 0.98)}`],
      [`of one core, queue on ${engine} (≤ 5 %)`, `${percent(cpu)} ${verdict(median(cpu) <= 0.05)}`],
      [`processor ms a request, queue on ${engine}`, spread(runs.map((run) => run.cpuMsPerRequest))],
      [
        `of a bare process: one insert for each answer${engine === 'redis' ? ', one job on Redis for each request' : ''}`,
        `${spread(bare)}; ratio ${spread(runs.map((run, round) => run.cpuMsPerRequest / bare[round]!))}`,
      ],
    );
    expect(Math.min(...used)).toBeGreaterThan(0);
  }
  console.info(table(`one service process, ${perSecond}/s, one backfill, ${SECONDS} s, median of ${ROUNDS}`, lines));
});

it('an idle service takes a hundredth of a core', async () => {
  const lines: [string, string][] = [];
  for (const engine of engines()) {
    const database = await createTestDatabase({ max: 2 });
    const service = await startServiceProcess('scheduler,worker,http', { ...envOf(database, engine), ...OF_THE_IMAGE });
    try {
      await service.said(/^ready/);
      await systemClock.sleep(IDLE_AFTER_MS);
      const before = { at: systemClock.now(), cpu: cpuSecondsOf([service.pid]) };
      const sessionsBefore = await sessionSeconds(database.sql);
      const sizes: number[] = [];
      for (let second = 0; second < IDLE_SECONDS; second++) {
        await systemClock.sleep(1_000);
        sizes.push(rssMbOf(service.pid));
      }
      const after = { at: systemClock.now(), cpu: cpuSecondsOf([service.pid]) };
      const sessions = [...(await sessionSeconds(database.sql))].reduce(
        (sum, [pid, seconds]) => sum + seconds - (sessionsBefore.get(pid) ?? 0),
        0,
      );
      const cpu = (1_000 * (after.cpu - before.cpu)) / (after.at - before.at);
      lines.push(
        [`of one core, queue on ${engine} (≤ 1 %)`, `${(100 * cpu).toFixed(2)} % ${verdict(cpu <= 0.01)}`],
        [`resident size, queue on ${engine} (≤ 110 MB)`, `${spread(sizes, 0)} MB ${verdict(median(sizes) <= 110)}`],
        [`its Postgres sessions, of one core, queue on ${engine}`, `${((100 * sessions) / IDLE_SECONDS).toFixed(2)} %`],
      );
      expect(service.complaints).toEqual([]);
    } finally {
      await service.stop();
      await database.drop();
    }
  }
  console.info(table(`one service process without work, ${IDLE_SECONDS} s`, lines));
});
