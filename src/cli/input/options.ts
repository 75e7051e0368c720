/** Parsers of option values; each throws a `UsageError` that says what is allowed. */
import { QUOTES } from '../../core/candle.ts';
import { INTERVALS, type Interval, isInterval } from '../../core/interval.ts';
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

export function parseInterval(text: string): Interval {
  if (isInterval(text)) return text;
  const usual = ({ '1d': '24h', day: '24h', daily: '24h', '60m': '1h', hourly: '1h' } as Record<string, string>)[text];
  const hint = usual ? ` (did you mean ${usual}?)` : didYouMean(text, INTERVALS);
  throw new UsageError(`It must be one of ${INTERVALS.join(', ')}${hint}.`);
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
