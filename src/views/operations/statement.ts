/**
 * Runs a stranger's reading statement. The role `analyst` alone would not hold: whoever may call `set_config` gets out of a role, and whoever
 * may call `query_to_xml` can then run another statement. So the statement is taken apart by the server first, as the definition of a view
 * that is never kept, and refused if it calls any function that may do more than compute.
 */
import type postgres from 'postgres';
import { type SqlAnswer, StatementError } from '../../contract/interface/warehouse-tools.ts';
import { createClient, type SqlOrTransaction } from '../../store/connection/connect.ts';
import type { Line } from '../../store/connection/connection-watchdog.ts';
import { StoreError } from '../../store/connection/store-error.ts';

export type StatementRunnerOptions = {
  readonly url: string;
  /** Default 5 s. */
  readonly timeoutMs?: number;
  /** Statements at a time; as many connections. Default 2. */
  readonly connections?: number;
  /** Statements that may wait for their turn. Default 8. */
  readonly waiting?: number;
  readonly line?: Line;
};

export type StatementRunner = {
  /** @throws StatementError told to whoever wrote the statement. */
  run(question: { readonly statement: string; readonly limit: number }): Promise<SqlAnswer>;
  close(): Promise<void>;
};

/** All rows of an answer together, as JSON text. */
const MAX_ANSWER_BYTES = 4 * 1_024 * 1_024;
const LOCK_TIMEOUT_MS = 1_000;

export function createStatementRunner(options: StatementRunnerOptions): StatementRunner {
  const { url, timeoutMs = 5_000, connections = 2, waiting = 8, line } = options;
  const sql = createClient({ url, max: connections, applicationName: 'chandler sql tool', line, columns: 'as named' });
  let running = 0;
  return {
    async run({ statement, limit }) {
      if (statement.includes('\0')) throw new StatementError('the statement must not contain the character 0');
      if (running >= connections + waiting) throw new StatementError('too many statements at once: try again', 429);
      running++;
      try {
        return (await sql.begin('read write', async (tx) => {
          await enterRole(tx, timeoutMs);
          try {
            const columns = await takeApart(tx, statement);
            return await read(tx, statement, columns, limit);
          } catch (error) {
            throw explain(error, timeoutMs);
          }
        })) as SqlAnswer;
      } finally {
        running--;
      }
    },
    close: () => sql.end({ timeout: 5 }),
  };
}

type Transaction = SqlOrTransaction;
type Column = { readonly name: string; readonly type: number; readonly category: string };

/** All of it ends with the transaction. */
async function enterRole(tx: Transaction, timeoutMs: number): Promise<void> {
  try {
    await settle(tx, timeoutMs);
  } catch (error) {
    if (!NO_ROLE.has((error as { readonly code?: string }).code ?? '')) throw error;
    throw new StoreError(
      'this user of the database cannot become the role analyst',
      'run chandler migrate as an administrator, or grant analyst to it',
      error,
    );
  }
}

/** No such role (an invalid value of a setting), or no member of it. */
const NO_ROLE: ReadonlySet<string> = new Set(['22023', '42501', '42704']);

async function settle(tx: Transaction, timeoutMs: number): Promise<void> {
  await tx`
    select set_config('role', 'analyst', true), set_config('search_path', 'market', true),
      set_config('statement_timeout', ${String(timeoutMs)}, true), set_config('lock_timeout', ${String(LOCK_TIMEOUT_MS)}, true),
      set_config('max_parallel_workers_per_gather', '0', true)`;
}

const VIEW = 'pg_temp.statement_of_a_stranger';

/**
 * The columns of the statement. Nothing of it is run: the server reads it as the definition of a view, which must be one reading
 * statement without parameters, and which is gone when this returns.
 * @throws StatementError when it calls what it must not.
 */
async function takeApart(tx: Transaction, statement: string): Promise<Column[]> {
  await tx`savepoint before_view`;
  await one(tx, `create temporary view ${VIEW} as ${statement}`);
  const forbidden = await one<{ name: string }>(tx, FORBIDDEN_FUNCTIONS);
  const columns = await one<Column>(tx, COLUMNS);
  await tx`rollback to savepoint before_view`;
  if (forbidden.length > 0) {
    throw new StatementError(`the function ${forbidden.map(({ name }) => name).join(', ')} may not be called here`);
  }
  return columns;
}

