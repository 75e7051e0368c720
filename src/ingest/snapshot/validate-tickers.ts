/**
 * Validates an answer of `/tickers`: which rows may be stored, and which are quarantined, and why. Pure. Written by hand: there may be 50,000 rows.
 */
import type { Instant } from '../../clock.ts';
import { parseTime } from '../../contract/time.ts';
import { noTickers, pickTickers, TICKER_NUMBERS, type TickerColumns, type TickerNumber } from '../../core/ticker.ts';
import { isObject } from '../../upstream/classify.ts';
import { isCanonicalTicker } from '../answer/canonical-row.ts';
import { isId, NO_ID, ROUNDED_MS, type RowFault, type Validated, validateRows } from '../answer/record-list.ts';

/** Numbers of the ticker itself, outside its quotes. */
const OWN: readonly TickerNumber[] = ['circulating_supply', 'total_supply', 'max_supply', 'beta_value'];
const OF_QUOTE = TICKER_NUMBERS.filter((name) => !OWN.includes(name));
const NEVER_NEGATIVE: ReadonlySet<TickerNumber> = new Set([
  'price',
  'volume_24h',
  'market_cap',
  'ath_price',
  'circulating_supply',
  'total_supply',
  'max_supply',
] as const);

/**
 * Splits the rows of one answer into tickers, priced in dollars, and impossible rows: wrong type, no id, negative, from the future (after `latest`),
 * or two different rows for one coin. The caller checks whether the coin is known.
 */
export function validateTickers(body: unknown, latest: Instant): Validated<TickerColumns> {
  const columns = noTickers();
  const positions = new Map<string, number>();
  /** Positions that are not stored: repeated rows, and two rows that contradict each other. */
  const dropped = new Set<number>();
  const read = (row: unknown, position: number): RowFault | null => {
    const at = columns.coinId.length;
    const reason = append(columns, row, position, latest + ROUNDED_MS);
    if (reason !== null) return { reason };
    const before = positions.get(columns.coinId[at]!);
    if (before === undefined) {
      positions.set(columns.coinId[at]!, at);
      return null;
    }
    dropped.add(at);
    if (isSame(columns, before, at)) return null;
    dropped.add(before);
    return { reason: 'two different rows for one coin' };
  };
  const validated = validateRows(body, read, () => columns);
  if (!validated.ok) return validated;
  if (columns.coinId.length > 0 && columns.numbers.price.every(Number.isNaN))
    return { ok: false, problem: 'no row has a price' };
  return dropped.size === 0
    ? validated
    : { ...validated, value: pickTickers(columns, (position) => !dropped.has(position)) };
}

function isSame({ numbers, rank, updatedAt, athAt, firstDataAt }: TickerColumns, a: number, b: number): boolean {
  const columns = [rank, updatedAt, athAt, firstDataAt, ...Object.values(numbers)];
  return columns.every((column) => Object.is(column[a], column[b]));
}

/** Adds one row to the columns. Returns null, or why the row is impossible. */
function append(columns: TickerColumns, value: unknown, position: number, latest: Instant): string | null {
  if (!isObject(value)) return 'expected object';
  if (!isId(value.id)) return NO_ID;
  const usd = isObject(value.quotes) ? value.quotes.USD : undefined;
  if (!isObject(usd)) return 'quotes: no USD';
  const rank = isMissing(value.rank) ? 0 : value.rank;
  if (typeof rank !== 'number' || !Number.isInteger(rank) || rank < 0 || rank >= 2 ** 31)
    return 'rank: expected a whole number from 0';
  for (const name of OWN) {
    const fault = faultOf(name, value[name]);
    if (fault !== null) return fault;
  }
  for (const name of OF_QUOTE) {
    const fault = faultOf(name, usd[name]);
    if (fault !== null) return `quotes.USD.${fault}`;
  }
  const instants = [
    ['updatedAt', 'last_updated', readInstant(value.last_updated)],
    ['firstDataAt', 'first_data_at', readInstant(value.first_data_at)],
    ['athAt', 'quotes.USD.ath_date', readInstant(usd.ath_date)],
  ] as const;
  for (const [, name, at] of instants) {
    if (at === null) return `${name}: expected RFC 3339 time`;
    if (at > latest) return `${name} lies in the future`;
  }
  columns.coinId.push(value.id);
  columns.rank.push(rank);
  columns.position.push(position);
  columns.answer.push(isCanonicalTicker(value, usd) ? null : JSON.stringify(value));
  for (const [column, , at] of instants) columns[column].push(at!);
  for (const name of OWN) columns.numbers[name].push(numberOf(value[name]));
  for (const name of OF_QUOTE) columns.numbers[name].push(numberOf(usd[name]));
  return null;
}

function faultOf(name: TickerNumber, value: unknown): string | null {
  if (isMissing(value)) return null;
  if (typeof value !== 'number') return `${name}: expected number`;
  if (!Number.isFinite(value)) return `${name} is not finite`;
  return value < 0 && NEVER_NEGATIVE.has(name) ? `${name} is negative` : null;
}

/** When the upstream has no value, it omits the field, or writes null or "". */
function isMissing(value: unknown): value is null | undefined | '' {
  return value === null || value === undefined || value === '';
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : Number.NaN;
}

/** NaN when there is no value; null when the value is not a time. */
function readInstant(value: unknown): Instant | null {
  if (isMissing(value)) return Number.NaN;
  const at = typeof value === 'string' ? parseTime(value) : Number.NaN;
  return Number.isNaN(at) ? null : at;
}
