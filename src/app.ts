/** The composition root: configuration → database → everything that stands on it, closed again in reverse order. */
import { type Clock, systemClock } from './clock.ts';
import type { Config } from './config.ts';
import type { QueueOptions } from './ingest/queue/chunk-queue.ts';
import type { Log } from './log.ts';
import { type Database, openDatabase } from './store/connection/connect.ts';
import { startEmbedded } from './store/embedded/embedded.ts';
import { checkSchema, isUnmigrated, migrate } from './store/migration/migrate.ts';
import type { FetchFunction } from './upstream/wire.ts';

/**
 * What to do about a schema that is missing or old. The embedded server is ours alone and is always brought up to date. A
 * database of `DATABASE_URL` may be shared, and other processes may be running on it:
 * `migrate`: bring it up to date. `prepare`: only when it has no schema of ours yet, else as `require`. `require`: refuse
 * with what to run.
 */
export type SchemaPolicy = 'migrate' | 'prepare' | 'require';

/** What stands around us, where that is not the network and the machine's time: a test lives through months in minutes. */
export type Surroundings = {
  /** In place of the network to the upstream. */
  readonly fetch?: FetchFunction;
  /** Whether the ledger goes by the database's clock, as all hosts must; by default when our own is the machine's. */
  readonly useDatabaseClock?: boolean;
  /** A queue waits by the machine's time: how long `ms` of our clock are there, and its own pauses. */
  readonly realMs?: (ms: number) => number;
  readonly queue?: Pick<QueueOptions, 'backoffMs' | 'lockMs'>;
};

export type AppOptions = {
  readonly clock: Clock;
  readonly log: Log;
  readonly schema: SchemaPolicy;
  /** To the database, at most; default 10. The ledger, drizzle and the queue have their own. */
  readonly connections?: number;
  readonly surroundings?: Surroundings | undefined;
};

export type App = {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly surroundings: Surroundings;
  readonly database: Database;
  /** Names of the migrations that opening applied. */
  readonly migrated: readonly string[];
  /** Starts an embedded server that is gone again; nothing can be done here about another one. @throws StoreError when it cannot start */
  bringBack(): Promise<void>;
  close(): Promise<void>;
};

/** @throws StoreError in one sentence when the database cannot be reached, started or used */
export async function openApp(config: Config, options: AppOptions): Promise<App> {
  const { clock, log, schema, connections = 10, surroundings = {} } = options;
  const releasers = createReleasers();
  try {
    const url = config.databaseUrl ?? (await startServer(config, log, releasers));
    const database = await openDatabase({ url, max: connections });
    releasers.add(() => database.close());
    const migrated = await settleSchema(database, config.databaseUrl === null ? 'migrate' : schema);
    if (migrated.length > 0) log.debug({ migrations: migrated }, 'schema brought up to date');
    const bringBack = config.databaseUrl === null ? serverStarter(config, log) : async () => undefined;
    return { config, clock, log, surroundings, database, migrated, bringBack, close: releasers.release };
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

/** Starts it again at the same address, one attempt at a time. */
function serverStarter(config: Config, log: Log): () => Promise<void> {
  let starting: Promise<void> | undefined;
  const start = async () => {
    const server = await startEmbedded(embeddedOptions(config, log));
    // We are signed in from before: once is enough.
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
  if (policy === 'migrate' || (policy === 'prepare' && (await isUnmigrated(database)))) return migrate(database);
  await checkSchema(database);
  return [];
}

export type Releasers = {
  add(release: () => Promise<void>): void;
  /** Calls what was added, last first, each one whatever the others did; rejects with the first failure. Safe to call twice. */
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
