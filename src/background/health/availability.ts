/** Waits until a database, a queue or the account is available, and then watches the database. */
import type { App } from '../../app.ts';
import type { Clock, Instant } from '../../clock.ts';
import { asError } from '../../core/as-error.ts';
import { createBackoff } from '../../core/backoff.ts';
import { unlessAborted } from '../../core/concurrency/unless-aborted.ts';
import { AccountUnknown, KeyRefused } from '../../ingest/outcome.ts';
import {
  DATABASE_IS_LOCKED,
  DATABASE_IS_UNAVAILABLE,
  type OutageReason,
  outageReason,
  QUEUE_IS_UNAVAILABLE,
} from '../../ingest/request/outage-retry.ts';
import { explainDatabaseError, StoreError } from '../../store/connection/store-error.ts';
import { ACCOUNT, DATABASE, type Incidents, LOCK, QUEUE, type ServiceStatus } from './service-status.ts';

const RETRY_MS = 2_000;
/** For an upstream that neither reports the account's plan nor says how long to wait. */
const ACCOUNT_RETRY_MS = 60_000;
const accountBackoff = createBackoff({ firstMs: ACCOUNT_RETRY_MS, mostMs: 15 * 60_000 });
/** When the service stops, it waits so long for an open attempt to end: a silent server may never answer. */
const LATE_MS = 5_000;

/** How the service waits: where it reports that, and the signal that ends the wait. */
type Waiting = {
  readonly status: ServiceStatus;
  readonly incidents: Incidents;
  readonly clock: Clock;
  readonly signal: AbortSignal;
};

/**
 * Calls `open` until it succeeds, and reports an incident while it fails. Null when `signal` is aborted first. `close` closes what opens
 * only after the abort; it is null when `open` ends on the signal without help.
 */
export async function waitUntilAvailable<T>(
  { status, incidents, clock, signal }: Waiting,
  what: string,
  open: () => Promise<T>,
  close: ((opened: T) => Promise<unknown>) | null,
): Promise<T | null> {
  const missed = new Set([what]);
  let accountAttempts = 0;
  while (!signal.aborted) {
    let waitMs = RETRY_MS;
    const opening = open();
    try {
      const opened = await (close === null ? opening : unlessAborted(opening, signal));
      for (const one of missed) incidents.resolve(one);
      return opened;
    } catch (error) {
      if (signal.aborted) {
        if (close !== null) await Promise.race([opening.then(close).catch(() => undefined), clock.sleep(LATE_MS)]);
        return null;
      }
      status.phase = 'waiting';
      if (error instanceof AccountUnknown || error instanceof KeyRefused) {
        waitMs = waitForAccount(error, accountAttempts++, clock.now());
        // `what` was opened; only the account is still unknown.
        incidents.resolve(what);
        missed.add(ACCOUNT);
        incidents.report(ACCOUNT, error);
      } else {
        if (!isTemporary(error)) throw error;
        incidents.report(what, error as Error);
      }
    }
    await clock.sleep(waitMs, signal).catch(() => undefined);
  }
  return null;
}

function waitForAccount(error: AccountUnknown | KeyRefused, attempt: number, now: Instant): number {
  // Meanwhile another process or the operator may record the plan. Reading the record costs no request.
  if (error instanceof KeyRefused) return Math.min(ACCOUNT_RETRY_MS, Math.max(RETRY_MS, error.retryAt - now));
  if (error.retryAt !== null) return Math.max(RETRY_MS, error.retryAt - now);
  // At least half of the bound, because each attempt costs a request.
  return accountBackoff(attempt, (1 + Math.random()) / 2);
}

/** Whether waiting may help: the database or the queue is unavailable, or another process will migrate the database. */
function isTemporary(error: unknown): boolean {
  return outageReason(error) !== null || (error instanceof StoreError && !error.isConfiguration);
}

/** The message of `pg` when its pool has no free connection. Other connections also notice when the server is silent. */
const POOL_IS_FULL = /timeout exceeded when trying to connect/;
const EMBEDDED_DATABASE = 'the embedded database';

type Watch = {
  readonly incidents: Incidents;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly everyMs: number;
  /** The variable with the database's address. */
  readonly setting?: string;
  /** The name of the incident when `check` fails although the database is available. */
  readonly what: string;
};

/**
 * Calls `check` every `everyMs` until the signal is aborted, reports an incident when it fails, and restarts an embedded database. Never
 * rejects.
 */
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
      const reason = outageReason(error);
      if (reason === null) incidents.report(what, asError(error));
      else reportOutage(incidents, reason, databaseError(error, app, setting));
      if (reason === DATABASE_IS_UNAVAILABLE) {
        await unlessAborted(app.restartDatabase(), signal).catch((again: unknown) => {
          if (!signal.aborted) incidents.report(EMBEDDED_DATABASE, asError(again));
        });
      }
    }
    await clock.sleep(everyMs, signal).catch(() => undefined);
  }
}

/** The subject of an outage, as its incident names it. */
export function subjectOf(reason: OutageReason): string {
  return reason === QUEUE_IS_UNAVAILABLE ? QUEUE : DATABASE;
}

/**
 * Reports an outage, except a lock: `watchLocks` finds out who holds it, and when it is released. While a session holds a lock, all
 * connections of the queue's pool may wait for it. A timeout of that pool then says nothing about the database.
 */
export function reportOutage(incidents: Incidents, reason: OutageReason, error: Error): void {
  if (reason === DATABASE_IS_LOCKED || (incidents.isOpen(LOCK) && POOL_IS_FULL.test(error.message))) return;
  incidents.report(subjectOf(reason), error);
}

/** Reports an error of one part of a service. An outage of the database or the queue becomes an incident of theirs. */
export function reportFailure(
  { incidents, app }: { readonly incidents: Incidents; readonly app: App },
  what: string,
  error: unknown,
): void {
  const reason = outageReason(error);
  if (reason === null) incidents.report(what, asError(error));
  else reportOutage(incidents, reason, databaseError(error, app));
}

/** The same error, or, when it is about the database or its address, one that names the database and the setting. */
export function databaseError(error: unknown, { database }: Pick<App, 'database'>, setting?: string): Error {
  const explained = explainDatabaseError(error, database.url);
  if (explained === null) return asError(error);
  return setting === undefined ? explained : explained.of(setting);
}
