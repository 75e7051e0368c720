/** Reads the values of any file: instants, numbers and booleans in many forms. */
import type { Instant } from '../../clock.ts';

export const TIME_UNITS = ['s', 'ms', 'us', 'ns'] as const;
export type TimeUnit = (typeof TIME_UNITS)[number];

/** The forms in which times were read. `text in UTC` is a text without a zone. */
export const TIME_FORMS = [...TIME_UNITS, 'instant', 'text', 'text in UTC'] as const;
export type TimeForm = (typeof TIME_FORMS)[number];

const PER_MS: Readonly<Record<TimeUnit, number>> = { s: 1e-3, ms: 1, us: 1e3, ns: 1e6 };

export type TimeReader = {
  /** Milliseconds since 1970, with smaller units as a fraction; NaN: the value is no time. */
  read(value: unknown, isInstant: boolean): Instant;
  /** How many times were read in each form. */
  readonly counts: Readonly<Record<TimeForm, number>>;
};

/** `unit`: of numbers; null: their size shows it, because between 1973 and 5138 the numbers of two units are never the same. */
export function createTimeReader(unit: TimeUnit | null): TimeReader {
  const counts = Object.fromEntries(TIME_FORMS.map((form) => [form, 0])) as Record<TimeForm, number>;
  const readText = createTextReader();
  const readNumber = (value: number): Instant => {
    const form = unit ?? unitOf(value);
    counts[form]++;
    return value / PER_MS[form];
  };
  return {
    counts,
    read: (value, isInstant) => {
      if (typeof value === 'number') {
        if (!isInstant) return readNumber(value);
        counts.instant++;
        return value;
      }
      if (typeof value === 'bigint') return readNumber(Number(value));
      if (value instanceof Date) {
        counts.instant++;
        return value.getTime();
      }
      const text = typeof value === 'string' ? value.trim() : '';
      if (text === '') return Number.NaN;
      const last = text.charCodeAt(text.length - 1);
      const isNumber = last >= 48 && last <= 57 && /^-?\d+(?:\.\d*)?$/.test(text);
      if (isNumber) return readNumber(Number(text));
      const { at, isInUtc } = readText(text);
      if (!Number.isNaN(at)) counts[isInUtc ? 'text in UTC' : 'text']++;
      return at;
    },
  };
}

function unitOf(value: number): TimeUnit {
  const size = Math.abs(value);
  if (size < 1e11) return 's';
  if (size < 1e14) return 'ms';
  return size < 1e17 ? 'us' : 'ns';
}

const [ZERO, COLON, BLANK, T, Z] = ['0', ':', ' ', 'T', 'Z'].map((one) => one.charCodeAt(0)) as [
  number,
  number,
  number,
  number,
  number,
];

/** The value of two digits. When they are not digits: 99, which is no hour, minute or second. */
function twoDigits(text: string, at: number): number {
  const tens = text.charCodeAt(at) - ZERO;
  const ones = text.charCodeAt(at + 1) - ZERO;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? 10 * tens + ones : 99;
}

const TEXT = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)? ?(Z|UTC|[+-]\d\d(?::?\d\d)?)?$/i;

/** Reads ISO 8601, also with a space instead of the T. Without a zone the time is in UTC, as is usual in files of candles. */
function createTextReader() {
  let day = '';
  let dayMs = Number.NaN;
  const result = { at: Number.NaN, isInUtc: false };
  const midnight = (text: string): Instant => {
    if (text === day) return dayMs;
    const at = Date.parse(`${text}T00:00:00Z`);
    // `Date.parse` reads 31 February as a day of March.
    const isDay = !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
    day = text;
    dayMs = isDay ? at : Number.NaN;
    return dayMs;
  };
  /** Reads `2024-01-31T12:00:00Z`, the form in most files; NaN: the pattern must read the text. */
  const usual = (text: string): Instant => {
    if (
      text.length !== 20 ||
      text.charCodeAt(19) !== Z ||
      text.charCodeAt(13) !== COLON ||
      text.charCodeAt(16) !== COLON
    )
      return Number.NaN;
    const between = text.charCodeAt(10);
    const [hours, minutes, seconds] = [twoDigits(text, 11), twoDigits(text, 14), twoDigits(text, 17)];
    const isTime = (between === T || between === BLANK) && hours < 24 && minutes < 60 && seconds < 60;
    return isTime && text.startsWith(day) ? dayMs + hours * 3_600_000 + minutes * 60_000 + seconds * 1_000 : Number.NaN;
  };
  return (text: string) => {
    const at = day === '' ? Number.NaN : usual(text);
    if (!Number.isNaN(at)) {
      result.at = at;
      result.isInUtc = false;
      return result;
    }
    const [, date, hours = '0', minutes = '0', seconds = '0', fraction = '', zone] = TEXT.exec(text) ?? [];
    result.isInUtc = zone === undefined;
    if (date === undefined || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) {
      result.at = Number.NaN;
      return result;
    }
    const ms = fraction === '' ? 0 : Number(`0.${fraction}`) * 1_000;
    result.at =
      midnight(date) +
      Number(hours) * 3_600_000 +
      Number(minutes) * 60_000 +
      Number(seconds) * 1_000 +
      ms -
      offsetOf(zone);
    return result;
  };
}

function offsetOf(zone: string | undefined): number {
  const [, sign, hours, minutes = '0'] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone ?? '') ?? [];
  if (sign === undefined) return 0;
  return (sign === '-' ? -1 : 1) * (Number(hours) * 3_600_000 + Number(minutes) * 60_000);
}

/** Null when there is no value; undefined when it is not a number. A text like NaN is a number, which no price can be. */
export function readNumber(value: unknown): number | null | undefined {
  if (typeof value === 'number') return value;
  if (value === null || value === undefined || value === '') return null;
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'string') return undefined;
  const read = Number(value);
  if (!Number.isNaN(read)) return value.trim() === '' ? null : explainNoDouble(value, read) === null ? read : undefined;
  switch (value.trim().toLowerCase()) {
    case 'null':
    // R writes this.
    case 'na':
      return null;
    case 'nan':
      return read;
    default:
      return undefined;
  }
}

/** Why `readNumber` did not accept the value. */
export function explainNoNumber(value: unknown): string {
  return (typeof value === 'string' ? explainNoDouble(value, Number(value)) : null) ?? 'is not a number';
}

/** Why the parsed number would not be the value in the file; null when it is. */
function explainNoDouble(text: string, read: number): string | null {
  // In most numbers, the second character is a digit or a point, and no space precedes the first.
  const isUsual = text.charCodeAt(1) < 58 && text.charCodeAt(0) > 32 && text.charCodeAt(0) < 127;
  if (!isUsual && /^\s*0[box]/i.test(text)) return 'is not a decimal number, like 16 or 1.6e1';
  return read === 0 && /^[^e]*[1-9]/i.test(text) ? 'is too small for a double' : null;
}

/** Like `readNumber`, for values that may be unknown: NaN, which pandas and others write for a missing value, is null. */
export function readAmount(value: unknown): number | null | undefined {
  const read = readNumber(value);
  return Number.isNaN(read) ? null : read;
}

/** Null when there is no value; undefined when it is neither true nor false. */
export function readBoolean(value: unknown): boolean | null | undefined {
  if (typeof value === 'boolean') return value;
  const text = String(value ?? '').trim();
  switch (text.toLowerCase()) {
    case '':
      return null;
    case 'true':
    case 't':
    case '1':
      return true;
    case 'false':
    case 'f':
    case '0':
      return false;
    default:
      return undefined;
  }
}
