/** Runs SQL statements one after the other, and prints their results as tables or as JSON. */
import type postgres from 'postgres';
import { formatCount, formatCounted } from '../../core/format.ts';
import { createClient, type Sql } from '../../store/connection/connect.ts';
import { explainDatabaseError } from '../../store/connection/store-error.ts';
import { NUMBER_TYPES, toJsonValue } from '../../views/sql/column-json.ts';
import { formatTable } from '../output/table.ts';
import { CommandFailed } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { kindOf } from './sql-kind.ts';
import { describePosition, type Statement, splitStatements } from './sql-statements.ts';

export type SqlRun = {
  readonly url: string;
  readonly text: string;
  readonly json: boolean;
  readonly signal: AbortSignal;
  /** Called before the first statement that changes something, or when that is known, before it is committed. Called again for others. */
  readonly onChange?: () => Promise<void>;
};

const MOST_TABLE_ROWS = 10_000;

/**
 * When `signal` is aborted, the server cancels the running statement, too.
 * @throws CommandFailed with the position of the error at the first statement that fails; the earlier ones are done. Rejects with
 * the reason of `signal` when it is aborted.
 */
export async function runSql(
  out: Output,
  { url, text, json, signal, onChange = async () => undefined }: SqlRun,
): Promise<void> {
  const sql = createClient({ url, max: 1, applicationName: 'chandler sql', columns: 'as named' });
  try {
    const [session] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    const cancel = () => cancelSession(url, session!.pid);
    const watching = watchingChanges(sql, onChange);
    for (const statement of splitStatements(text)) {
      if (out.isClosed()) return;
      signal.throwIfAborted();
      if (/^copy\b.*\b(stdin|stdout)\b/is.test(statement.text)) {
        throw new CommandFailed('copy from stdin and copy to stdout need psql; without psql, use a select with --json');
      }
      try {
        const run = (onRow: OnRow) => runStatement(out, sql, statement, { signal, cancel, onRow });
        await watching(statement.text, () => (json ? printAsJson : printAsTable)(out, run));
      } catch (error) {
        signal.throwIfAborted();
        throw explainSqlError(error, text, statement.offset, url);
      }
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/**
 * Runs a statement, and calls `onChange` if it changes something. Of one that only seems to read, Postgres knows it at the end of its
 * transaction: a statement that has none of its own gets one.
 */
function watchingChanges(sql: Sql, onChange: () => Promise<void>) {
  let isInTransaction = false;
  return async (text: string, run: () => Promise<void>): Promise<void> => {
    const kind = kindOf(text);
    if (kind === 'changes') await onChange();
    const isOwn = kind === 'reads' && !isInTransaction;
    if (isOwn) await sql`begin`.simple();
    await run();
    if (kind === 'begins') isInTransaction = true;
    if (kind === 'ends') isInTransaction = false;
    if (kind === 'reads' && (await hasChanged(sql))) await onChange();
    if (isOwn) await sql`commit`.simple();
  };
}

async function hasChanged(sql: Sql): Promise<boolean> {
  try {
    const [row] = await sql<{ is: boolean }[]>`select pg_catalog.pg_current_xact_id_if_assigned() is not null as is`;
    return row!.is;
  } catch (error) {
    // The reader has gone, and the statement was cancelled: its transaction has failed, and changes nothing.
    if ((error as { readonly code?: string }).code === '25P02') return false;
    throw error;
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

/** Gives each row to `onRow` as it arrives, as texts; resolves to the columns and the name of the command. */
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
    // Cancelled because the reader has gone: the error is of no interest.
    if (stopped) return { columns: [], command: '', count: null };
    throw error;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** Uses a connection of its own, as the library's own cancellation opens one without TLS. */
function cancelSession(url: string, pid: number): void {
  const sql = createClient({ url, max: 1, applicationName: 'chandler sql' });
  // When the server cannot be reached, the statement fails by itself.
  sql`select pg_cancel_backend(${pid})`.catch(() => undefined).finally(() => sql.end({ timeout: 1 }));
}

/** The library sets `statement.columns` when the rows begin, and `columns` when the statement ends. */
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
    align: NUMBER_TYPES.has(type) ? ('right' as const) : ('left' as const),
  }));
  out.write(formatTable(titles, rows, out.columns()));
  const hidden = total - rows.length;
  const rest = hidden > 0 ? `; ${formatCount(hidden)} more are not shown: --json prints all` : '';
  out.write(`(${formatCounted(total, 'row')}${rest})\n`);
}

/** Prints one array per statement, with one row per line. A statement without rows prints its name and count. */
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

/** `sum`, `sum_2`: the names of an object must be unique. */
function uniqueNames(columns: readonly Column[]): string[] {
  const taken = new Set<string>();
  return columns.map(({ name }) => {
    let unique = name;
    for (let n = 2; taken.has(unique); n++) unique = `${name}_${n}`;
    taken.add(unique);
    return unique;
  });
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
