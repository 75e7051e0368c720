/** The composition root: opens the database and everything on top of it, and closes all of it in reverse order. */
import { type Clock, stopwatch, systemClock } from './clock.ts';
import type { Config } from './config.ts';
import type { Span } from './core/span.ts';
import type { QueueOptions } from './ingest/queue/chunk-queue.ts';
import type { Log } from './log.ts';
import { type Database, openDatabase } from './store/connection/connect.ts';
import { startEmbedded } from './store/embedded/embedded.ts';
import { checkSchema, isUnmigrated, migrate } from './store/migration/migrate.ts';
import type { FetchFunction } from './upstream/wire.ts';

/**
 * What to do about a missing or old schema. Chandler always migrates its embedded server. A database of `DATABASE_URL` may be shared with
 * running processes: `migrate` migrates it, `prepare` does so only when it has no schema of Chandler yet, and `require` refuses an old
 * schema and says what to run. `leave` neither checks nor changes the schema, not even of the embedded server: a restore brings its own.
 */
type SchemaPolicy = 'migrate' | 'prepare' | 'require' | 'leave';

/** Replaces the network and the time of the machine, so that a test can run through months in minutes. */
export type AppOverrides = {
  /** Replaces the network to the upstream. */
  readonly fetch?: FetchFunction;
  /** Whether the quota ledger uses the clock of the database, which several hosts need. Default: only when `clock` is the system clock. */
  readonly useDatabaseClock?: boolean;
  /** Converts milliseconds of `clock` to real ones. The queue waits by real ones. */
  readonly realMs?: (ms: number) => number;
  readonly queue?: Pick<QueueOptions, 'backoffMs' | 'lockMs'>;
};

export type AppOptions = {
  readonly clock: Clock;
  readonly log: Log;
  readonly schema: SchemaPolicy;
  /** Size of the connection pool; default 10. The ledger and the queue have their own connections. */
  readonly connections?: number;
  readonly overrides?: AppOverrides | undefined;
};

export type App = {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly overrides: AppOverrides;
  readonly database: Database;
  /** Names of the migrations that opening applied. */
  readonly migrated: readonly string[];
  /** When that was. */
  readonly migratedIn: Span;
  /** Restarts the embedded server when it has died; does nothing for another database. @throws StoreError when it cannot start */
  restartDatabase(): Promise<void>;
  close(): Promise<void>;
};

/** @throws StoreError when the database cannot be reached, started or used */
export async function openApp(config: Config, options: AppOptions): Promise<App> {
  const { clock, log, schema, connections = 10, overrides = {} } = options;
  const releasers = createReleasers();
  try {
    const url = config.databaseUrl ?? (await startServer(config, log, releasers));
    const database = await openDatabase({ url, max: connections });
    releasers.add(() => database.close());
    const begunAt = stopwatch();
    const migrated = await settleSchema(
      database,
      config.databaseUrl === null && schema !== 'leave' ? 'migrate' : schema,
    );
    const migratedAt = clock.now();
    const migratedIn = { from: migratedAt - Math.round(stopwatch() - begunAt), to: migratedAt };
    if (migrated.length > 0) log.debug({ migrations: migrated }, 'migrated the schema');
    const restartDatabase = config.databaseUrl === null ? serverStarter(config, log) : async () => undefined;
    const opened = { config, clock, log, overrides, database, migrated, migratedIn };
    return { ...opened, restartDatabase, close: releasers.release };
  } catch (error) {
    await releasers.release();
    throw error;
  }
}

async function startServer(config: Config, log: Log, releasers: Releasers): Promise<string> {
  const server = await startEmbedded(embeddedOptions(config, log));
  releasers.add(() => server.stop());
  return server.url;
}

function embeddedOptions({ home }: Config, log: Log) {
  return { home, clock: systemClock, log: (line: string) => log.debug(line), warn: (line: string) => log.warn(line) };
}

/** Restarts the server at the same address, one attempt at a time. */
function serverStarter(config: Config, log: Log): () => Promise<void> {
  let starting: Promise<void> | undefined;
  const start = async () => {
    const server = await startEmbedded(embeddedOptions(config, log));
    // This process is still registered with the server from its first start.
    await server.stop();
  };
  return () => {
    starting ??= start().finally(() => {
      starting = undefined;
    });
    return starting;
  };
}

async function settleSchema(database: Database, policy: SchemaPolicy): Promise<readonly string[]> {
  if (policy === 'leave') return [];
  if (policy === 'migrate' || (policy === 'prepare' && (await isUnmigrated(database)))) return migrate(database);
  await checkSchema(database);
  return [];
}

export type Releasers = {
  add(release: () => Promise<void>): void;
  /** Calls all of them, the last one first, even when some fail. Rejects with the first failure. Safe to call twice. */
  release(): Promise<void>;
};

export function createReleasers(): Releasers {
  const pending: (() => Promise<void>)[] = [];
  return {
    add: (release) => {
      pending.push(release);
    },
    release: async () => {
      const failures: unknown[] = [];
      for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
        await next().catch((error: unknown) => failures.push(error));
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
