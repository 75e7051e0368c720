/** How long each table keeps its rows, and how settings spell it. */
import { type CandleInterval, ceilToGrid, DAY, INTERVALS, type Interval, isCandleInterval } from '../interval.ts';
import type { Span } from '../span.ts';
import type { ParsedSetting } from './setting.ts';

/** Milliseconds; null means forever. */
type Kept = number | null;

export type Retention = {
  readonly tickers: Kept;
  readonly global: Kept;
  readonly exchanges: Kept;
  readonly fetches: Kept;
  readonly candles: Readonly<Record<CandleInterval, Kept>>;
};

export const DEFAULT_RETENTION: Retention = {
  tickers: 90 * DAY,
  global: null,
  exchanges: null,
  fetches: 90 * DAY,
  candles: candlesKept(() => null),
};

/** Milliseconds that the rows of such a series are kept; null means forever. Price series are always kept forever. */
export function keptMs(interval: Interval, keep: Partial<Retention['candles']>): Kept {
  return isCandleInterval(interval) ? (keep[interval] ?? null) : null;
}

/** The part of a span whose candles are young enough to be kept; it may be empty. */
export function keptPart(span: Span, interval: Interval, keep: Partial<Retention['candles']>, now: number): Span {
  const kept = keptMs(interval, keep);
  if (kept === null) return span;
  const from = Math.max(span.from, ceilToGrid(now - kept, interval));
  return { from: Math.min(from, span.to), to: span.to };
}

/** The shortest time, because earlier answers are evidence about later ones, and a suspended process may store an answer days late. */
export const LEAST_DAYS_OF_FETCHES = 7;

const DAYS = { d: 1, w: 7, y: 365 } as const;
/** Postgres cannot subtract longer durations from now. */
const MOST_DAYS = 100 * 365;

/** Parses `90d`, `12w`, `2y` or `forever`. */
export function parseKept(text: string, leastDays = 1): ParsedSetting<Kept> {
  if (text === 'forever') return { ok: null };
  const [, count, unit] = /^(\d{1,6})([dwy])$/.exec(text) ?? [];
  const days = count === undefined ? Number.NaN : Number(count) * DAYS[unit as keyof typeof DAYS];
  if (days >= leastDays && days <= MOST_DAYS) return { ok: days * DAY };
  const least = leastDays === 1 ? '' : `, ${leastDays}d or more`;
  return { problem: `it must be a number of days, weeks or years like 90d, 12w or 2y${least}, or forever` };
}

/** The text of a retention setting. Equal values give the same text. */
export function formatKept(kept: Retention[keyof Retention]): string {
  if (kept === null) return 'forever';
  if (typeof kept === 'number') return `${kept / DAY}d`;
  const texts = INTERVALS.map((interval) => formatKept(kept[interval]));
  if (new Set(texts).size === 1) return texts[0]!;
  return INTERVALS.flatMap((interval, i) => (kept[interval] === null ? [] : [`${interval}=${texts[i]}`])).join(' ');
}

/** Parses one duration for all intervals, or `5m=90d 1h=2y`, which keeps the other intervals forever. */
export function parseCandlesKept(text: string): ParsedSetting<Retention['candles']> {
  if (!text.includes('=')) {
    const all = parseKept(text);
    return 'ok' in all
      ? { ok: candlesKept(() => all.ok) }
      : { problem: `${all.problem}; or by interval, like 5m=90d 1h=2y` };
  }
  const kept = new Map<CandleInterval, Kept>();
  for (const part of text.split(/[\s,]+/).filter((word) => word !== '')) {
    const [, interval, value] = /^([^=]+)=([^=]+)$/.exec(part) ?? [];
    if (interval === undefined || !isCandleInterval(interval) || kept.has(interval)) {
      return { problem: `which has ${part}; write each interval once, like 5m=90d 1h=2y, of ${INTERVALS.join(' ')}` };
    }
    const one = parseKept(value!);
    if (!('ok' in one)) return { problem: `which has ${part}; ${one.problem}` };
    kept.set(interval, one.ok);
  }
  return { ok: candlesKept((interval) => kept.get(interval) ?? null) };
}

function candlesKept(of: (interval: CandleInterval) => Kept): Retention['candles'] {
  return Object.fromEntries(INTERVALS.map((interval) => [interval, of(interval)])) as Retention['candles'];
}
