/** What is common to every list of records: a bad one costs itself, not the list; too many of them, and the list is none. */
import type { z } from 'zod';
import { describeValue, readRecord } from '../../contract/record/records.ts';
import type { SetAsideRecord } from '../../store/candle/quarantine.ts';
import { LongList } from '../../upstream/json.ts';

/** An answer, checked. `rows` as answered, before anything was dropped. */
export type Validated<T> =
  | { readonly ok: true; readonly value: T; readonly rows: number; readonly setAside: readonly SetAsideRecord[] }
  | { readonly ok: false; readonly problem: string };

/** The rows of a body; null when it is no list. Those of a long one are read as they are asked for: keep none of them. */
export function rowsOf(body: unknown): Iterable<unknown> | null {
  return Array.isArray(body) || body instanceof LongList ? body : null;
}

/** What is said of a body that is no list. */
export function noList(body: unknown): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem: `expected an array, got ${describeValue(body)}` };
}

/** A long list that turns out to be broken on the way is no list either. */
export function orBroken<T>(validate: () => Validated<T>): Validated<T> {
  try {
    return validate();
  } catch (error) {
    if (error instanceof SyntaxError) return { ok: false, problem: `broken JSON: ${error.message}` };
    throw error;
  }
}

/** Of a list; more bad rows than that are not a few bad rows. */
const MOST_BAD_SHARE = 0.1;
/** So many are few, however short the list. */
const FEW = 3;

/** Is a list with so many bad rows still to be believed? */
export function isSound({ rows, bad }: { readonly rows: number; readonly bad: number }): boolean {
  return bad <= Math.max(FEW, rows * MOST_BAD_SHARE) && (bad < rows || rows === 0);
}

/**
 * Reads every record by `schema` and hands it to `fault`, which says what is impossible about it, or null. Of those that repeat an
 * id the last is kept.
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

export const NO_ID = 'id: expected the id of something';

/** Of a problem that `readRecord` found: the same for every value that is wrong in the same way. */
export function withoutValue(problem: string): string {
  return problem.replace(/, got .*$/s, '');
}

/** Something that can be an id: printable, and not absurdly long. */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= 200 && !/[\p{Cc}\p{Cs}]/u.test(value);
}

/** What a row claims to be; empty when that cannot be read. */
export function idOf(row: unknown): string {
  const id = typeof row === 'object' && row !== null ? (row as { readonly id?: unknown }).id : null;
  return isId(id) ? id : '';
}

/** Negative, or no number at all. Null is neither: upstream says nothing. */
export function isImpossible(value: number | null): boolean {
  return value !== null && !(value >= 0 && value < Number.POSITIVE_INFINITY);
}

/** Counts and ranks, as Postgres has to store them. */
export function isWhole(value: number | null): boolean {
  return value === null || (Number.isInteger(value) && value >= 0 && value < 2 ** 31);
}
