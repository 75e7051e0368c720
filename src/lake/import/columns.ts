/** Finds the role of each column of a file: by its usual names, or as the user names it. */
import { didYouMeanOr, nearestNames } from '../../core/settings/did-you-mean.ts';
import { ImportRefused } from '../refused.ts';
import type { Table } from './table/table.ts';

export const ROLES = [
  'time',
  'open',
  'high',
  'low',
  'close',
  'volume',
  'market_cap',
  'coin',
  'interval',
  'quote',
  'is_final',
] as const;
export type Role = (typeof ROLES)[number];

/** Without these, a row is not a candle. */
const NEEDED: readonly Role[] = ['time', 'open', 'high', 'low', 'close'];

/** Usual names in lower case, with only letters and digits. The first one that a file has counts. */
const USUAL: Readonly<Record<Role, readonly string[]>> = {
  time: ['opentime', 'timeopen', 'time', 'timestamp', 'datetime', 'date', 'ts', 'unix', 't'],
  open: ['open', 'openprice', 'priceopen', 'o'],
  high: ['high', 'highprice', 'pricehigh', 'h'],
  low: ['low', 'lowprice', 'pricelow', 'l'],
  close: ['close', 'closeprice', 'priceclose', 'c'],
  volume: ['volume', 'vol', 'v'],
  market_cap: ['marketcap'],
  coin: ['coinid', 'coin', 'symbol'],
  interval: ['interval', 'timeframe'],
  quote: ['quote'],
  is_final: ['isfinal'],
};

/** The order of the columns in klines of exchanges without a header. */
const BY_NUMBER: readonly Role[] = ['time', 'open', 'high', 'low', 'close', 'volume'];

/** The index of each column in the file. */
export type Columns = Readonly<Partial<Record<Role, number>>>;

/** The columns that the user names: a role, and the name or number of a column. */
export type NamedColumns = Readonly<Partial<Record<Role, string>>>;

const simplified = (name: string) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');

/** Returns the columns that the user names, and the usual ones for all other roles. @throws ImportRefused when a column is missing */
export function findColumns(
  { columns }: Table,
  { hasHeader, named, file }: { readonly hasHeader: boolean; readonly named: NamedColumns; readonly file: string },
): Columns {
  const names = columns.map(({ name }) => name);
  if (names.length === 0) throw new ImportRefused(`${file} has no columns: it is empty, or its first row is`);
  const isNumbered = !hasHeader || names.every((name, i) => name === String(i + 1));
  const usual = isNumbered && Object.keys(named).length === 0 ? byNumber(names) : byName(names);
  const found: Partial<Record<Role, number>> = { ...usual };
  for (const role of ROLES) {
    const name = named[role];
    if (name !== undefined) found[role] = placeOf(names, name, role, file);
  }
  const missing = NEEDED.filter((role) => found[role] === undefined);
  if (missing.length === 0) return found;
  const shown = `the columns ${names.slice(0, 20).join(', ')}`;
  const looksLikeData = hasHeader && names.every((name) => name === '' || !/^\p{L}/u.test(name));
  const hint = looksLikeData
    ? 'its first record looks like data; give --no-header'
    : `name them, like --columns ${missing.map((role) => `${role}=…`).join(',')}`;
  throw new ImportRefused(`${file} has ${shown}, but Chandler recognizes none as ${missing.join(', ')}; ${hint}`);
}

function byNumber(names: readonly string[]): Columns {
  return Object.fromEntries(BY_NUMBER.slice(0, names.length).map((role, i) => [role, i]));
}

function byName(names: readonly string[]): Columns {
  const known = names.map(simplified);
  const found: Partial<Record<Role, number>> = {};
  for (const role of ROLES) {
    const place = USUAL[role].map((name) => known.indexOf(name)).find((at) => at !== -1);
    if (place !== undefined) found[role] = place;
  }
  return found;
}

function placeOf(names: readonly string[], name: string, role: Role, file: string): number {
  const exact = names.indexOf(name);
  if (exact !== -1) return exact;
  const number = /^\d+$/.test(name) ? Number(name) : 0;
  if (number >= 1 && number <= names.length) return number - 1;
  const similar = names.findIndex((one) => simplified(one) === simplified(name));
  if (similar !== -1) return similar;
  const hint = didYouMeanOr(number > 0 ? [] : nearestNames(name, names), `it has ${names.join(', ')}`);
  throw new ImportRefused(`${file} has no column ${name} for ${role}; ${hint}`);
}
