/**
 * Is a row of an answer canonical: do its stored columns produce the same JSON? Then the columns are enough to serve it byte for byte; for any other
 * row the JSON is stored as well. Pure. Written by hand, because there may be 50,000 rows.
 */
import { TICKER_QUOTE_KEYS } from '../../core/ticker.ts';
import { storableJsonText } from '../../store/values/storable-text.ts';

type Fields = Readonly<Record<string, unknown>>;

const TICKER_KEYS = [
  'id',
  'name',
  'symbol',
  'rank',
  'circulating_supply',
  'total_supply',
  'max_supply',
  'beta_value',
  'first_data_at',
  'last_updated',
  'quotes',
];
/** The upstream omits this key when the plan does not include it. */
const OPTIONAL = TICKER_KEYS.indexOf('circulating_supply');

export function isCanonicalTicker(row: Fields, usd: Fields): boolean {
  let i = 0;
  for (const key in row) {
    if (i === OPTIONAL && key !== TICKER_KEYS[i]) i++;
    if (key !== TICKER_KEYS[i++]) return false;
  }
  if (i !== TICKER_KEYS.length) return false;
  for (const key in row.quotes as Fields) if (key !== 'USD') return false;
  i = 0;
  for (const key in usd) {
    if (key !== TICKER_QUOTE_KEYS[i++]) return false;
    if (key === 'ath_date' ? !(usd[key] === null || isCanonicalTime(usd[key])) : !isCanonicalNumber(usd[key]))
      return false;
  }
  return (
    i === TICKER_QUOTE_KEYS.length &&
    isCanonicalText(row.name) &&
    isCanonicalText(row.symbol) &&
    typeof row.rank === 'number' &&
    row.circulating_supply !== null &&
    (row.circulating_supply === undefined || isCanonicalNumber(row.circulating_supply)) &&
    isCanonicalNumber(row.total_supply) &&
    isCanonicalNumber(row.max_supply) &&
    isCanonicalNumber(row.beta_value) &&
    (row.first_data_at === null || isCanonicalTime(row.first_data_at)) &&
    isCanonicalTime(row.last_updated)
  );
}

const COIN_KEYS = ['id', 'name', 'symbol', 'rank', 'is_new', 'is_active', 'type'];

export function isCanonicalCoin(row: Fields): boolean {
  let i = 0;
  for (const key in row) if (key !== COIN_KEYS[i++]) return false;
  return (
    i === COIN_KEYS.length &&
    isCanonicalText(row.name) &&
    isCanonicalText(row.symbol) &&
    typeof row.rank === 'number' &&
    typeof row.is_new === 'boolean' &&
    (row.type === null || (isCanonicalText(row.type) && row.type !== ''))
  );
}

/** Postgres cannot store the character 0 and halves of surrogate pairs in a text. */
function isCanonicalText(value: unknown): boolean {
  return typeof value === 'string' && !/[\0\p{Surrogate}]/u.test(value);
}

/** Null, or a number that is written exactly as it was read: no integer beyond the exact range of a double, and no negative zero. */
function isCanonicalNumber(value: unknown): boolean {
  if (typeof value !== 'number') return value === null;
  return value === 0 ? !Object.is(value, -0) : !(Number.isInteger(value) && !Number.isSafeInteger(value));
}

/** A time in the form that `formatTime` writes. The caller has checked that it is a valid time. */
function isCanonicalTime(value: unknown): value is string {
  return typeof value === 'string' && value.length === 20 && value[10] === 'T' && value[19] === 'Z';
}

/** The JSON of a record, if it differs from the JSON of `written`, or cannot be stored without escapes; otherwise null. */
export function originalJson(record: unknown, written: unknown): string | null {
  const text = JSON.stringify(record);
  return text === JSON.stringify(written) && storableJsonText(text) === text ? null : text;
}
