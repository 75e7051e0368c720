/** Opens the app of a command on the clock of the database, as services do, so that all processes of a warehouse agree on the time. */
import { type App, type AppOptions, openApp } from '../../app.ts';
import { createSharedClock } from '../../background/health/shared-clock.ts';
import { systemClock } from '../../clock.ts';
import type { Config } from '../../config.ts';
import { explainWithHolder } from '../../store/connection/lock.ts';
import { keepRenewing } from '../../store/work/lease.ts';

/** A command has up to a dozen queries at once. Each takes less time than opening another connection would. */
const CONNECTIONS = 4;

/** Keeps a clock that a test has chosen. @throws StoreError when the database cannot be reached, started or used */
export async function openCommandApp(config: Config, asked: AppOptions): Promise<App> {
  const options = { connections: CONNECTIONS, ...asked };
  if (options.clock !== systemClock) return openApp(config, options);
  const clock = createSharedClock(systemClock);
  const app = await openApp(config, { ...options, clock, overrides: { useDatabaseClock: true } });
  const { database } = app;
  try {
    await clock.follow(database.sql);
  } catch (error) {
    const explained = await explainWithHolder(error, database);
    await app.close();
    throw explained ?? error;
  }
  // During a long command, the clock keeps following the database's, which may be set meanwhile. While the database is away, it just runs on.
  const ended = new AbortController();
  void keepRenewing(systemClock, ended.signal, () => clock.follow(database.sql));
  return {
    ...app,
    close: async () => {
      ended.abort();
      await app.close();
    },
  };
}
