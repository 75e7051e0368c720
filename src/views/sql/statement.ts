/**
 * Runs a read-only SQL statement of an untrusted caller. The role alone is no protection: `set_config` can leave a role, and `query_to_xml` can
 * then run another statement. So the server first parses the statement as the definition of a temporary view. It refuses the statement if it calls
 * any function that may do more than compute.
 */
import type postgres from 'postgres';
import { systemClock } from '../../clock.ts';
import { type SqlAnswer, StatementError, type WarehouseTools } from '../../contract/interface/warehouse-tools.ts';
import { withDeadline } from '../../core/concurrency/unless-aborted.ts';
import { formatPostgresError } from '../../core/format.ts';
import { createClient, type Sql, type SqlOrTransaction } from '../../store/connection/connect.ts';
import type { Watchdog } from '../../store/connection/connection-watchdog.ts';
import { StoreError } from '../../store/connection/store-error.ts';
import { toJsonValue } from './column-json.ts';
import { createTurns, type Turn } from './statement-turns.ts';

type StatementRunnerOptions = {
  readonly url: string;
  /** Default 5 s. A statement also waits at most this long for its turn. */
  readonly timeoutMs?: number;
  /** Concurrent statements, each on its own connection. Default 2. */
  readonly connections?: number;
  /** Statements that may wait for a connection. Default 8. */
  readonly waiting?: number;
  readonly watchdog?: Watchdog;
  /** Called when a statement does not end at its deadline, with the server process that computes it. */
  readonly onEndless?: (pid: number) => void;
};

export type StatementRunner = {
  /** @throws StatementError whose message is for the author of the statement */
  readonly run: NonNullable<WarehouseTools['runSql']>;
  close(): Promise<void>;
};

/** Limit for all rows of an answer together, as JSON text. */
const MAX_ANSWER_BYTES = 4 * 1_024 * 1_024;
const LOCK_TIMEOUT_MS = 1_000;
/** Limit for one statement, if the database user may set it: its sorting must not fill the disk. */
const TEMP_FILES = '1GB';
/** The server cancels a statement at its timeout. A statement that has not ended this long afterwards cannot be cancelled. */
const GRACE_MS = 500;
const LATE = new Error('the statement did not end');

export function createStatementRunner(options: StatementRunnerOptions): StatementRunner {
  const { url, timeoutMs = 5_000, connections = 2, waiting = 8, watchdog, onEndless = () => undefined } = options;
  const connect = () =>
    createClient({ url, max: 1, applicationName: 'chandler sql tool', watchdog, columns: 'as named', prepare: false });
  const places = Array.from({ length: connections }, (): Place => ({ sql: connect(), backend: null }));
  const takeTurn = createTurns(places, { waiting, waitMs: timeoutMs });
  const control = connect();
  const stop = new AbortController();

  /** The caller has its answer already. The place becomes free only when the server process is gone, so that such processes cannot pile up. */
  const endBackend = async ({ place, end }: Turn<Place>, backend: Backend): Promise<void> => {
    onEndless(backend.pid);
    while (!stop.signal.aborted && !(await isEnded(control, backend).catch(() => false))) {
      await systemClock.sleep(ENDING_MS, stop.signal).catch(() => undefined);
    }
    Object.assign(place, { sql: connect(), backend: null });
    end();
  };

  return {
    async run({ caller, statement, limit }) {
      if (statement.includes('\0')) throw new StatementError('the statement must not contain the character 0');
      const turn = await takeTurn(caller);
      const { place } = turn;
      place.backend = null;
      const answering = answer(place, { statement, limit, timeoutMs });
      try {
        const answered = await withDeadline(systemClock, { ms: timeoutMs + GRACE_MS, late: LATE }, () => answering);
        turn.end();
        return answered;
      } catch (error) {
        if (error !== LATE) {
          turn.end();
          throw error;
        }
        answering.catch(() => undefined);
        const { sql, backend } = place;
        await sql.end({ timeout: 0 });
        if (backend !== null) {
          void endBackend(turn, backend);
          throw tooLong(timeoutMs);
        }
        // There was no connection yet, which is not the statement's fault.
        place.sql = connect();
        turn.end();
        return answering;
      }
    },
    async close() {
      stop.abort();
      await Promise.all([...places.map(({ sql }) => sql.end({ timeout: 5 })), control.end({ timeout: 5 })]);
    },
  };
}

/** A connection, and the server process that works for it; null until it is known. */
type Place = { sql: Sql; backend: Backend | null };
type Backend = { readonly pid: number; readonly startedAt: string };

