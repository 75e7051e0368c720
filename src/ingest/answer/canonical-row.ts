/**
 * Is a row of an answer written as its columns would be written again? Then they are enough to answer it byte for byte; of any other
 * row the JSON is kept beside them. Pure, and hand-written: it may be asked of 50,000 rows.
 */
import { TICKER_QUOTE_KEYS } from '../../core/ticker.ts';
import { storableJsonText } from '../../store/connection/storable-text.ts';

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
/** Left out where the plan does not show it. */
const OPTIONAL = TICKER_KEYS.indexOf('circulating_supply');

export function isPlainTicker(row: Fields, usd: Fields): boolean {
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
    if (key === 'ath_date' ? !(usd[key] === null || isPlainTime(usd[key])) : !isPlainNumber(usd[key])) return false;
  }
  return (
    i === TICKER_QUOTE_KEYS.length &&
    isPlainText(row.name) &&
    isPlainText(row.symbol) &&
    typeof row.rank === 'number' &&
    row.circulating_supply !== null &&
    (row.circulating_supply === undefined || isPlainNumber(row.circulating_supply)) &&
    isPlainNumber(row.total_supply) &&
    isPlainNumber(row.max_supply) &&
    isPlainNumber(row.beta_value) &&
    (row.first_data_at === null || isPlainTime(row.first_data_at)) &&
    isPlainTime(row.last_updated)
  );
}

const COIN_KEYS = ['id', 'name', 'symbol', 'rank', 'is_new', 'is_active', 'type'];

export function isPlainCoin(row: Fields): boolean {
  let i = 0;
  for (const key in row) if (key !== COIN_KEYS[i++]) return false;
  return (
    i === COIN_KEYS.length &&
    isPlainText(row.name) &&
    isPlainText(row.symbol) &&
    typeof row.rank === 'number' &&
    typeof row.is_new === 'boolean' &&
    (row.type === null || (isPlainText(row.type) && row.type !== ''))
  );
}

/** The character 0 and halves of surrogate pairs cannot be stored as such. */
function isPlainText(value: unknown): boolean {
  return typeof value === 'string' && !/[\0\p{Surrogate}]/u.test(value);
}

/** Null, or a number that is written as it was read: not one that doubles cannot tell from its neighbours, nor a zero below zero. */
function isPlainNumber(value: unknown): boolean {
  if (typeof value !== 'number') return value === null;
  return value === 0 ? !Object.is(value, -0) : !(Number.isInteger(value) && !Number.isSafeInteger(value));
}

/** Spelt as `formatTime` spells it; that it is a time has been seen before. */
function isPlainTime(value: unknown): value is string {
  return typeof value === 'string' && value.length === 20 && value[10] === 'T' && value[19] === 'Z';
}

/** Of a record that has been read: its JSON, where it is not that of `written`, or holds what can only be stored escaped. */
export function otherwiseWritten(record: unknown, written: unknown): string | null {
  const text = JSON.stringify(record);
  return text === JSON.stringify(written) && storableJsonText(text) === text ? null : text;
}
