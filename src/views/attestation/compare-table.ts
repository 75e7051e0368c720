/** Compares the tables other than candles with an attestation. */
import type { Instant } from '../../clock.ts';
import { formatCounted } from '../../core/format.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type Finding, finding } from './finding.ts';
import { digestRows, TABLES, type TableDigest } from './tables.ts';

/** A line of the file, where instants are texts. */
export type TableFact = Omit<TableDigest, 'before'> & { readonly before?: string };

/** `keptSince`: the earliest time of rows in a history, by the settings of retention. */
export async function compareTable(
  sql: Sql,
  fact: TableFact,
  keptSince: (table: (typeof TABLES)[number]) => Instant,
): Promise<Finding> {
  const { table: name, month, before, rows, sha256 } = fact;
  const table = TABLES.find((one) => one.name === name);
  if (table === undefined)
    return finding(name, month ?? null, 'tampered', 'this version of Chandler does not know this table');
  if (month === undefined || before === undefined) {
    const now = await digestRows(sql, table);
    if (now.sha256 === sha256) return finding(name, null, 'equal', '');
    if (table.time !== undefined && rows === 0)
      return finding(name, null, 'grown', `${formatCounted(now.rows, 'row')}; the attestation has none`);
    return finding(name, null, 'changed', `${formatCounted(now.rows, 'row')}; the attestation has ${rows}`);
  }
  const from = Date.parse(`${month}-01T00:00:00Z`);
  const now = await digestRows(sql, table, { from, before: Date.parse(before) });
  if (now.sha256 === sha256) return finding(name, month, 'equal', '');
  const detail = `${formatCounted(now.rows, 'row')} before ${before}; the attestation has ${rows}`;
  const isOld = now.rows < rows && from < keptSince(table);
  return finding(
    name,
    month,
    isOld ? 'removed' : 'tampered',
    isOld ? `${detail}; retention removes older rows` : detail,
  );
}
