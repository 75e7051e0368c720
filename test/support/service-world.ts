/**
 * Whole services, as an operator starts them, in a time that passes only on command: real Postgres and queues behind relays that can be
 * cut, the simulator as upstream. Upstream and database have the true time; each service has the clock of its own host.
 */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import type { Role } from '../../src/background/health/service-status.ts';
import { runService } from '../../src/background/service/service.ts';
import { systemClock } from '../../src/clock.ts';
import { type Config, parseConfig } from '../../src/config.ts';
import { createLog } from '../../src/log.ts';
import type { Environment } from '../../src/settings.ts';
import { createSimulator, type Simulator, type SimulatorOptions } from '../../src/simulate.ts';
import type { FetchFunction } from '../../src/upstream/wire.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import type { OwnRedis } from './redis-server.ts';
import { createRelay, type Relay } from './relay.ts';
import { createVirtualClock, type HostClock, type VirtualClock } from './virtual-clock.ts';

export type ServiceWorldOptions = {
  readonly startAt: number;
  readonly simulator: Omit<SimulatorOptions, 'clock' | 'onError' | 'market'>;
  /** The configuration of the services, besides addresses. */
  readonly env: Environment;
  /** A Redis of the test that loses its data; null: the queue is in Postgres. */
  readonly redis: OwnRedis | null;
  /** Stands between the services and the simulator; null: the simulator answers. */
  readonly script?: (request: Request, simulated: FetchFunction) => Promise<Response> | null;
};

export type Service = {
  readonly name: string;
  readonly clock: HostClock;
  /** Its log lines, newest last. */
  readonly lines: readonly string[];
  /** Like SIGTERM. Resolves when it has ended. */
  stop(): Promise<void>;
  /** Like `kill -9`, as others see it: from now on it sends nothing. */
  kill(): void;
  /** The error with which it ended on its own; null if it did not. */
  failure(): Error | null;
};

/** A request that reached the upstream, at the true time. */
export type AskedBy = { readonly at: number; readonly by: string; readonly path: string };

/** `down`: nothing answers. `broken`: a gateway answers in place of the upstream. */
export type UpstreamState = 'up' | 'down' | 'broken';

export type ServiceWorld = {
  readonly clock: VirtualClock;
  readonly database: TestDatabase;
  readonly simulator: Simulator;
  readonly config: Config;
  upstream: UpstreamState;
  /** Every request, whatever its outcome. */
  readonly asked: readonly AskedBy[];
  /** Resolves when it has nothing to do for now. */
  start(name: string, options?: StartOptions): Promise<Service>;
  services(): readonly Service[];
  /** Lets time pass until the list of coins has been read, which comes before any other data. Resolves to the ids. */
  untilListed(): Promise<readonly string[]>;
  /** Lets this much time pass at once, and then everything that is due happens. */
  advance(ms: number): Promise<void>;
  /** Resolves when nothing is in progress that needs no time. */
  settle(): Promise<void>;
  /** Sets the clock of the database's host this far from the true time. */
  setDatabaseOff(ms: number): Promise<void>;
  cutDatabase(): void;
  cutRedis(): void;
  mend(): void;
  /** Removes everything from the queues, as the start of a Redis without a disk does. */
  wipeQueues(): Promise<void>;
  /** How much is in the queues: a job is one row or key, and on Redis each queue has a few keys of its own. */
  queued(): Promise<number>;
  close(): Promise<void>;
};

export type StartOptions = {
  readonly roles?: readonly Role[];
  readonly concurrency?: number;
  readonly env?: Environment;
};

const BASE_URL = 'http://upstream.test/v1';
const ALL: readonly Role[] = ['scheduler', 'worker'];
/**
 * The longest wait for a permit: the ledger grants it at most this far ahead, and nothing ends the wait for a granted permit. Every longer
 * sleep is that of a loop that looks for work.
 */
const TURN_MS = 2_000;
/** No bytes pass and nothing starts to sleep, for so many milliseconds of the machine and so many looks: then nothing is in progress. */
const QUIET_MS = 6;
const QUIET_LOOKS = 5;
/** A queue that snoozes polls again and again: `settle` does not wait for that forever. */
const LONGEST_SETTLE_MS = 10_000;
/**
 * How long a queue really sleeps in the machine's time: it soon polls again and sees the world's time. While no time passes, it polls less
 * and less often. Otherwise queues that are held would keep the machine busy, and the world would never be quiet.
 */
const LOOK_AGAIN_MS = { least: 20, most: 320 };

