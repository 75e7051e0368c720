/**
 * The service as operators run it, in processes that are killed one after the other. At the end everything wanted is stored once, and every
 * request was counted.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../src/clock.ts';
import { type Listening, listen } from '../../src/service/http/listen.ts';
import { createSimulator, type Simulator, type SimulatorCounters } from '../../src/simulate.ts';
import { parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import { NOT_FINAL_YET } from '../../src/store/backfill/slot-owner.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { runCli } from './program.ts';
import { randomOf } from './random.ts';
import { type ServiceProcess, startServiceProcess, type Vitals } from './service-process.ts';

export type SoakOptions = {
  /** One process is killed at each interval, for a time or a number of times; then the remaining work is done. The upstream counts the requests. */
  readonly kills:
    | { readonly everyMs: number; readonly forMs: number }
    | { readonly everyRequests: number; readonly times: number };
  readonly perSecond: number;
  readonly faults: string;
  /** One process each. */
  readonly roles: readonly string[];
  /** Null: the queue is in the database. */
  readonly redisUrl: string | null;
  readonly seed: number;
  readonly coins: number;
  /** How long the remaining work may take. */
  readonly patienceMs: number;
};

/** One place among the processes, whichever process has it. */
export type Place = {
  readonly role: string;
  readonly kills: number;
  /** Each life that was long enough: its vitals after ten seconds, its largest size, and its last vitals. */
  readonly lives: readonly { readonly first: Vitals; readonly peakMb: number; readonly last: Vitals }[];
};

export type SoakReport = {
  readonly places: readonly Place[];
  readonly kills: number;
  readonly upstream: SimulatorCounters;
  /** Requests that the ledger has counted. */
  readonly counted: number;
  /** Requests in `ops.fetch`; those of them with an answer (a request on a cut connection may never have arrived); those for candles. */
  readonly recorded: number;
  readonly answered: number;
  readonly recordedCandleRequests: number;
  readonly candles: number;
  readonly differences: readonly string[];
  /** Spans of the large backfill that are wanted and not covered, without another reason. */
  readonly missing: number;
  /** Series whose candles differ from the market's. */
  readonly wrong: readonly string[];
  /** The most requests that were sent in one second. */
  readonly fullestSecond: number;
  readonly tookMs: number;
  readonly restMs: number;
  readonly errors: readonly string[];
};

const SETTLED_MS = 10_000;
const LOOK_MS = 1_000;
const START = '2014-01-01';
const END = '2026-01-01';

export async function soak(options: SoakOptions): Promise<SoakReport> {
  const faults = parseFaultSpec(options.faults);
  if (!faults.ok) throw new Error(faults.problem);
  const problems: string[] = [];
  const simulator = createSimulator({
    market: 'made-up',
    coins: options.coins,
    clock: systemClock,
    faults: faults.spec,
    limits: {
      plan: 'enterprise',
      overrides: { requestsPerMonth: null, anonymousRequestsPerDay: null, pacePerSecond: options.perSecond },
    },
    onError: (error, url) => problems.push(`${url}: ${error}`),
  });
  const server = await listen(simulator.fetch, { host: '127.0.0.1', port: 0, gzip: false });
  const database = await createTestDatabase({ max: 4 });
  try {
    const report = await run(options, simulator, server, database);
    return { ...report, errors: [...problems, ...report.errors] };
  } finally {
    await server.close();
    await database.drop();
  }
}

async function run(
  options: SoakOptions,
  simulator: Simulator,
  server: Listening,
  database: TestDatabase,
): Promise<SoakReport> {
  const { sql } = database;
  const env = {
    DATABASE_URL: database.url,
    CHANDLER_BASE_URL: `${server.url}/v1`,
    CHANDLER_PLAN: 'enterprise',
    CHANDLER_REQUESTS_PER_SECOND: String(options.perSecond),
    ...(options.redisUrl === null ? {} : { REDIS_URL: options.redisUrl }),
  };
  const command = async (...args: string[]) => {
    const { code, err } = await runCli(args, env);
    if (code !== 0) throw new Error(`chandler ${args.join(' ')}: ${code}: ${err}`);
  };
  const places = options.roles.map((role) => createPlace(role, env));
  const random = randomOf(options.seed);
  const startedAt = systemClock.now();
  let kills = 0;
  try {
    await Promise.all(places.map((place) => place.start()));
    await command('track', 'add', '--top', '10', '--interval', '1h', '--since', '-30d');
    await command('backfill', '--all', '--start', START, '--end', END, '--detach', '--yes');
    await command('backfill', '--top', '5', '--start', '-60d', '--interval', '1h', '--detach', '--yes');
    const { kills: when } = options;
    const beganAt = systemClock.now();
    const isEnough = () =>
      'times' in when ? kills >= when.times : systemClock.now() - beganAt > when.forMs - when.everyMs;
    while (!isEnough() && !(await isDone(sql))) {
      const { asked, at } = { asked: simulator.counters().requests.total, at: systemClock.now() };
      const isDue = () =>
        'times' in when
          ? simulator.counters().requests.total >= asked + when.everyRequests
          : systemClock.now() >= at + when.everyMs;
      while (!isDue() && !(await isDone(sql))) {
        await sleep(LOOK_MS);
        for (const place of places) place.look();
      }
      await places[Math.floor(random() * places.length)]!.kill();
      kills++;
    }
    const restFrom = systemClock.now();
    while (!(await isDone(sql))) {
      if (systemClock.now() - restFrom > options.patienceMs)
        throw new Error(`not done ${options.patienceMs / 1000} s after the last kill: ${await standing(sql)}`);
      await sleep(LOOK_MS);
      for (const place of places) place.look();
    }
    const restMs = systemClock.now() - restFrom;
    const codes = await Promise.all(places.map((place) => place.stop()));
    const errors = [
      ...codes.flatMap((code, i) => (code === 0 ? [] : [`${places[i]!.role} ended with ${code}`])),
      ...places.flatMap((place) => place.errors()),
    ];
    return {
      ...(await counted(database, simulator)),
      places: places.map((place) => place.report()),
      kills,
      tookMs: systemClock.now() - startedAt,
      restMs,
      errors,
    };
  } finally {
    await Promise.all(places.map((place) => place.end()));
  }
}

