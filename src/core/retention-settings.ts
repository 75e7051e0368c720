/** How long each table keeps what it has: as it is written in settings, and as it is meant. */
import { ceilToGrid, DAY, INTERVALS, type Interval, isInterval } from './interval.ts';
import type { Span } from './span.ts';

/** In milliseconds; null: for ever. */
export type Kept = number | null;

export type Keep = {
  readonly tickers: Kept;
  readonly global: Kept;
  readonly exchanges: Kept;
  readonly fetches: Kept;
  readonly candles: Readonly<Record<Interval, Kept>>;
};

export const DEFAULT_KEEP: Keep = {
  tickers: 90 * DAY,
  global: null,
  exchanges: null,
  fetches: 90 * DAY,
  candles: candlesKept(() => null),
};

/** The part of a span whose candles are not so old that they would be removed again; it may hold nothing. */
export function keptPart(span: Span, interval: Interval, keep: Partial<Keep['candles']>, now: number): Span {
  const kept = keep[interval] ?? null;
  if (kept === null) return span;
  const from = Math.max(span.from, ceilToGrid(now - kept, interval));
  return { from: Math.min(from, span.to), to: span.to };
}

/** What answers have said is evidence for the next ones: a process may have slept for some days with an answer in its hands. */
export const LEAST_DAYS_OF_FETCHES = 7;

const DAYS = { d: 1, w: 7, y: 365 } as const;
/** Longer is for ever, but not for Postgres. */
const MOST_DAYS = 100 * 365;

/** `90d`, `12w`, `2y` or `forever`; else what it must be, as the end of a sentence. */
export function parseKept(text: string, leastDays = 1): { readonly kept: Kept } | { readonly mustBe: string } {
  if (text === 'forever') return { kept: null };
  const [, count, unit] = /^(\d{1,6})([dwy])$/.exec(text) ?? [];
  const days = count === undefined ? Number.NaN : Number(count) * DAYS[unit as keyof typeof DAYS];
  if (days >= leastDays && days <= MOST_DAYS) return { kept: days * DAY };
  const least = leastDays === 1 ? '' : `, ${leastDays}d or more`;
  return { mustBe: `it must be a number of days, weeks or years like 90d, 12w or 2y${least}, or forever` };
}

/** One such for all intervals, or `5m=90d 1h=2y`: those not named are kept for ever. */
export function parseCandlesKept(text: string): { readonly kept: Keep['candles'] } | { readonly mustBe: string } {
  if (!text.includes('=')) {
    const all = parseKept(text);
    return 'kept' in all
      ? { kept: candlesKept(() => all.kept) }
      : { mustBe: `${all.mustBe}; or by interval, like 5m=90d 1h=2y` };
  }
  const kept = new Map<Interval, Kept>();
  for (const part of text.split(/[\s,]+/).filter((word) => word !== '')) {
    const [, interval, value] = /^([^=]+)=([^=]+)$/.exec(part) ?? [];
    if (interval === undefined || !isInterval(interval) || kept.has(interval)) {
      return { mustBe: `which has ${part}; write each interval once, like 5m=90d 1h=2y, of ${INTERVALS.join(' ')}` };
    }
    const one = parseKept(value!);
    if (!('kept' in one)) return { mustBe: `which has ${part}; ${one.mustBe}` };
    kept.set(interval, one.kept);
  }
  return { kept: candlesKept((interval) => kept.get(interval) ?? null) };
}

function candlesKept(of: (interval: Interval) => Kept): Keep['candles'] {
  return Object.fromEntries(INTERVALS.map((interval) => [interval, of(interval)])) as Keep['candles'];
}