export async function createServiceWorld(options: ServiceWorldOptions): Promise<ServiceWorld> {
  const { startAt, redis } = options;
  const clock = createVirtualClock(startAt);
  const database = await createTestDatabase({ max: 6 });
  const direct = redis === null ? null : new Redis(redis.url);
  await giveClock(database, startAt);
  const simulator = createSimulator({
    market: 'made-up',
    ...options.simulator,
    clock,
    onError: (error) => {
      throw error;
    },
  });
  const services: (Service & { readonly relays: readonly Relay[]; readonly ended: Promise<void> })[] = [];
  const asked: AskedBy[] = [];
  let answers = 0;
  let databaseOff = 0;
  let movedAt = performance.now();
  /** Sleeps of the queues: until when in the world's time, and when, in the machine's time, they poll again. */
  const waits = new Set<{ readonly until: number; readonly looksAt: number }>();
  const shortened = (ms: number) => {
    const since = performance.now() - movedAt;
    const realMs = Math.min(ms, Math.max(LOOK_AGAIN_MS.least, Math.min(since, LOOK_AGAIN_MS.most)));
    waits.add({ until: clock.now() + ms, looksAt: performance.now() + realMs });
    return realMs;
  };
  /** Whether a sleep is over and its queue has not noticed yet. */
  const isOverslept = () => {
    const now = performance.now();
    let isOne = false;
    for (const wait of waits) {
      if (wait.looksAt <= now) waits.delete(wait);
      else if (wait.until <= clock.now()) isOne = true;
    }
    return isOne;
  };
  const isCut = { database: false, redis: false };
  const world: ServiceWorld = {
    clock,
    database,
    simulator,
    config: configOf(options.env, database.url, null),
    upstream: 'up',
    asked,
    services: () => services,
    untilListed: async () => {
      while (true) {
        const coins = await database.sql<{ id: string }[]>`select id from market.coin order by id`;
        if (coins.length > 0) return coins.map(({ id }) => id);
        expectAlive(world);
        await world.advance(60_000);
      }
    },
    start: async (name, { roles = ALL, concurrency = 4, env = {} } = {}) => {
      const relay = await createRelay(database.url);
      const redisRelay = redis === null ? null : await createRelay(redis.url);
      const relays = redisRelay === null ? [relay] : [relay, redisRelay];
      const life = { isKilled: false, failure: null as Error | null };
      const stop = new AbortController();
      const host = clock.host();
      const lines: string[] = [];
      const at = () => new Date(clock.now()).toISOString();
      const fetch: FetchFunction = async (request) => {
        asked.push({ at: clock.now(), by: name, path: new URL(request.url).pathname.replace(/^\/v1/, '') });
        if (life.isKilled || world.upstream === 'down') throw unreachable();
        if (world.upstream === 'broken') return new Response('<h1>Bad gateway</h1>', { status: 502 });
        const answer = options.script?.(request, simulator.fetch) ?? simulator.fetch(request);
        return answer.finally(() => answers++);
      };
      if (isCut.database) relay.cut();
      if (isCut.redis) redisRelay?.cut();
      const ended = runService({
        config: configOf({ ...options.env, ...env }, relay.url, redisRelay?.url ?? null),
        clock: host,
        log: createLog({ level: 'info', write: (line) => lines.push(`${at()} ${line}`) }),
        roles,
        owner: `${name}:${randomUUID().slice(0, 8)}`,
        concurrency,
        migrate: false,
        signal: stop.signal,
        overrides: {
          fetch,
          useDatabaseClock: true,
          realMs: shortened,
          queue: { backoffMs: 2, lockMs: 1_000 },
        },
      }).catch((error: unknown) => {
        if (!life.isKilled) life.failure = error as Error;
      });
      const leave = () => {
        const at = services.indexOf(service);
        if (at >= 0) services.splice(at, 1);
      };
      const service = {
        name,
        clock: host,
        lines,
        relays,
        ended,
        failure: () => life.failure,
        stop: async () => {
          stop.abort();
          let isOver = false;
          void ended.then(() => {
            isOver = true;
          });
          // Its own timeout follows the clock, too.
          for (let i = 0; i < 40 && !isOver; i++) {
            await world.settle();
            if (!isOver) await world.advance(500);
          }
          leave();
          await Promise.all(relays.map((one) => one.close()));
        },
        kill: () => {
          life.isKilled = true;
          for (const one of relays) one.cut();
          stop.abort();
          leave();
          closing.push(ended.then(async () => void (await Promise.all(relays.map((one) => one.close())))));
        },
      };
      services.push(service);
      await world.settle();
      return service;
    },
    advance: async (ms) => {
      if (ms < 0) throw new RangeError(`Time does not go back: ${ms} ms`);
      const until = clock.now() + ms;
      while (true) {
        // A connection that is opened again in the machine's time must not see one clock before the step and another one after it.
        const relays = services.flatMap((service) => service.relays);
        for (const one of relays) one.freeze();
        // A sleeper that waits for a permit is woken on time: if it comes late, its permit is lost.
        const next = clock.firstWakes(TURN_MS);
        const left = until - clock.now();
        const step = next === null ? left : Math.min(left, next);
        await setClock(database, clock.now() + step + databaseOff);
        movedAt = performance.now();
        clock.advance(step);
        for (const one of relays) one.thaw();
        await world.settle();
        if (clock.now() >= until) return;
      }
    },
    settle: async () => {
      let seen = -1;
      let quietSince = 0;
      let looks = 0;
      const begun = performance.now();
      while (performance.now() - begun < LONGEST_SETTLE_MS) {
        const now = performance.now();
        const all = services.flatMap(({ relays }) => relays);
        const activity = all.reduce((sum, one) => sum + one.activity(), asked.length + answers + clock.slept());
        const isBusy = isOverslept() || all.some((one) => one.pending() > 0);
        if (activity !== seen || isBusy) {
          quietSince = now;
          looks = 0;
        } else if (++looks >= QUIET_LOOKS && now - quietSince >= QUIET_MS) return;
        seen = activity;
        await systemClock.sleep(1);
      }
    },
    setDatabaseOff: async (ms) => {
      databaseOff = ms;
      await setClock(database, clock.now() + databaseOff);
    },
    cutDatabase: () => {
      isCut.database = true;
      for (const { relays } of services) relays[0]?.cut();
    },
    cutRedis: () => {
      isCut.redis = true;
      for (const { relays } of services) relays[1]?.cut();
    },
    mend: () => {
      isCut.database = false;
      isCut.redis = false;
      for (const { relays } of services) for (const one of relays) one.mend();
    },
    wipeQueues: async () => {
      if (direct !== null) await direct.flushall();
      else await database.sql`delete from bullmq.job`;
    },
    queued: async () => {
      if (direct !== null) return direct.dbsize();
      const [row] = await database.sql<{ n: number }[]>`select count(*)::int as n from bullmq.job`;
      return row!.n;
    },
    close: async () => {
      world.mend();
      for (const service of [...services]) await service.stop();
      // Killed services wait for their own timeout.
      for (let i = 0; i < 20; i++) await world.advance(1_000);
      await Promise.race([Promise.all(closing), systemClock.sleep(5_000)]);
      direct?.disconnect();
      await database.drop();
    },
  };
  const closing: Promise<unknown>[] = [];
  return world;
}