/** The interval between two checks whether the server process has ended. */
const ENDING_MS = 1_000;

/** Tells the server process to end. It ends at its next check for interrupts. */
async function isEnded(sql: Sql, { pid, startedAt }: Backend): Promise<boolean> {
  const left = await sql`
    select pg_terminate_backend(pid) from pg_stat_activity where pid = ${pid} and backend_start::text = ${startedAt}`;
  return left.length === 0;
}

type Question = { readonly statement: string; readonly limit: number; readonly timeoutMs: number };

async function answer(place: Place, { statement, limit, timeoutMs }: Question): Promise<SqlAnswer> {
  let isBegun = false;
  const answering = place.sql.begin('read write', async (tx) => {
    isBegun = true;
    place.backend = await enterRole(tx, timeoutMs);
    try {
      const columns = await columnsOf(tx, statement);
      return await read(tx, statement, columns, limit);
    } catch (error) {
      throw explain(error, timeoutMs);
    }
  });
  try {
    return (await answering) as SqlAnswer;
  } catch (error) {
    if (isBegun || (error as { readonly code?: unknown }).code !== NOT_IN_RECOVERY) throw error;
    throw new StatementError(ON_STANDBY);
  }
}

/** SQLSTATE `feature_not_supported`: the error of a server in recovery for a transaction that may write. */
const NOT_IN_RECOVERY = '0A000';
/** A standby cannot create the view as which the statement is parsed. */
const ON_STANDBY =
  'SQL is not possible here: this database is a standby, and a statement can only be checked on its primary';

type Column = { readonly name: string; readonly type: number; readonly category: string };

/** Sets the role and the limits of an untrusted caller. These settings end with the transaction. */
async function enterRole(tx: SqlOrTransaction, timeoutMs: number): Promise<Backend> {
  try {
    const [backend] = await tx<Backend[]>`
      select pid, backend_start::text as "startedAt" from pg_stat_activity where pid = pg_backend_pid()`;
    await tx`
      select set_config('temp_file_limit', ${TEMP_FILES}, true) where has_parameter_privilege('temp_file_limit', 'set')`;
    await tx`
      select set_config('role', 'chandler_sql', true), set_config('search_path', 'market', true),
        set_config('statement_timeout', ${String(timeoutMs)}, true), set_config('lock_timeout', ${String(LOCK_TIMEOUT_MS)}, true),
        set_config('max_parallel_workers_per_gather', '0', true)`;
    return backend!;
  } catch (error) {
    if (!NO_ROLE.has((error as { readonly code?: string }).code ?? '')) throw error;
    throw new StoreError(
      'this user of the database cannot become the role chandler_sql',
      'run chandler migrate as an administrator, or grant chandler_sql to it',
      error,
    );
  }
}

/** The role does not exist (an invalid value of a setting), or the user is not a member of it. */
const NO_ROLE: ReadonlySet<string> = new Set(['22023', '42501', '42704']);

const VIEW = 'pg_temp.statement_of_a_stranger';

/**
 * The columns of the statement. The statement is not run: the server parses it, first alone for the names of its columns, and then as the
 * definition of a view, which must be one reading statement without parameters. Then the view is dropped. The view has its own names for the
 * columns, because two columns of a statement may have the same name.
 * @throws StatementError when it calls a forbidden function
 */
async function columnsOf(tx: SqlOrTransaction, statement: string): Promise<Column[]> {
  await tx`savepoint before_view`;
  const { columns: described } = await tx.unsafe(statement).describe();
  await one(tx, `create temporary view ${VIEW} ${aliasesOf(described.length)} as ${statement}`);
  const forbidden = await one<{ name: string }>(tx, FORBIDDEN_FUNCTIONS);
  const types = await one<Omit<Column, 'name'>>(tx, COLUMN_TYPES);
  await tx`rollback to savepoint before_view`;
  if (forbidden.length > 0) {
    throw new StatementError(`the function ${forbidden.map(({ name }) => name).join(', ')} may not be called here`);
  }
  return types.map((type, i) => ({ name: described[i]!.name, ...type }));
}

/** `(c1, c2, …)`; empty for a statement without columns. */
function aliasesOf(count: number): string {
  return count === 0 ? '' : `(${Array.from({ length: count }, (_, i) => `c${i + 1}`).join(', ')})`;
}

