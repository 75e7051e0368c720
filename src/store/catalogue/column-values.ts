/** Converts values of records to columns: the upstream omits values in several ways, and all of them become null. */
import type { Instant } from '../../clock.ts';
import { parseTime } from '../../contract/time.ts';
import { storableText } from '../values/storable-text.ts';

/** Characters of a key. A key of an index must not be longer than a third of a page. */
const LONGEST_KEY = 600;
const FIRST_YEAR = Date.UTC(2001, 0) - 2000 * 366 * 86_400_000;

/** The text as Postgres can store it; "" becomes null. */
export function plainText(value: string | null | undefined): string | null {
  return value === undefined || value === null || value === '' ? null : storableText(value);
}

/** A text for a column that is part of a key; never null. */
export function plainKey(value: string | null | undefined): string {
  return storableText(value ?? '').slice(0, LONGEST_KEY);
}

export function plainNumber(value: number | '' | null | undefined): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** The number, or null when it is not a whole number of four bytes. */
export function plainInteger(value: number | '' | null | undefined): number | null {
  return typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 2 ** 31 ? value : null;
}

/** Parses RFC 3339; null when the text is something else, or when Postgres could not store the instant. */
export function plainTime(value: string | null | undefined): Instant | null {
  if (value === undefined || value === null || value === '') return null;
  const at = parseTime(value);
  return Number.isNaN(at) || at < FIRST_YEAR ? null : at;
}