function configOf(env: Environment, databaseUrl: string, redisUrl: string | null): Config {
  const parsed = parseConfig({
    CHANDLER_BASE_URL: BASE_URL,
    ...env,
    DATABASE_URL: databaseUrl,
    ...(redisUrl === null ? {} : { REDIS_URL: redisUrl }),
  });
  if ('ok' in parsed) return parsed.ok;
  throw new Error(parsed.problems.join('\n'));
}

/** Sets the time that the ledger uses: this database has its own `clock_timestamp()`, found before that of Postgres. */
async function giveClock({ sql }: TestDatabase, at: number): Promise<void> {
  await sql`create schema test_time`;
  await sql`create table test_time.now (at timestamptz not null)`;
  await sql`insert into test_time.now values (${at}::timestamptz)`;
  await sql`create function test_time.clock_timestamp() returns timestamptz language sql volatile as 'select at from test_time.now'`;
  const [row] = await sql<{ name: string }[]>`select current_database() as name`;
  await sql.unsafe(`alter database ${row!.name} set search_path = test_time, pg_catalog, "$user", public`);
  // Another test covers a server that dies. Here thousands of small transactions would wait for a disk.
  await sql.unsafe(`alter database ${row!.name} set synchronous_commit = off`);
}

async function setClock({ sql }: TestDatabase, at: number): Promise<void> {
  await sql`update test_time.now set at = ${at}`;
}

function unreachable(): Error {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' });
  return Object.assign(new TypeError('fetch failed'), { cause });
}

/** Checks that no service has ended on its own. */
export function expectAlive(world: ServiceWorld): void {
  for (const service of world.services()) expect(service.failure(), service.name).toBeNull();
}

/**
 * Resolves when the service has logged this text, by default from now on: cut connections are opened again in the machine's time, while
 * minutes of the world's time pass at once.
 */
export async function untilLogged(
  world: ServiceWorld,
  { name, lines }: Service,
  text: string,
  from = lines.length,
): Promise<void> {
  const begun = performance.now();
  while (!lines.slice(from).some((line) => line.includes(text))) {
    expect(performance.now() - begun, `${name} does not say: ${text}`).toBeLessThan(60_000);
    await world.advance(5_000);
    await systemClock.sleep(50);
  }
}
