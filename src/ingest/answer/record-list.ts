/** Reads lists of records. Invalid rows are quarantined, and the others are used; a list with too many invalid rows is invalid as a whole. */
import type { z } from 'zod';
import { describeValue, readRecord } from '../../contract/record/records.ts';
import type { QuarantinedRecord } from '../../store/candle/quarantine.ts';
import { LongList } from '../../upstream/json.ts';

/** A validated answer. `rows`: the number of rows in the answer, before any was dropped. */
export type Validated<T> =
  | { readonly ok: true; readonly value: T; readonly rows: number; readonly quarantined: readonly QuarantinedRecord[] }
  | { readonly ok: false; readonly problem: string };

/** The rows of a body; null when it is no list. The rows of a long list are parsed one by one, so the caller must not keep them. */
export function rowsOf(body: unknown): Iterable<unknown> | null {
  return Array.isArray(body) || body instanceof LongList ? body : null;
}

/** Why a row is quarantined. `problem`: the reason with the value, for the message when the whole list is rejected. */
export type RowFault = { readonly reason: string; readonly problem?: string };

/**
 * Calls `read` with each row of a list. `read` keeps the row, or returns why the row is quarantined. Then `finish` builds the value from the kept
 * rows. A list with too many quarantined rows is rejected. `nameOf`: the id under which a row is quarantined.
 */
export function validateRows<T>(
  body: unknown,
  read: (row: unknown, position: number) => RowFault | null,
  finish: (counts: { readonly rows: number; readonly quarantined: number }) => T,
  nameOf: (row: unknown) => string = idOf,
): Validated<T> {
  const listed = rowsOf(body);
  if (listed === null) return { ok: false, problem: `expected an array, got ${describeValue(body)}` };
  const quarantined: QuarantinedRecord[] = [];
  let problem = '';
  let rows = 0;
  try {
    for (const row of listed) {
      const position = rows++;
      const fault = read(row, position);
      if (fault === null) continue;
      problem ||= `[${position}].${fault.problem ?? fault.reason}`;
      quarantined.push({ id: nameOf(row), reason: fault.reason, row });
    }
  } catch (error) {
    // A long list may turn out to be broken JSON while its rows are read.
    if (error instanceof SyntaxError) return { ok: false, problem: `broken JSON: ${error.message}` };
    throw error;
  }
  if (!isSound(rows, quarantined.length)) return { ok: false, problem };
  return { ok: true, value: finish({ rows, quarantined: quarantined.length }), rows, quarantined };
}

/** A list with a larger share of invalid rows is rejected. */
const MOST_BAD_SHARE = 0.1;
/** A short list may have this many invalid rows. */
const FEW = 3;

/** Is a list with so many invalid rows still valid? */
function isSound(rows: number, bad: number): boolean {
  return bad <= Math.max(FEW, rows * MOST_BAD_SHARE) && (bad < rows || rows === 0);
}

/** Reads one row by `schema`, and calls `fault`, which returns what is impossible about the record, or null. */
export function readRow<S extends z.ZodType>(
  schema: S,
  row: unknown,
  fault: (record: z.output<S>) => string | null,
): { readonly ok: true; readonly value: z.output<S> } | ({ readonly ok: false } & RowFault) {
  const read = readRecord(schema, row);
  if (!read.ok) return { ok: false, reason: withoutValue(read.problem), problem: read.problem };
  const reason = fault(read.value);
  return reason === null ? read : { ok: false, reason };
}

/** Reads the valid rows of a list as `toFacts` converts them. If an id occurs twice, the last row counts. */
export function validateList<S extends z.ZodType<{ readonly id: string }>, T>(
  schema: S,
  body: unknown,
  fault: (record: z.output<S>) => string | null,
  toFacts: (record: z.output<S>, row: Readonly<Record<string, unknown>>, position: number) => T,
): Validated<readonly T[]> {
  const facts = new Map<string, T>();
  return validateRows(
    body,
    (row, position) => {
      const read = readRow(schema, row, (record) => (isId(record.id) ? fault(record) : NO_ID));
      if (!read.ok) return read;
      facts.set(read.value.id, toFacts(read.value, row as Readonly<Record<string, unknown>>, position));
      return null;
    },
    () => [...facts.values()],
  );
}

/** The upstream rounds the instants of its data up to the minute (upstream-api.md, 1.1 no 6). */
export const ROUNDED_MS = 60_000;

export const NO_ID = 'id: expected the id of something';

/** A problem that `readRecord` found, without the value: values with the same fault give the same text. */
export function withoutValue(problem: string): string {
  return problem.replace(/, got .*$/s, '');
}

/** Printable, and at most 200 characters. */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= 200 && !/[\p{Cc}\p{Cs}]/u.test(value);
}

/** The id of a row; empty when it has none. */
export function idOf(row: unknown): string {
  const id = typeof row === 'object' && row !== null ? (row as { readonly id?: unknown }).id : null;
  return isId(id) ? id : '';
}

/** Counts and ranks that fit into a Postgres integer. */
export function isWhole(value: number | null): boolean {
  return value === null || (Number.isInteger(value) && value >= 0 && value < 2 ** 31);
}
