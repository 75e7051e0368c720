/** Reads lists of records: an invalid row is quarantined, the others are used; with too many invalid rows the whole list is invalid. */
import type { z } from 'zod';
import { describeValue, readRecord } from '../../contract/record/records.ts';
import type { SetAsideRecord } from '../../store/candle/quarantine.ts';
import { LongList } from '../../upstream/json.ts';

/** A validated answer. `rows`: as many as the answer had, before any was dropped. */
export type Validated<T> =
  | { readonly ok: true; readonly value: T; readonly rows: number; readonly setAside: readonly SetAsideRecord[] }
  | { readonly ok: false; readonly problem: string };

/** The rows of a body; null when it is no list. The rows of a long list are parsed one by one: do not keep them. */
export function rowsOf(body: unknown): Iterable<unknown> | null {
  return Array.isArray(body) || body instanceof LongList ? body : null;
}

/** The result for a body that is no list. */
export function noList(body: unknown): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem: `expected an array, got ${describeValue(body)}` };
}

/** A long list may turn out to be broken JSON while it is read. */
export function orBroken<T>(validate: () => Validated<T>): Validated<T> {
  try {
    return validate();
  } catch (error) {
    if (error instanceof SyntaxError) return { ok: false, problem: `broken JSON: ${error.message}` };
    throw error;
  }
}

/** A list with a larger share of invalid rows is invalid. */
const MOST_BAD_SHARE = 0.1;
/** So many invalid rows are accepted in a short list as well. */
const FEW = 3;

/** Is a list with so many invalid rows still valid? */
export function isSound({ rows, bad }: { readonly rows: number; readonly bad: number }): boolean {
  return bad <= Math.max(FEW, rows * MOST_BAD_SHARE) && (bad < rows || rows === 0);
}

/**
 * Reads every record by `schema` and calls `fault`, which returns what is impossible about it, or null. If an id comes twice, the last
 * record is kept.
 */
export function validateList<S extends z.ZodType<{ readonly id: string }>>(
  schema: S,
  body: unknown,
  fault: (record: z.output<S>) => string | null,
): Validated<readonly z.output<S>[]> {
  const listed = rowsOf(body);
  if (listed === null) return noList(body);
  return orBroken(() => validateRows(schema, listed, fault));
}

function validateRows<S extends z.ZodType<{ readonly id: string }>>(
  schema: S,
  listed: Iterable<unknown>,
  fault: (record: z.output<S>) => string | null,
): Validated<readonly z.output<S>[]> {
  const records = new Map<string, z.output<S>>();
  const setAside: SetAsideRecord[] = [];
  let problem = '';
  let rows = 0;
  for (const row of listed) {
    const i = rows++;
    const read = readRecord(schema, row);
    const reason = read.ok ? (isId(read.value.id) ? fault(read.value) : NO_ID) : withoutValue(read.problem);
    if (read.ok && reason === null) {
      records.set(read.value.id, read.value);
      continue;
    }
    problem ||= `[${i}].${read.ok ? reason : read.problem}`;
    setAside.push({ id: idOf(row), reason: reason!, row });
  }
  if (!isSound({ rows, bad: setAside.length })) return { ok: false, problem };
  return { ok: true, value: [...records.values()], rows, setAside };
}

/** Upstream rounds the instants of its data up to the minute (upstream-api.md, 1.1 no 6). */
export const ROUNDED_MS = 60_000;

export const NO_ID = 'id: expected the id of something';

/** A problem that `readRecord` found, without the value: the same text for every value that is wrong in the same way. */
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

/** Negative, or not finite. Null is possible: the upstream has no value. */
export function isImpossible(value: number | null): boolean {
  return value !== null && !(value >= 0 && value < Number.POSITIVE_INFINITY);
}

/** Counts and ranks that fit into a Postgres integer. */
export function isWhole(value: number | null): boolean {
  return value === null || (Number.isInteger(value) && value >= 0 && value < 2 ** 31);
}
