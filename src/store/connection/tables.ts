/**
 * Simple reads and writes of one table use drizzle's query builder, which has the names and types of `store/schema/`. Set arithmetic,
 * joins with `unnest`, and statements that run for each chunk or request stay SQL.
 */
import { and, eq, getTableColumns, isNull, type SQL } from 'drizzle-orm';
import {
  type PgColumn,
  PgDatabase,
  PgDialect,
  type PgQueryResultHKT,
  type PgTable,
  type PgUpdateSetSource,
  type PreparedQueryConfig,
} from 'drizzle-orm/pg-core';
import { PgRemoteSession, type PreparedQuery } from 'drizzle-orm/pg-proxy/session';
import type { SqlOrTransaction } from '../values/type-map.ts';

/** The result of a write that returns no rows: the number of rows written. */
interface Written extends PgQueryResultHKT {
  readonly type: { readonly count: number };
}

/** The query builder for one client or transaction. A statement runs when it is awaited. */
type Tables = PgDatabase<Written>;

const dialect = new PgDialect();
const made = new WeakMap<SqlOrTransaction, Tables>();

/** The query builder on a client, or inside one of its transactions. Errors are those of the driver, not wrapped. */
export function tables(sql: SqlOrTransaction): Tables {
  const known = made.get(sql);
  if (known !== undefined) return known;
  const database: Tables = new PgDatabase(dialect, new TableSession(sql), undefined);
  made.set(sql, database);
  return database;
}

/** The condition that each of these columns has this value. Null counts as a value. */
export function matches<T extends PgTable>(table: T, values: Partial<T['$inferSelect']>): SQL | undefined {
  const columns: Readonly<Record<string, PgColumn>> = getTableColumns(table);
  const conditions = Object.entries(values).map(([name, value]) => {
    const column = columns[name]!;
    return value === null ? isNull(column) : eq(column, value);
  });
  return and(...conditions);
}

/** Changes the rows that have these values. Resolves to their number. */
export async function updateRows<T extends PgTable>(
  sql: SqlOrTransaction,
  table: T,
  which: Partial<T['$inferSelect']>,
  changes: PgUpdateSetSource<T>,
): Promise<number> {
  const { count } = await tables(sql).update(table).set(changes).where(matches(table, which));
  return count;
}

type NoTables = Record<string, never>;

class TableSession extends PgRemoteSession<NoTables, NoTables> {
  constructor(sql: SqlOrTransaction) {
    super(
      async (statement, parameters, method) => {
        const query = sql.unsafe(statement, parameters, { prepare: true });
        return { rows: method === 'execute' ? await query : await query.values() };
      },
      dialect,
      undefined,
    );
  }

  override prepareQuery<T extends PreparedQueryConfig>(
    ...statement: Parameters<PgRemoteSession<NoTables, NoTables>['prepareQuery']>
  ): PreparedQuery<T> {
    const prepared = super.prepareQuery<T>(...statement);
    // Drizzle would wrap the driver's error, but our code looks at its `code`.
    return Object.assign(prepared, {
      queryWithCache: (_statement: string, _parameters: unknown[], run: () => Promise<unknown>) => run(),
    });
  }
}
