/**
 * Runs SQL statements one after the other, and prints their results as tables, as JSON, or as the text of a copy. It reads rows no faster
 * than it writes them, so a result of any size takes little memory.
 */
import type pg from 'pg';
import type { QueryResult } from 'pg';
import Cursor from 'pg-cursor';
import { formatCount, formatCounted, formatPostgresError } from '../../core/format.ts';
import { createClient } from '../../store/connection/connect.ts';
import { copyOf, openPgClient } from '../../store/connection/pg-client.ts';
import { explainDatabaseError } from '../../store/connection/store-error.ts';
import { NUMBER_TYPES, toJsonValue } from '../../views/sql/column-json.ts';
import { formatTable } from '../output/table.ts';
import { CommandFailed } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { copyDirection, kindOf, type StatementKind } from './sql-kind.ts';
import { describePosition, splitStatements } from './sql-statements.ts';
import { noteUnknownCoins } from './unknown-coins.ts';

type SqlRun = {
  readonly url: string;
  readonly text: string;
  readonly json: boolean;
  readonly signal: AbortSignal;
  /** Called before the first statement that changes something or, if only its end shows that, before its commit. Called again for later ones. */
  readonly onChange?: () => Promise<void>;
  /** Receives the reason why a statement found nothing, if it can be determined. */
  readonly onNote?: (note: string) => void;
};

const MOST_TABLE_ROWS = 10_000;
/** Number of rows that are read at once. */
const BATCH_ROWS = 1_000;

/**
 * When `signal` is aborted, the server cancels the running statement, too.
 * @throws CommandFailed with the position of the error at the first statement that fails; the earlier ones are done. Rejects with the
 * reason of `signal` when it is aborted.
 */
export async function runSql(
  out: Output,
  { url, text, json, signal, onChange = async () => undefined, onNote = () => undefined }: SqlRun,
): Promise<void> {
  const client = await openPgClient({ url, applicationName: 'chandler sql' }).catch((error: unknown) => {
    throw explainDatabaseError(error, url) ?? error;
  });
  let cancelled: Promise<void> | undefined;
  let isOver = false;
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const cancel = () => {
      cancelled ??= cancelSession(url, rows[0]!.pid, () => isOver);
    };
    signal.addEventListener('abort', cancel, { once: true });
    const watching = watchingChanges(client, onChange);
    for (const { text: statement, offset } of splitStatements(text)) {
      if (out.isClosed()) return;
      signal.throwIfAborted();
      const copies = copyDirection(statement);
      if (copies === 'in')
        throw new CommandFailed(
          'copy from stdin needs psql: open it with chandler sql, or connect it to the address of chandler db url',
        );
      const run = (onRow: OnRow) => runStatement(client, statement, { out, cancel, onRow });
      try {
        await watching(kindOf(statement), () => {
          if (copies === 'out') return printCopy(out, client, statement, cancel);
          return (json ? printAsJson : printAsTable)(out, run);
        });
        for (const note of await noteUnknownCoins(url, statement)) onNote(note);
      } catch (error) {
        signal.throwIfAborted();
        throw explainSqlError(error, text, offset, url);
      }
    }
    signal.removeEventListener('abort', cancel);
  } finally {
    isOver = true;
    await cancelled;
    await client.end().catch(() => undefined);
  }
}

/**
 * Runs a statement, and calls `onChange` if it changes something. For one that only seems to read, Postgres knows this at the end of its
 * transaction, so a statement outside a transaction gets its own.
 */
function watchingChanges(client: pg.Client, onChange: () => Promise<void>) {
  let isInTransaction = false;
  return async (kind: StatementKind, run: () => Promise<void>): Promise<void> => {
    if (kind === 'changes') await onChange();
    const isOwn = kind === 'reads' && !isInTransaction;
    if (isOwn) await client.query('begin');
    await run();
    if (kind === 'begins') isInTransaction = true;
    if (kind === 'ends') isInTransaction = false;
    if (kind === 'reads' && (await hasChanged(client))) await onChange();
    if (isOwn) await client.query('commit');
  };
}

