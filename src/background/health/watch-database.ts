/** Checks every few seconds that the database is available, reports when it is not, and restarts an embedded one. */
import type { App } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import { unlessAborted } from '../../core/concurrency/unless-aborted.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import { explainDatabaseError } from '../../store/connection/store-error.ts';
import { asError, DATABASE, type Incidents } from './service-status.ts';

const EMBEDDED_DATABASE = 'the embedded database';

export type Watch = {
  readonly incidents: Incidents;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly everyMs: number;
  /** The variable with the database's address. */
  readonly setting?: string;
  /** The name of the incident when `check` fails although the database is available. */
  readonly what: string;
};

/** Calls `check` until the signal is aborted; never rejects. */
export async function watchDatabase(
  app: App,
  check: () => Promise<unknown>,
  { incidents, clock, signal, everyMs, setting, what }: Watch,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await unlessAborted(check(), signal);
      for (const one of [DATABASE, EMBEDDED_DATABASE, what]) incidents.resolve(one);
    } catch (error) {
      if (signal.aborted) return;
      const isUnavailable = isDatabaseUnavailable(error);
      incidents.report(isUnavailable ? DATABASE : what, databaseError(error, app, setting));
      if (isUnavailable) {
        await unlessAborted(app.bringBack(), signal).catch((again: unknown) => {
          if (!signal.aborted) incidents.report(EMBEDDED_DATABASE, asError(again));
        });
      }
    }
    await clock.sleep(everyMs, signal).catch(() => undefined);
  }
}

/** The error; when it is about the database or its address, with the database and the setting named. */
export function databaseError(error: unknown, { database }: Pick<App, 'database'>, setting?: string): Error {
  const explained = explainDatabaseError(error, database.url);
  if (explained === null) return asError(error);
  return setting === undefined ? explained : explained.of(setting);
}