/** Volatile functions that only compute. */
const HARMLESS = ['random', 'random_normal', 'clock_timestamp', 'timeofday', 'gen_random_uuid', 'uuidv4', 'uuidv7'];

/**
 * Every function in the statement's tree, by itself or behind an operator. Allowed is what the server brought with it, or `market` has,
 * and does not change anything (is not volatile): that leaves out `set_config`, `pg_sleep`, `query_to_xml`, `nextval`, `lo_import`, `dblink`,
 * advisory locks, signals and files, whoever may call them.
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

const COLUMNS = `
  select a.attname as name, a.atttypid::int8 as type, t.typcategory as category
  from pg_attribute a join pg_type t on t.oid = a.atttypid
  where a.attrelid = '${VIEW}'::regclass and a.attnum > 0
  order by a.attnum`;

/** The transaction cannot write from here on. Postgres has read the statement whole and alone, so parentheses around it hold. */
async function read(tx: Transaction, statement: string, columns: readonly Column[], limit: number): Promise<SqlAnswer> {
  await tx`set transaction read only`;
  const values = columns.map(({ name, category }) => {
    const value = `q."${name.replaceAll('"', '""')}"`;
    // Arrays and records as JSON, whatever is inside.
    return category === 'A' || category === 'C' ? `to_json(${value})::text` : `${value}::text`;
  });
  const answer = await one<{ line: string | null }>(
    tx,
    `select case when sum(octet_length(line)) over (rows unbounded preceding) <= ${MAX_ANSWER_BYTES} then line end as line
     from (select json_build_array(${values.join(', ')})::text as line from (${withoutSemicolon(statement)}\n) as q limit ${limit + 1}) as lines`,
  );
  const rows: unknown[][] = [];
  for (const { line } of answer.slice(0, limit)) {
    if (line === null) break;
    const texts = JSON.parse(line) as (string | null)[];
    rows.push(texts.map((text, i) => toJsonValue(text, columns[i]!)));
  }
  return { columns: columns.map(({ name }) => name), rows, truncated: answer.length > rows.length };
}

/** One statement: the extended protocol takes no second one. */
async function one<T extends object = Record<string, never>>(tx: Transaction, text: string): Promise<T[]> {
  return [...(await tx.unsafe<T[]>(text, [], { simple: false } as postgres.UnsafeQueryOptions))];
}

function withoutSemicolon(statement: string): string {
  return statement.replace(/[;\s]+$/, '');
}

const TYPE = {
  bool: 16,
  int8: 20,
  int2: 21,
  int4: 23,
  oid: 26,
  json: 114,
  float4: 700,
  float8: 701,
  timestamptz: 1184,
};
const NUMERIC = 1700;
const JSONB = 3802;
const NUMBERS = new Set([TYPE.int8, TYPE.int2, TYPE.int4, TYPE.oid, TYPE.float4, TYPE.float8, NUMERIC]);

function toJsonValue(text: string | null, { type, category }: Column): unknown {
  if (text === null) return null;
  if (type === TYPE.bool) return text === 'true';
  if (type === TYPE.json || type === JSONB || category === 'A' || category === 'C') return JSON.parse(text) as unknown;
  if (type === TYPE.timestamptz) return text.replace(/^(\S+) (\S+)\+00$/, '$1T$2Z');
  if (!NUMBERS.has(type)) return text;
  const value = Number(text);
  // What JSON's numbers cannot hold stays text: NaN, infinities, whole numbers past 2^53, more digits than a double has.
  const isExact = type === NUMERIC ? String(value) === text : Number.isSafeInteger(value) || !/^-?\d+$/.test(text);
  return Number.isFinite(value) && isExact ? value : text;
}

/** Classes of what Postgres says of a statement, as opposed to what befalls the server or the connection. */
const ABOUT_THE_STATEMENT = /^(0A|0Z|2|3[4-9B-F]|4|53[24]|54|55|57014|P0)/;

function explain(error: unknown, timeoutMs: number): unknown {
  const { code, message, hint, detail } = error as postgres.PostgresError;
  if (error instanceof StatementError || typeof code !== 'string' || !ABOUT_THE_STATEMENT.test(code)) return error;
  if (code === '57014') return new StatementError(`the statement took longer than ${timeoutMs / 1000} s`);
  if (code === '55P03') return new StatementError('the statement had to wait for a lock for too long');
  return new StatementError([message, detail, hint].filter(Boolean).join('; '));
}
