/** Parsers of option values; each throws a `UsageError` that says what is allowed. */
import { InvalidArgumentError } from 'commander';
import { isQuote, QUOTES, type Quote } from '../../core/candle.ts';
import { INTERVALS, type Interval, isInterval } from '../../core/interval.ts';
import { didYouMean } from '../../core/settings/did-you-mean.ts';
import { HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../../core/tier.ts';
import { UsageError } from '../shell/exit.ts';

/** Lets commander report the error: it adds the name of the option and the given value. */
export function argument<T>(parse: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      if (error instanceof UsageError) throw new InvalidArgumentError(error.message);
      throw error;
    }
  };
}

/** Accepts several values, separated by commas or by repeating the option. */
export function list<T>(parse: (text: string) => T): (text: string, before: readonly T[] | undefined) => T[] {
  const parseOne = argument(parse);
  return (text, before) => [...(before ?? []), ...text.split(',').map((part) => parseOne(part.trim()))];
}

export function parseInteger(text: string, least: number, most: number): number {
  const value = /^[+-]?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(`It must be a whole number from ${least} to ${most}.`);
}

export function parsePositiveInteger(text: string): number {
  const value = /^\+?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1) return value;
  throw new UsageError('It must be a whole number above 0.');
}

export function parseInterval(text: string): Interval {
  if (isInterval(text)) return text;
  const usual = ({ '1d': '24h', day: '24h', daily: '24h', '60m': '1h', hourly: '1h' } as Record<string, string>)[text];
  const hint = usual ? ` (did you mean ${usual}?)` : didYouMean(text, INTERVALS);
  throw new UsageError(`It must be one of ${INTERVALS.join(', ')}${hint}.`);
}

export function parseQuote(text: string): Quote {
  const lower = text.toLowerCase();
  if (isQuote(lower)) return lower;
  throw new UsageError(`It must be one of ${QUOTES.join(', ')}${didYouMean(lower, QUOTES)}.`);
}

export function parseChoice<T extends string>(text: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === text);
  if (found !== undefined) return found;
  throw new UsageError(`It must be one of ${choices.join(', ')}${didYouMean(text, choices)}.`);
}

/** The priority of a backfill or a track rule. @throws UsageError when it is no whole number in the range. */
export function parsePriority(text: string): number {
  return parseInteger(text, LOWEST_PRIORITY, HIGHEST_PRIORITY);
}
