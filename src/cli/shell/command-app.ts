/** Opens the app of a command on the clock of the database, as services are: all processes of a warehouse agree on the time. */
import { type App, type AppOptions, openApp } from '../../app.ts';
import { createSharedClock } from '../../background/health/shared-clock.ts';
import { systemClock } from '../../clock.ts';
import type { Config } from '../../config.ts';
import { explainWithHolder } from '../../store/connection/lock.ts';
import { keepRenewing } from '../../store/work/lease.ts';

/** A command has a dozen questions at once, and each takes less time than a connection of its own. */
const CONNECTIONS = 4;

/** A clock that a test has chosen stays as it is. @throws StoreError when the database cannot be reached, started or used */
export async function openCommandApp(config: Config, asked: AppOptions): Promise<App> {
  const options = { connections: CONNECTIONS, ...asked };
  if (options.clock !== systemClock) return openApp(config, options);
  const clock = createSharedClock(systemClock);
  const app = await openApp(config, { ...options, clock, surroundings: { useDatabaseClock: true } });
  const { database } = app;
  try {
    await clock.follow(database.sql);
  } catch (error) {
    const explained = await explainWithHolder(error, database);
    await app.close();
    throw explained ?? error;
  }
  // A long command follows a clock that is set meanwhile. Without the database, the clock goes on as it went.
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
