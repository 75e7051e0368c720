/** Rows of lists that are never deleted: each with when it was first and last listed, and since when it no longer is. */
import type { Instant } from '../../clock.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { storableJson } from '../connection/storable-text.ts';

export type ListedTable = {
  /** In `market`. */
  readonly table: string;
  /** What one list is about; null: there is only one. */
  readonly scope: string | null;
  readonly keys: readonly string[];
  readonly values: readonly string[];
};

export type Row = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/**
 * Keeps the rows of one list, by column names. With `isWhole` those that it leaves out are marked as gone. Of rows with the same
 * key the last is kept.
 */
export async function keepListed(
  sql: SqlOrTransaction,
  { table, scope, keys, values }: ListedTable,
  list: { readonly of: string | null; readonly rows: readonly Row[]; readonly at: Instant; readonly isWhole: boolean },
): Promise<void> {
  const { of, at, isWhole } = list;
  const rows = lastOfEach(list.rows, keys);
  const columns = [...keys, ...values].join(', ');
  await withFreshPlans(sql, async (tx) => {
    await tx.unsafe(
      `insert into market.${table} as t (${columns}, first_seen_at, last_seen_at)
       select ${columns}, $2::timestamptz, $2::timestamptz
       from json_populate_recordset(null::market.${table}, $1::text::json) order by ${keys.join(', ')}
       on conflict (${keys.join(', ')}) do update
       set ${[...values.map((name) => `${name} = excluded.${name}`), 'last_seen_at = greatest(t.last_seen_at, excluded.last_seen_at)', 'gone_at = null'].join(', ')}`,
      [storableJson(rows), at],
    );
    if (!isWhole) return;
    await tx.unsafe(
      `update market.${table} set gone_at = $1::timestamptz
       where gone_at is null and last_seen_at < $1::timestamptz${scope === null ? '' : ` and ${scope} = $2`}`,
      scope === null ? [at] : [at, of],
    );
  });
}

export function lastOfEach(rows: readonly Row[], keys: readonly string[]): readonly Row[] {
  return [...new Map(rows.map((row) => [JSON.stringify(keys.map((key) => row[key])), row])).values()];
}
