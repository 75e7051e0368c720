/** Numbers, durations and instants as text. Instants are in UTC. */
import type { Instant } from '../clock.ts';
import type { Quote } from './candle.ts';
import type { Interval } from './interval.ts';

/** Formats by their maximum of fraction digits. Created at first use: loading the data of a locale takes a tenth of a command's start. */
const formats = new Map<number, Intl.NumberFormat>();

function numberFormat(maximumFractionDigits: 0 | 1): Intl.NumberFormat {
  const made = formats.get(maximumFractionDigits) ?? new Intl.NumberFormat('en-US', { maximumFractionDigits });
  formats.set(maximumFractionDigits, made);
  return made;
}

/** `1,234,567`. */
export function formatCount(value: number | bigint): string {
  return numberFormat(0).format(value);
}

/** `1 request`, `2 requests`, `2 series`. */
export function formatCounted(value: number, noun: string): string {
  const count = formatCount(value);
  const plural = noun.endsWith('series') ? noun : `${noun}s`;
  return `${count} ${count === '1' ? noun : plural}`;
}

/** A limit: a number, or `unlimited`. */
export function formatLimit(value: number | null): string {
  return value === null ? 'unlimited' : formatCount(value);
}

/** `850 ms`, `42 s`, `3m 20s`, `2h 5m`, `12d 4h`: the two largest units, rounded down. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const [large, small, largeUnit, smallUnit] =
    seconds < 3600 ? [60, 1, 'm', 's'] : seconds < 86_400 ? [3600, 60, 'h', 'm'] : [86_400, 3600, 'd', 'h'];
  const rest = Math.floor((seconds % Number(large)) / Number(small));
  return `${formatCount(Math.floor(seconds / Number(large)))}${largeUnit}${rest === 0 ? '' : ` ${rest}${smallUnit}`}`;
}

/** Like `formatDuration`, for estimates: fractions of a second are not shown. */
export function formatRoughly(ms: number): string {
  return ms < 1000 ? 'under 1 s' : formatDuration(ms);
}

/** `2024-01-31 12:00Z`, with seconds only where they are not zero. */
export function formatInstant(at: Instant): string {
  const iso = new Date(at).toISOString();
  return `${iso.slice(0, 10)} ${iso.slice(17, 19) === '00' ? iso.slice(11, 16) : iso.slice(11, 19)}Z`;
}

/** ISO 8601, for programs; null stays null. */
export function toIso(at: Instant | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

/** The row, with the instants in these fields as ISO 8601, for JSON. */
export function withIso<Row, Name extends keyof Row>(row: Row, ...names: readonly Name[]) {
  const iso = Object.fromEntries(names.map((name) => [name, toIso(row[name] as Instant | null)]));
  return { ...row, ...(iso as Record<Name, string | null>) };
}

/** `2024-01-31` at midnight; at other times as `formatInstant` does it. */
export function formatDay(at: Instant): string {
  return at % 86_400_000 === 0 ? new Date(at).toISOString().slice(0, 10) : formatInstant(at);
}

/** `in 3m 20s`, `now` or `3m 20s ago`. */
export function formatRelative(at: Instant, now: Instant): string {
  if (Math.abs(at - now) < 1000) return 'now';
  return at >= now ? `in ${formatDuration(at - now)}` : `${formatDuration(now - at)} ago`;
}

/** The parts of a Postgres error as one text. Postgres ends a detail and a hint with a full stop, and a message without one. */
export function formatPostgresError(
  message: string,
  { detail, hint }: { readonly detail?: string | undefined; readonly hint?: string | undefined },
): string {
  const parts = [message, detail, hint].flatMap((part) => part || []);
  return parts.map((part, i) => (i < parts.length - 1 ? part.replace(/\.$/, '') : part)).join('. ');
}

/** `24h usd`: the interval and the quote of a series. */
export function formatSeries({ interval, quote }: { readonly interval: Interval; readonly quote: Quote }): string {
  return `${interval} ${quote}`;
}

/** `99.9%`. The result is 100% only when `part` is the whole, and 0% only when `part` is zero. */
export function formatPercent(part: number, whole: number): string {
  if (whole <= 0) return '–';
  if (part <= 0) return '0%';
  if (part >= whole) return '100%';
  return `${Math.min(99.9, Math.max(0.1, Math.round((part / whole) * 1000) / 10))}%`;
}

/** `105.3%`: like `formatPercent`, for a limit that may be exceeded. */
export function formatShare(part: number, whole: number): string {
  if (part <= whole || whole <= 0) return formatPercent(part, whole);
  return `${Math.max(100.1, Math.round((part / whole) * 1000) / 10)}%`;
}

/** `10 requests/s`, or `1 request every 12 s` below one per second. */
export function formatRate(perSecond: number): string {
  if (perSecond >= 1) return `${numberFormat(1).format(perSecond)} ${perSecond === 1 ? 'request' : 'requests'}/s`;
  return perSecond <= 0 ? 'none' : `1 request every ${formatDuration(1000 / perSecond)}`;
}

/** `93.5 MB`, in powers of 1,000. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${numberFormat(1).format(value)} ${units[unit]}`;
}

/** A word as a user types it in a shell: in quotes if it needs them. */
export function shellWord(word: string): string {
  return /^[\w./:=@,+%-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