async function hasChanged(client: pg.Client): Promise<boolean> {
  try {
    const { rows } = await client.query<{ is: boolean }>(
      'select pg_catalog.pg_current_xact_id_if_assigned() is not null as is',
    );
    return rows[0]!.is;
  } catch (error) {
    // The reader has gone, and the statement was cancelled: its transaction has failed and changes nothing.
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

/** Returns each value as the text that Postgres sends. */
const AS_TEXT = { getTypeParser: () => (value: string) => value } as unknown as pg.CustomTypesConfig;

/** Passes each row to `onRow`, as texts, no faster than the reader of `out` takes them. Resolves to the columns and the name of the command. */
async function runStatement(
  client: pg.Client,
  statement: string,
  { out, cancel, onRow }: { readonly out: Output; readonly cancel: () => void; readonly onRow: OnRow },
): ReturnType<Run> {
  const cursor = client.query(new TaggedCursor(statement, [], { rowMode: 'array', types: AS_TEXT }));
  for (;;) {
    const { rows, result } = await readRows(cursor);
    const columns = columnsOf(result);
    for (const row of rows) onRow(row, columns);
    if (out.isClosed()) {
      cancel();
      // The reader has gone, so the error of the cancelled statement does not matter.
      await cursor.close().catch(() => undefined);
      return { columns: [], command: '', count: null };
    }
    if (rows.length < BATCH_ROWS) {
      const [, command = '', count] = /^(\D*?)(?: \d+)*?(?: (\d+))?$/.exec(cursor.tag) ?? [];
      return { columns, command, count: count === undefined ? null : Number(count) };
    }
    await out.drained();
  }
}

/** Stores the whole command tag (`CREATE TABLE`). The library keeps only its first word. */
class TaggedCursor extends Cursor<Row> {
  tag = '';

  handleCommandComplete(message: { readonly text: string }): void {
    this.tag = message.text;
    const { handleCommandComplete } = Cursor.prototype as unknown as TaggedCursor;
    handleCommandComplete.call(this, message);
  }
}

function readRows(cursor: Cursor<Row>): Promise<{ readonly rows: Row[]; readonly result: QueryResult }> {
  return new Promise((resolve, reject) =>
    cursor.read(BATCH_ROWS, (error, rows, result) => (error ? reject(error) : resolve({ rows, result }))),
  );
}

function columnsOf({ fields }: QueryResult): readonly Column[] {
  return fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }));
}

/** Writes the bytes of the copy as they arrive: text, CSV or binary. */
async function printCopy(out: Output, client: pg.Client, statement: string, cancel: () => void): Promise<void> {
  let isCancelled = false;
  try {
    for await (const part of copyOf(client, statement)) {
      if (out.isClosed()) {
        // Reads and drops the rest, until the statement has ended on the server.
        if (!isCancelled) cancel();
        isCancelled = true;
      } else if (!out.stream.write(part)) await out.drained();
    }
  } catch (error) {
    if (!isCancelled) throw error;
  }
}

/**
 * Cancels the session's statement from a separate connection, repeatedly until `isOver`: between two messages of the driver there is no
 * running statement to cancel.
 */
async function cancelSession(url: string, pid: number, isOver: () => boolean): Promise<void> {
  const sql = createClient({ url, max: 1, applicationName: 'chandler sql' });
  try {
    while (!isOver()) await sql`select pg_cancel_backend(${pid}), pg_sleep(0.05)`;
  } catch {
    // When the server cannot be reached, the statement fails anyway.
  } finally {
    await sql.end({ timeout: 1 });
  }
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

/** `sum`, `sum_2`: the names in an object must be unique. */
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
  const { code, position, hint, detail, message } = error as pg.DatabaseError;
  const isStatement =
    typeof code === 'string' && /^(0A|2[12]|2B|2F|34|3F|40|42|44|P0|57014|25)/.test(code) && code !== '25006';
  if (!isStatement) return explainDatabaseError(error, url) ?? error;
  const where = position ? ` (${describePosition(text, offset, Number(position))})` : '';
  return new CommandFailed(formatPostgresError(`${message}${where}`, { detail, hint }));
}
