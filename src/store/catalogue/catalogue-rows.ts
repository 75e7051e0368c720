/**
 * Writes rows of the catalogue; they are never deleted. The columns come from the table: its primary key identifies a row, and this file
 * sets the columns about time.
 */
import { getTableColumns } from 'drizzle-orm';
import { getTableConfig, type PgColumn, type PgTable } from 'drizzle-orm/pg-core';
import type { Instant } from '../../clock.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { writeArray } from '../values/array-types.ts';
import { writeInstant } from '../values/instant.ts';
import { storableJson } from '../values/storable-text.ts';

const ADDED = ['firstSeenAt', 'lastSeenAt', 'goneAt', 'validFrom', 'validTo'] as const;

/** A row with the upstream's values, without the columns about time. */
type UpstreamRow<T extends PgTable> = Readonly<Omit<T['$inferInsert'], (typeof ADDED)[number]>>;

export type UpstreamList<Row> = {
  readonly rows: readonly Row[];
  readonly at: Instant;
  /** True for a complete list: rows that it does not contain are gone, or no longer true. */
  readonly isWhole: boolean;
};

/**
 * Stores the rows of a list in a table with `first_seen_at`, `last_seen_at` and `gone_at`. `of` is the value of the first key column
 * that the list is about; null when the table has only one list. Of rows with the same key, the last one counts.
 */
export async function storeList<T extends PgTable>(
  sql: SqlOrTransaction,
  table: T,
  { of, rows, at, isWhole }: UpstreamList<UpstreamRow<T>> & { readonly of: string | null },
): Promise<void> {
  const { name, keys, values, given } = layOut(table, rows);
  const columns = [...keys, ...values].join(', ');
  const changes = values.map((value) => `${value} = excluded.${value}`);
  changes.push('last_seen_at = greatest(t.last_seen_at, excluded.last_seen_at)', 'gone_at = null');
  await withFreshPlans(sql, async (tx) => {
    await tx.unsafe(
      `insert into ${name} as t (${columns}, first_seen_at, last_seen_at)
       select ${columns}, $2::timestamptz, $2::timestamptz
       from json_populate_recordset(null::${name}, $1::text::json) order by ${keys.join(', ')}
       on conflict (${keys.join(', ')}) do update set ${changes.join(', ')}`,
      [given, at],
    );
    if (!isWhole) return;
    await tx.unsafe(
      `update ${name} set gone_at = $1::timestamptz
       where gone_at is null and last_seen_at < $1::timestamptz${of === null ? '' : ` and ${keys[0]} = $2`}`,
      of === null ? [at] : [at, of],
    );
  });
}

type Versions<Row> = {
  readonly rows: readonly Row[];
  readonly at: Instant;
  /** `rows` are all rows with these values in this column, so stored rows that they do not contain end. Null when they are only some rows. */
  readonly whole: { readonly column: PgColumn; readonly values: readonly string[] } | null;
  /** True for the less reliable of two sources: it only adds rows whose key has no row yet, and ends none. */
  readonly isHint?: boolean;
};

/** Stores rows in a table with `valid_from` and `valid_to`: a change ends a row and begins a new one. */
export async function writeVersions<T extends PgTable>(
  sql: SqlOrTransaction,
  table: T,
  { rows, at, whole, isHint = false }: Versions<UpstreamRow<T>>,
): Promise<void> {
  const { name, keys, values, given } = layOut(table, rows);
  const columns = [...keys, ...values];
  const row = (alias: string, names: readonly string[]) =>
    `row(${names.map((column) => `${alias}.${column}`).join(', ')})`;
  const same = (names: readonly string[]) => `${row('g', names)} is not distinct from ${row('t', names)}`;
  const from = `json_populate_recordset(null::${name}, $1::text::json) g`;
  await withFreshPlans(sql, async (tx) => {
    if (!isHint) {
      const isOver =
        whole === null
          ? `exists (select from ${from} where ${same(keys)} and not ${same(columns)})`
          : `t.${whole.column.name} = any($3::text[]) and not exists (select from ${from} where ${same(columns)})`;
      await tx.unsafe(
        `update ${name} t set valid_to = $2::timestamptz
         where t.valid_to is null and t.valid_from <= $2::timestamptz and ${isOver}`,
        whole === null ? [given, at] : [given, at, writeArray(whole.values)],
      );
    }
    await tx.unsafe(
      `insert into ${name} (${columns.join(', ')}, valid_from)
       select ${columns.map((column) => `g.${column}`).join(', ')}, $2::timestamptz from ${from}
       where not exists (select from ${name} t where ${isHint ? same(keys) : `t.valid_to is null and ${same(columns)}`})
       on conflict (${keys.join(', ')}, valid_from) do update
       set ${[...values.map((value) => `${value} = excluded.${value}`), 'valid_to = null'].join(', ')}`,
      [given, at],
    );
  });
}

/** The names of the table and its columns. `given` contains the rows as JSON; of rows with the same key, only the last. */
function layOut<T extends PgTable>(table: T, rows: readonly UpstreamRow<T>[]) {
  const { schema, name, primaryKeys } = getTableConfig(table);
  const keyNames = primaryKeys.flatMap((key) => key.columns.map((column) => column.name));
  const isKey = (column: PgColumn) => column.primary || keyNames.includes(column.name);
  const isFromUpstream = (property: string) => !(ADDED as readonly string[]).includes(property);
  const fromUpstream = Object.entries(getTableColumns(table)).filter(([property]) => isFromUpstream(property));
  const keys = fromUpstream.filter(([, column]) => isKey(column));
  const values = fromUpstream.filter(([, column]) => !isKey(column));
  const records = rows as readonly Readonly<Record<string, unknown>>[];
  const once = new Map(records.map((row) => [JSON.stringify(keys.map(([property]) => row[property])), row]));
  const given = [...once.values()].map((row) =>
    Object.fromEntries(fromUpstream.map(([property, column]) => [column.name, asJson(column, row[property])])),
  );
  return {
    name: `${schema}.${name}`,
    keys: keys.map(([, column]) => column.name),
    values: values.map(([, column]) => column.name),
    given: storableJson(given),
  };
}

function asJson(column: PgColumn, value: unknown): unknown {
  return column.getSQLType() === 'timestamp with time zone' && typeof value === 'number' ? writeInstant(value) : value;
}
