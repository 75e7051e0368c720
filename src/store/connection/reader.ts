/** Read-only connections for the service. They use the role `chandler_server` if the user may switch to it. */
import { createClient, type Sql, watch } from './connect.ts';
import { createWatchdog, type Watchdog } from './connection-watchdog.ts';
import { explainDatabaseError, StoreError } from './store-error.ts';

const ROLE = 'chandler_server';

/** A statement takes milliseconds. One that takes much longer is a fault, and such statements must not pile up. */
const STATEMENT_TIMEOUT_MS = 10_000;

/**
 * Only an exclusive lock keeps a reader out, and nothing of Chandler holds one for long. The statements that wait for one use up the connections,
 * also those of callers who need nothing that is locked. So they fail soon, and their callers get 503: with eight connections, sixteen a second.
 * Above that rate, all callers wait.
 */
const LOCK_TIMEOUT_MS = 500;

/**
 * With more, the statements of all callers would queue on one connection behind one that waits for a lock, while the other connections are idle.
 * With none, short statements would cost a third more.
 */
const MAX_PIPELINE = 1;

/** A few connections are enough, because one statement counts the requests of all callers. */
const COUNTING_CONNECTIONS = 2;

type Reader = {
  readonly sql: Sql;
  /** A few more connections, which look up keys and count requests. The role may write nothing except these counts. */
  readonly counting: Sql;
  /** False if the role does not exist, or this user is not a member of it. The connections of `sql` are read-only in any case. */
  readonly hasRole: boolean;
  readonly watchdog: Watchdog;
  close(): Promise<void>;
};

/** `setting` names the setting that holds the address. @throws StoreError, which names it, when no server answers there */
export async function openReader({
  url,
  setting = 'DATABASE_URL',
  max = 8,
  watchdog: given,
}: {
  readonly url: string;
  readonly setting?: string;
  readonly max?: number;
  /** An existing watchdog of the same server. Without it, the reader starts its own. */
  readonly watchdog?: Watchdog | undefined;
}): Promise<Reader> {
  const hasRole = await maySwitchRole(url).catch((error: unknown) => {
    throw error instanceof StoreError ? error.of(setting) : error;
  });
  const settings = {
    statement_timeout: String(STATEMENT_TIMEOUT_MS),
    idle_in_transaction_session_timeout: String(STATEMENT_TIMEOUT_MS),
    // JIT compilation takes longer than these statements run.
    jit: 'off',
    ...(hasRole ? { role: ROLE } : {}),
  };
  const applicationName = 'chandler serve';
  const watchdog = given ?? createWatchdog();
  const common = { url, applicationName, watchdog, maxPipeline: MAX_PIPELINE };
  const reading = { default_transaction_read_only: 'on', lock_timeout: String(LOCK_TIMEOUT_MS) };
  const sql = createClient({ ...common, max, settings: { ...settings, ...reading } });
  const counting = createClient({ ...common, max: COUNTING_CONNECTIONS, settings });
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
    // The role does not exist (invalid parameter value), or the user is not a member of it.
    if (['22023', '42501', '42704'].includes((error as { readonly code?: string }).code ?? '')) return false;
    throw explainDatabaseError(error, url) ?? error;
  } finally {
    await sql.end({ timeout: 5 });
  }
}
