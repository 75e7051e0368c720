/** Runs SQL statements one after the other and prints what they answer, as tables or as JSON. */
import type postgres from 'postgres';
import { createClient, type Sql } from '../../store/connection/connect.ts';
import { explainDatabaseError } from '../../store/connection/store-error.ts';
import { formatCount, formatCounted } from '../output/format.ts';
import { formatTable } from '../output/table.ts';
import { CommandFailed } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { describePosition, type Statement, splitStatements } from './sql-statements.ts';

export type SqlRun = {
  readonly url: string;
  readonly text: string;
  readonly json: boolean;
  readonly signal: AbortSignal;
};

const MOST_TABLE_ROWS = 10_000;

/**
 * When `signal` is aborted the statement under way is cancelled on the server too.
 * @throws CommandFailed in one sentence, with the position, at the first statement that fails; those before it are done. The
 * reason of `signal` when it is aborted.
 */
export async function runSql(out: Output, { url, text, json, signal }: SqlRun): Promise<void> {
  const sql = createClient({ url, max: 1, applicationName: 'chandler sql', columns: 'as named' });
  try {
    const [session] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    const cancel = () => cancelSession(url, session!.pid);
    for (const statement of splitStatements(text)) {
      if (out.isClosed()) return;
      signal.throwIfAborted();
      if (/^copy\b.*\b(stdin|stdout)\b/is.test(statement.text)) {
        throw new CommandFailed(
          'copy from stdin and copy to stdout need psql; without it, write a select and use --json',
        );
      }
      try {
        const run = (onRow: OnRow) => runStatement(out, sql, statement, { signal, cancel, onRow });
        await (json ? printAsJson : printAsTable)(out, run);
      } catch (error) {
        signal.throwIfAborted();
        throw explainSqlError(error, text, statement.offset, url);
      }
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
}

type Column = { readonly name: string; readonly type: number };
type Row = readonly (string | null)[];

type OnRow = (row: Row, columns: readonly Column[]) => void;
type Run = (onRow: OnRow) => Promise<{
  readonly columns: readonly Column[];
  readonly command: string;
  readonly count: number | null;
}>;

/** Rows as Postgres writes them, given to `onRow` as they come; resolves to the columns and the command's name. */
async function runStatement(
  out: Output,
  sql: Sql,
  statement: Statement,
  { signal, cancel, onRow }: { readonly signal: AbortSignal; readonly cancel: () => void; readonly onRow: OnRow },
): ReturnType<Run> {
  const query = sql.unsafe(statement.text).simple().raw();
  signal.addEventListener('abort', cancel, { once: true });
  let stopped = false;
  try {
    const result = await query.forEach((row, answer) => {
      if (stopped) return;
      if (out.isClosed()) {
        stopped = true;
        cancel();
        return;
      }
      const values = (row as unknown as (Buffer | null)[]).map((value) =>
        value === null ? null : value.toString('utf8'),
      );
      onRow(values, columnsOf(answer));
    });
    return { columns: columnsOf(result), command: result.command ?? '', count: result.count as number | null };
  } catch (error) {
    // We cancelled it ourselves: nobody reads what it would have said.
    if (stopped) return { columns: [], command: '', count: null };
    throw error;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** From a connection of its own. Not the library's way: that one opens a connection without TLS. */
function cancelSession(url: string, pid: number): void {
  const sql = createClient({ url, max: 1, applicationName: 'chandler sql' });
  // When the server cannot be reached there is nothing to cancel, and the statement fails by itself.
  sql`select pg_cancel_backend(${pid})`.catch(() => undefined).finally(() => sql.end({ timeout: 1 }));
}

/** The library fills `columns` when the statement ends, `statement.columns` when the rows begin. */
function columnsOf(answer: unknown): readonly Column[] {
  const { columns, statement } = answer as { columns?: Column[] | null; statement?: { columns?: Column[] } | null };
  return columns ?? statement?.columns ?? [];
}

async function printAsTable(out: Output, run: Run): Promise<void> {
  const rows: string[][] = [];
  let total = 0;
  const { columns, command, count } = await run((row) => {
    total++;
    if (total <= MOST_TABLE_ROWS) rows.push(row.map((value) => value ?? ''));
  });
  if (columns.length === 0) {
    if (command !== '') out.write(`${command}${count === null ? '' : ` ${formatCount(count)}`}\n`);
    return;
  }
  const titles = columns.map(({ name, type }) => ({
    title: name,
    align: NUMBERS.has(type) ? ('right' as const) : ('left' as const),
  }));
  out.write(formatTable(titles, rows, out.columns()));
  const hidden = total - rows.length;
  const rest = hidden > 0 ? `; ${formatCount(hidden)} more are not shown: --json prints them all` : '';
  out.write(`(${formatCounted(total, 'row')}${rest})\n`);
}

/** One array a statement, one row a line, as they come. A statement without an answer prints its name and count. */
async function printAsJson(out: Output, run: Run): Promise<void> {
  let total = 0;
  let names: string[] | undefined;
  const { columns, command, count } = await run((row, columns) => {
    names ??= uniqueNames(columns);
    const named = columns.map((column, i) => [names![i], toJsonValue(row[i]!, column.type)]);
    out.write(`${total++ === 0 ? '[' : ',\n'}${JSON.stringify(Object.fromEntries(named))}`);
  });
  if (columns.length === 0) out.write(`${JSON.stringify({ command, count })}\n`);
  else out.write(total === 0 ? '[]\n' : ']\n');
}

/** `sum`, `sum_2`: an object has each name once. */
function uniqueNames(columns: readonly Column[]): string[] {
  const taken = new Set<string>();
  return columns.map(({ name }) => {
    let unique = name;
    for (let n = 2; taken.has(unique); n++) unique = `${name}_${n}`;
    taken.add(unique);
    return unique;
  });
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
  numeric: 1700,
  jsonb: 3802,
};
const NUMBERS = new Set([TYPE.int8, TYPE.int2, TYPE.int4, TYPE.oid, TYPE.float4, TYPE.float8, TYPE.numeric]);

function toJsonValue(text: string | null, type: number): unknown {
  if (text === null) return null;
  if (type === TYPE.bool) return text === 't';
  if (type === TYPE.json || type === TYPE.jsonb) return JSON.parse(text);
  if (type === TYPE.timestamptz) return text.replace(/^(\S+) (\S+)\+00$/, '$1T$2Z');
  if (!NUMBERS.has(type)) return text;
  const value = Number(text);
  // What JSON's numbers cannot hold stays text: NaN, infinities, whole numbers past 2^53.
  return Number.isFinite(value) && (Number.isSafeInteger(value) || !/^-?\d+$/.test(text)) ? value : text;
}

function explainSqlError(error: unknown, text: string, offset: number, url: string): unknown {
  const { code, position, hint, detail, message } = error as postgres.PostgresError;
  const isStatement =
    typeof code === 'string' && /^(0A|2[12]|2B|2F|34|3F|40|42|44|P0|57014|25)/.test(code) && code !== '25006';
  if (!isStatement) return explainDatabaseError(error, url) ?? error;
  const where = position ? ` (${describePosition(text, offset, Number(position))})` : '';
  const more = [detail, hint].filter(Boolean).map((part) => `; ${part}`);
  return new CommandFailed(`${message}${where}${more.join('')}`);
}
