/** The refusals of the API: bodies, texts, and how to parse them (decisions 8 to 10). */
import type { Instant } from '../../clock.ts';
import type { CandleInterval } from '../../core/interval.ts';
import { parseTime } from '../time.ts';

export type ErrorBody = { readonly error: string };

export const UNKNOWN_ID = 'id not found';

/** Is this the upstream's text for an unknown coin? */
export function isUnknownIdError(error: string): boolean {
  return error.trim().toLowerCase() === UNKNOWN_ID;
}

/** The body of a 404 for a route that does not exist; as `text/plain`, not JSON. */
export const UNKNOWN_ROUTE = '404 page not found';
/** For paths that the vendor documents but Chandler cannot answer (decision 54); as JSON, because clients parse every body. */
export const UNANSWERED_PATH = 'not available here';
/** Sent with 429 for too many requests in a second or a day, and with 402 for an exhausted month (decision 9). */
export const TOO_MANY_REQUESTS = 'you have reached maximum request limit';
export const INVALID_KEY = 'invalid api key';
export const KEY_REQUIRED = 'api key is required';
/** This text and the next one are sent with 503 and `Retry-After`. */
export const DATABASE_UNAVAILABLE = 'the database is unavailable; try again in a few seconds';
export const DATABASE_STARTING = 'the database is starting; try again in a few seconds';
export const RETRY_AFTER_SECONDS = 5;
export const TOO_MANY_QUOTES = 'Max number of quotes is 3';

const NOT_IN_PLAN = 'is not allowed in this plan';
const ADVICE = 'Check plans on coinpaprika.com/api';

/** The refusal of a start before `notBefore`; `nanoseconds` (0…999,999) are the digits after the millisecond. */
export function historyLimitText(notBefore: Instant, nanoseconds = 0): string {
  return `Getting historical OHLCV data before ${formatGoTime(notBefore, nanoseconds)} ${NOT_IN_PLAN}. ${ADVICE}`;
}

/** The refusal of an interval. The upstream's own text is unknown; this follows its text for minute ticks (decision 10). */
export function intervalLimitText(interval: CandleInterval): string {
  return `Getting historical OHLCV data with interval ${interval} ${NOT_IN_PLAN}. ${ADVICE}`;
}

/** The refusal of ticker history; `notBefore` is null when the plan has no history of that width. */
export function tickerHistoryLimitText(resolution: string, notBefore: Instant | null, nanoseconds = 0): string {
  const before = notBefore === null ? '' : ` before ${formatGoTime(notBefore, nanoseconds)}`;
  return `Getting ${resolution} historical data${before} ${NOT_IN_PLAN}. ${ADVICE}`;
}

/** The refusal of the changelog of ids. The upstream's own text is unknown (decision 54). */
export const ID_CHANGES_REFUSAL = `Getting changes of ids ${NOT_IN_PLAN}. ${ADVICE}`;

/** The refusal of mappings. The upstream's own text is unknown, too. */
export const MAPPINGS_REFUSAL = `Getting mappings of ids ${NOT_IN_PLAN}. ${ADVICE}`;

/** A history limit of a plan: the earliest allowed start, rounded up to the millisecond; null = no history of this kind. */
type HistoryLimit = { readonly notBefore: Instant | null };

/** Recognises a history limit by its text, under any status (402, or 400 in one old report); null for any other text. */
export function parseHistoryLimit(message: string): HistoryLimit | null {
  if (!message.includes(NOT_IN_PLAN)) return null;
  const m = / before (.+?) is not allowed in this plan/.exec(message);
  return { notBefore: m ? parseGoTime(m[1]!) : null };
}

/** Go's `time.Time.String()` in UTC: `2022-06-19 09:50:50.13558332 +0000 UTC`, without trailing zeros in the fraction. */
export function formatGoTime(at: Instant, nanoseconds = 0): string {
  const iso = new Date(Math.floor(at)).toISOString();
  const fraction = (iso.slice(20, 23) + String(nanoseconds).padStart(6, '0')).replace(/0+$/, '');
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)}${fraction === '' ? '' : `.${fraction}`} +0000 UTC`;
}

const GO_TIME = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))? ([+-]\d{4})(?: \S+)?(?: m=\S+)?$/;

/** Parses the format of `formatGoTime`, with any offset and zone name. Returns the first whole millisecond at or after it; null for other texts. */
export function parseGoTime(text: string): Instant | null {
  const m = GO_TIME.exec(text.trim());
  if (!m) return null;
  const seconds = parseTime(`${m[1]}T${m[2]}${m[4]}`);
  if (Number.isNaN(seconds)) return null;
  return seconds + Math.ceil(Number((m[3] ?? '').padEnd(9, '0').slice(0, 9)) / 1_000_000);
}
