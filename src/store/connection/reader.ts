/** Connections that only read: for serving. As the role `chandler_server` where the user may step down to it, and never able to write. */
import { createClient, type Sql, watch } from './connect.ts';
import { createLine, type Line } from './connection-watchdog.ts';
import { explainDatabaseError, StoreError } from './store-error.ts';

const ROLE = 'chandler_server';

/** Whatever is answered is answered in milliseconds; what takes longer is a fault, and must not pile up. */
const STATEMENT_TIMEOUT_MS = 10_000;

/** One statement counts for all callers at once, so few are enough. */
const COUNTING_CONNECTIONS = 2;

export type Reader = {
  readonly sql: Sql;
  /** A few connections beside: to look up keys and to count what is asked, the only thing that the role may write. */
  readonly counting: Sql;
  /** False: there is no such role, or this user is no member of it; the connections cannot write all the same. */
  readonly hasRole: boolean;
  readonly line: Line;
  close(): Promise<void>;
};

/** `setting` is where the address was given. @throws StoreError, which names it, when nobody answers there */
export async function openReader({
  url,
  setting = 'DATABASE_URL',
  max = 8,
  line: given,
}: {
  readonly url: string;
  readonly setting?: string;
  readonly max?: number;
  /** Of the database that is open there already; without it, it is looked after by itself. */
  readonly line?: Line | undefined;
}): Promise<Reader> {
  const hasRole = await mayStepDown(url).catch((error: unknown) => {
    throw error instanceof StoreError ? error.of(setting) : error;
  });
  const settings = {
    statement_timeout: String(STATEMENT_TIMEOUT_MS),
    idle_in_transaction_session_timeout: String(STATEMENT_TIMEOUT_MS),
    // Statements of microseconds: what compiling them costs is never earned.
    jit: 'off',
    ...(hasRole ? { role: ROLE } : {}),
  };
  const applicationName = 'chandler serve';
  const line = given ?? createLine();
  const sql = createClient({
    url,
    max,
    applicationName,
    line,
    settings: { ...settings, default_transaction_read_only: 'on' },
  });
  const counting = createClient({ url, max: COUNTING_CONNECTIONS, applicationName, settings, line });
  const stopWatching = given === undefined ? watch({ url, applicationName, line }) : async () => undefined;
  const close = async () => {
    await Promise.all([stopWatching(), sql.end({ timeout: 5 }), counting.end({ timeout: 5 })]);
  };
  return { sql, counting, hasRole, line, close };
}

async function mayStepDown(url: string): Promise<boolean> {
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