function createPlace(role: string, env: Readonly<Record<string, string>>) {
  let current: ServiceProcess | null = null;
  let kills = 0;
  const lives: { first: Vitals; peakMb: number; last: Vitals }[] = [];
  let life: { first: Vitals; peakMb: number; last: Vitals } | null = null;
  const errors: string[] = [];
  const look = () => {
    const vitals = current?.vitals() ?? null;
    if (vitals === null || vitals.upMs < SETTLED_MS) return;
    if (life === null) {
      life = { first: vitals, peakMb: vitals.rssMb, last: vitals };
      lives.push(life);
    }
    life.peakMb = Math.max(life.peakMb, vitals.rssMb);
    life.last = vitals;
  };
  const start = async () => {
    life = null;
    current = await startServiceProcess(role, env);
    await current.said(/^ready/);
  };
  const leave = (gone: ServiceProcess) => {
    for (const { level, msg } of gone.complaints) if (level === 'error' || level === 'fatal') errors.push(msg);
    current = null;
  };
  return {
    role,
    start,
    look,
    kill: async () => {
      const victim = current!;
      look();
      await victim.kill();
      leave(victim);
      kills++;
      await start();
    },
    stop: async () => {
      const last = current!;
      const code = await last.stop();
      leave(last);
      return code;
    },
    end: async () => void (await current?.kill()),
    errors: () => errors,
    report: (): Place => ({ role, kills, lives }),
  };
}

/** Nothing is queued or running, except what waits an hour for second opinions; no refresh of a tracked series is in progress. */
async function isDone(sql: TestDatabase['sql']): Promise<boolean> {
  const [row] = await sql<{ left: number }[]>`
    select (select count(*)::int from ops.backfill
        where state in ('queued', 'running') and message is distinct from ${NOT_FINAL_YET})
      + (select count(*)::int from ops.tracked where queued_at is not null) as left`;
  return row!.left === 0;
}

async function standing(sql: TestDatabase['sql']): Promise<string> {
  const rows = await sql`select id, state, owner, left_requests, message, wait_until from ops.backfill order by id`;
  return JSON.stringify(rows);
}

/** The counts of the database beside those of the upstream. */
async function counted({ sql }: TestDatabase, simulator: Simulator) {
  const now = systemClock.now();
  const differences: string[] = [];
  for await (const proof of verifySeries(sql, {}, now))
    for (const difference of proof.differences) differences.push(`${proof.coinId} ${proof.interval}: ${difference}`);
  const [row] = await sql<
    {
      counted: number;
      recorded: number;
      answered: number;
      candles: number;
      requests: number;
      missing: number;
      fullest: number;
    }[]
  >`
    select (select sum(month_spent)::int from ops.quota_spent) as counted,
      (select count(*)::int from ops.fetch) as recorded,
      (select count(*)::int from ops.fetch where status is not null) as answered,
      (select count(*)::int from ops.fetch where endpoint = 'ohlcv') as requests,
      (select count(*)::int from market.candle) as candles,
      (select count(*)::int from market.gaps where reason = 'not asked yet' and interval = '24h') as missing,
      (select max(n)::int from (select count(*) over (order by sent_at range between interval '999 ms' preceding and current row) as n
        from ops.fetch) x) as fullest`;
  return {
    upstream: simulator.counters(),
    counted: row!.counted,
    recorded: row!.recorded,
    answered: row!.answered,
    recordedCandleRequests: row!.requests,
    candles: row!.candles,
    missing: row!.missing,
    fullestSecond: row!.fullest,
    differences,
    wrong: await unlike(sql, simulator),
  };
}

/** Compares the daily candles with the market itself, coin by coin. */
async function unlike(sql: TestDatabase['sql'], simulator: Simulator): Promise<string[]> {
  const wrong: string[] = [];
  const series = await sql<{ id: number; coinId: string }[]>`
    select id, coin_id from market.series where interval = '24h' order by coin_id`;
  for (const { id, coinId } of series) {
    const truth = await simulator.data.ohlcv({
      coinId,
      quote: 'usd',
      interval: '24h',
      from: Date.parse(START),
      to: Date.parse(END) - 1,
      limit: 1_000_000,
    });
    const stored = await sql`
      select open_time, open, high, low, close, volume, market_cap
      from market.candle where series_id = ${id} and interval = '24h' and open_time >= ${START}::date and open_time < ${END}::date
      order by open_time`;
    const same =
      stored.length === (truth ?? []).length &&
      (truth ?? []).every((candle, i) =>
        (['openTime', 'open', 'high', 'low', 'close', 'volume', 'marketCap'] as const).every(
          (name) => candle[name] === stored[i]![name],
        ),
      );
    if (!same) wrong.push(`${coinId}: ${stored.length} candles, the market has ${truth?.length ?? 0}`);
  }
  return wrong;
}