/** Volatile functions that are allowed, because they only compute. */
const HARMLESS = ['random', 'random_normal', 'clock_timestamp', 'timeofday', 'gen_random_uuid', 'uuidv4', 'uuidv7'];

/**
 * The forbidden functions in the parse tree, called directly or through an operator. Allowed are functions of the server and of `market`
 * that are not volatile: that excludes `set_config`, `pg_sleep`, `query_to_xml`, `nextval`, `lo_import`, `dblink`, advisory locks, signals
 * and files.
 */
const FORBIDDEN_FUNCTIONS = `
  with tree as (select ev_action::text as nodes from pg_rewrite where ev_class = '${VIEW}'::regclass),
  called as (
    select found[1]::oid as id
    from tree, regexp_matches(nodes, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\\d+)', 'g') as found
    union
    select o.oprcode::oid
    from tree, regexp_matches(nodes, ':opno (\\d+)', 'g') as found join pg_operator o on o.oid = found[1]::oid
  )
  select distinct p.proname as name
  from called
  join pg_proc p on p.oid = called.id
  join pg_namespace n on n.oid = p.pronamespace
  where n.nspname not in ('pg_catalog', 'market')
    or p.prosecdef
    or (p.provolatile = 'v' and not (n.nspname = 'pg_catalog' and p.proname in (${HARMLESS.map((name) => `'${name}'`).join(', ')})))
  order by 1`;

const COLUMN_TYPES = `
  select a.atttypid::int8 as type, t.typcategory as category
  from pg_attribute a join pg_type t on t.oid = a.atttypid
  where a.attrelid = '${VIEW}'::regclass and a.attnum > 0
  order by a.attnum`;

/** Makes the transaction read-only and runs the statement. It was parsed alone and whole, so it cannot break out of the parentheses. */
async function read(
  tx: SqlOrTransaction,
  statement: string,
  columns: readonly Column[],
  limit: number,
): Promise<SqlAnswer> {
  await tx`set transaction read only`;
  const values = columns.map(({ category }, i) => {
    const value = `q.c${i + 1}`;
    // Arrays and records are read as JSON, whatever their elements are.
    return category === 'A' || category === 'C' ? `to_json(${value})::text` : `${value}::text`;
  });
  const source = `(${withoutSemicolon(statement)}\n) as q ${aliasesOf(columns.length)}`;
  // The values are in an array, because a function has at most a hundred arguments.
  const answer = await one<{ line: string | null }>(
    tx,
    `select case when sum(octet_length(line)) over (rows unbounded preceding) <= ${MAX_ANSWER_BYTES} then line end as line
     from (select to_json(array[${values.join(', ')}]::text[])::text as line from ${source} limit ${limit + 1}) as lines`,
  );
  const rows: unknown[][] = [];
  for (const { line } of answer.slice(0, limit)) {
    if (line === null) break;
    const texts = JSON.parse(line) as (string | null)[];
    rows.push(texts.map((text, i) => cellOf(text, columns[i]!)));
  }
  return { columns: columns.map(({ name }) => name), rows, truncated: answer.length > rows.length };
}

/** Runs exactly one statement: the extended protocol refuses a second one. */
async function one<T extends object = Record<string, never>>(tx: SqlOrTransaction, text: string): Promise<T[]> {
  return [...(await tx.unsafe<T[]>(text, [], { simple: false } as postgres.UnsafeQueryOptions))];
}

function withoutSemicolon(statement: string): string {
  return statement.replace(/[;\s]+$/, '');
}

/** Arrays and records were read as JSON. */
function cellOf(text: string | null, { type, category }: Column): unknown {
  if (text !== null && (category === 'A' || category === 'C')) return JSON.parse(text);
  return toJsonValue(text, type, { isExact: true });
}

function tooLong(timeoutMs: number): StatementError {
  return new StatementError(`the statement took longer than ${timeoutMs / 1000} s`);
}

/** Error classes that are about the statement, and not about the server or the connection. */
const ABOUT_THE_STATEMENT = /^(0A|0Z|2|3[4-9B-F]|4|53[24]|54|55|57014|P0)/;

function explain(error: unknown, timeoutMs: number): unknown {
  const { code, message, hint, detail } = error as postgres.PostgresError;
  if (error instanceof StatementError || typeof code !== 'string' || !ABOUT_THE_STATEMENT.test(code)) return error;
  if (code === '57014') return tooLong(timeoutMs);
  if (code === '55P03') return new StatementError('the statement had to wait for a lock for too long');
  return new StatementError(formatPostgresError(message, { detail, hint }));
}
