/** Connections that can only read, for serving: as the role `chandler_server` where the user may switch to it. */
import { createClient, type Sql, watch } from './connect.ts';
import { createWatchdog, type Watchdog } from './connection-watchdog.ts';
import { explainDatabaseError, StoreError } from './store-error.ts';

const ROLE = 'chandler_server';

/** Every answer takes milliseconds. A statement that takes longer is a fault, and such statements must not pile up. */
const STATEMENT_TIMEOUT_MS = 10_000;

/** One statement counts the requests of all callers at once, so a few connections are enough. */
const COUNTING_CONNECTIONS = 2;

export type Reader = {
  readonly sql: Sql;
  /** A few more connections, to look up keys and to count requests: the counts are all that the role may write. */
  readonly counting: Sql;
  /** False: there is no such role, or this user is no member of it. The connections are read-only all the same. */
  readonly hasRole: boolean;
  readonly watchdog: Watchdog;
  close(): Promise<void>;
};

/** `setting` is where the address was given. @throws StoreError, which names it, when nobody answers there */
export async function openReader({
  url,
  setting = 'DATABASE_URL',
  max = 8,
  watchdog: given,
}: {
  readonly url: string;
  readonly setting?: string;
  readonly max?: number;
  /** Of the same server, if there is one already; without it, the reader starts its own. */
  readonly watchdog?: Watchdog | undefined;
}): Promise<Reader> {
  const hasRole = await maySwitchRole(url).catch((error: unknown) => {
    throw error instanceof StoreError ? error.of(setting) : error;
  });
  const settings = {
    statement_timeout: String(STATEMENT_TIMEOUT_MS),
    idle_in_transaction_session_timeout: String(STATEMENT_TIMEOUT_MS),
    // Compiling takes longer than these statements run.
    jit: 'off',
    ...(hasRole ? { role: ROLE } : {}),
  };
  const applicationName = 'chandler serve';
  const watchdog = given ?? createWatchdog();
  const sql = createClient({
    url,
    max,
    applicationName,
    watchdog,
    settings: { ...settings, default_transaction_read_only: 'on' },
  });
  const counting = createClient({ url, max: COUNTING_CONNECTIONS, applicationName, settings, watchdog });
  const stopWatching = given === undefined ? watch({ url, applicationName, watchdog }) : async () => undefined;
  const close = async () => {
    await Promise.all([stopWatching(), sql.end({ timeout: 5 }), counting.end({ timeout: 5 })]);
  };
  return { sql, counting, hasRole, watchdog, close };
}

async function maySwitchRole(url: string): Promise<boolean> {
  const sql = createClient({ url, max: 1 });
  try {
    await sql.unsafe(`set role ${ROLE}`);
    return true;
  } catch (error) {
    // No such role (invalid parameter value), or no member of it.
    if (['22023', '42501', '42704'].includes((error as { readonly code?: string }).code ?? '')) return false;
    throw explainDatabaseError(error, url) ?? error;
  } finally {
    await sql.end({ timeout: 5 });
  }
}
