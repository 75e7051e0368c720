/** Parsers of option values. Each throws a `UsageError` that says what is allowed. */
import { QUOTES } from '../../core/candle.ts';
import {
  ALL_INTERVALS,
  type CandleInterval,
  INTERVALS,
  type Interval,
  isCandleInterval,
  isInterval,
  isPriceInterval,
  PRICE_WIDTHS,
  type PriceWidth,
} from '../../core/interval.ts';
import { didYouMean } from '../../core/settings/did-you-mean.ts';
import { HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../../core/tier.ts';
import { UsageError } from '../shell/exit.ts';

/** Accepts several values, separated by commas or by repeating the option. */
export function list<T>(parse: (text: string) => T): (text: string, before: readonly T[] | undefined) => T[] {
  return (text, before) => [...(before ?? []), ...text.split(',').map((part) => parse(part.trim()))];
}

/** A whole number from `least` to `most`. */
export function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^[+-]?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new UsageError(`It must be a whole number from ${least} to ${most}.`);
  };
}

export function parsePositiveInteger(text: string): number {
  const value = /^\+?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1) return value;
  throw new UsageError('It must be a whole number above 0.');
}

/** The priority of a backfill or a track rule. */
export const parsePriority = integer(LOWEST_PRIORITY, HIGHEST_PRIORITY);

const USUAL: Readonly<Record<string, string>> = { '1d': '24h', day: '24h', daily: '24h', '60m': '1h', hourly: '1h' };

/** The interval of a stored series: of candles, or of prices like prices-1d. */
export function parseInterval(text: string): Interval {
  if (isInterval(text)) return text;
  const prices = `prices-${text}`;
  const meant = [USUAL[text], isPriceInterval(prices) ? prices : undefined].filter((one) => one !== undefined);
  const hint = meant.length > 0 ? ` (did you mean ${meant.join(', or of prices ')}?)` : didYouMean(text, ALL_INTERVALS);
  throw new UsageError(`It must be one of ${INTERVALS.join(', ')}, or of prices, like prices-1d${hint}.`);
}

export const SERIES = ['candles', 'prices'] as const;
export type SeriesKind = (typeof SERIES)[number];

/** A width as the user types it with `--series`, or the whole name of an interval. */
export type Width = Interval | PriceWidth;

export function parseWidth(text: string): Width {
  const widths = [...ALL_INTERVALS, ...PRICE_WIDTHS];
  const found = widths.find((one) => one === text);
  if (found !== undefined) return found;
  const hint = USUAL[text] ? ` (did you mean ${USUAL[text]}?)` : didYouMean(text, widths);
  throw new UsageError(`It must be one of ${INTERVALS.join(', ')}${hint}; of prices ${PRICE_WIDTHS.join(', ')}.`);
}

/** The interval that a width means for this kind of series. @throws UsageError when there is none */
export function intervalOf(width: Width, series: SeriesKind): Interval {
  if (isPriceInterval(width)) return width;
  if (series === 'candles') return candleIntervalOf(width, `, or --series prices for ${width} prices`);
  const name = `prices-${width === '24h' ? '1d' : width}`;
  if (isPriceInterval(name)) return name;
  throw new UsageError(`There are no ${width} prices; give one of ${PRICE_WIDTHS.join(', ')}.`);
}

/** @param otherwise how the user names prices to this command; '' where it has none. @throws UsageError for a width of prices */
export function candleIntervalOf(width: Width, otherwise = ''): CandleInterval {
  if (isCandleInterval(width)) return width;
  throw new UsageError(`There are no ${width} candles; give ${USUAL[width] ?? INTERVALS.join(', ')}${otherwise}.`);
}

/** One of `choices`, in any case. */
export function choice<T extends string>(choices: readonly T[]): (text: string) => T {
  return (text) => {
    const found = choices.find((one) => one === text.toLowerCase());
    if (found !== undefined) return found;
    throw new UsageError(`It must be one of ${choices.join(', ')}${didYouMean(text, choices)}.`);
  };
}

export const parseQuote = choice(QUOTES);
