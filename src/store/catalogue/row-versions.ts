/** Rows that are valid from when upstream first says so until it says something else: what changes begins a new row. */
import type { Instant } from '../../clock.ts';
import { writeArray } from '../connection/array-types.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { storableJson } from '../connection/storable-text.ts';
import { lastOfEach, type Row } from './soft-deleted-list.ts';

export type VersionedTable = {
  /** In `market`. */
  readonly table: string;
  readonly keys: readonly string[];
  readonly values: readonly string[];
};

export type Versions = {
  readonly rows: readonly Row[];
  readonly at: Instant;
  /** The rows are all there is of these values of this column: what they leave out has ended. Null: they are some rows among others. */
  readonly whole: { readonly column: string; readonly values: readonly string[] } | null;
  /** Of two sources that may disagree the lesser: it begins rows that nobody has told of before, and ends none. */
  readonly isHint?: boolean;
};

export async function writeVersions(
  sql: SqlOrTransaction,
  { table, keys, values }: VersionedTable,
  { rows, at, whole, isHint = false }: Versions,
): Promise<void> {
  const given = storableJson(lastOfEach(rows, keys));
  const columns = [...keys, ...values];
  const row = (alias: string, names: readonly string[]) => `row(${names.map((name) => `${alias}.${name}`).join(', ')})`;
  const same = (names: readonly string[]) => `${row('g', names)} is not distinct from ${row('t', names)}`;
  const from = `json_populate_recordset(null::market.${table}, $1::text::json) g`;
  await withFreshPlans(sql, async (tx) => {
    if (!isHint) {
      const isOver =
        whole === null
          ? `exists (select from ${from} where ${same(keys)} and not ${same(columns)})`
          : `t.${whole.column} = any($3::text[]) and not exists (select from ${from} where ${same(columns)})`;
      await tx.unsafe(
        `update market.${table} t set valid_to = $2::timestamptz
         where t.valid_to is null and t.valid_from <= $2::timestamptz and ${isOver}`,
        whole === null ? [given, at] : [given, at, writeArray(whole.values)],
      );
    }
    await tx.unsafe(
      `insert into market.${table} (${columns.join(', ')}, valid_from)
       select ${columns.map((name) => `g.${name}`).join(', ')}, $2::timestamptz from ${from}
       where not exists (select from market.${table} t where ${isHint ? same(keys) : `t.valid_to is null and ${same(columns)}`})
       on conflict (${keys.join(', ')}, valid_from) do update
       set ${[...values.map((name) => `${name} = excluded.${name}`), 'valid_to = null'].join(', ')}`,
      [given, at],
    );
  });
}
