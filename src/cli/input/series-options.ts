/** The arguments and options that choose coins, intervals, quote and span. */

import type { Command } from 'commander';
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { formatDay } from '../../core/format.ts';
import { ceilToGrid, describeInterval, INTERVALS, type Interval, PRICE_WIDTHS } from '../../core/interval.ts';
import { didYouMeanHint } from '../../core/settings/did-you-mean.ts';
import type { Span } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { nearestCoinIds } from '../../store/snapshot/coin.ts';
import { presentIdsOf } from '../../store/upkeep/rename.ts';
import {
  coinIdsWithSeries,
  coinsWithoutSeries,
  countSeries,
  type SeriesFilter,
} from '../../views/operations/series-filter.ts';
import { UsageError } from '../shell/exit.ts';
import {
  choice,
  intervalOf,
  list,
  parseInterval,
  parsePositiveInteger,
  parseQuote,
  parseWidth,
  SERIES,
  type SeriesKind,
  type Width,
} from './options.ts';
import { pastOption, timeOption } from './time.ts';

export type TargetOptions = {
  readonly start?: string;
  readonly end?: string;
  readonly series: SeriesKind;
  /** Several intervals are several separate targets. */
  readonly interval?: readonly Width[];
  readonly quote: Quote;
  readonly top?: number;
  readonly all?: boolean;
  readonly everTop?: number;
  readonly inactive?: boolean;
};

/** The chosen intervals, each once, in the given order. @throws UsageError for a width that such series do not have */
export function intervalsOf({ series, interval }: Pick<TargetOptions, 'series' | 'interval'>): Interval[] {
  return [...new Set((interval ?? (['24h'] as const)).map((width) => intervalOf(width, series)))];
}

/** Adds the options that choose series, for `backfill`, `plan` and `track add`. */
export function seriesOptions(command: Command): Command {
  return command
    .argument('[coin...]', 'coin ids, like btc-bitcoin')
    .option('--top <n>', 'the N best-ranked coins', parsePositiveInteger)
    .option('--all', 'every active coin')
    .option(
      '--series <what>',
      'candles, or prices: no open, high and low, but further back under most plans',
      choice(SERIES),
      'candles',
    )
    .option(
      '--interval <interval>',
      `one or more intervals, separated by commas: ${INTERVALS.join(', ')} (default: 24h); of prices: ${PRICE_WIDTHS.join(', ')} (default: 1d)`,
      list(parseWidth),
    )
    .option('--quote <quote>', 'quote currency of the prices', parseQuote, 'usd');
}

/** Adds the options of a target: series and a span. */
export function targetOptions(command: Command): Command {
  return seriesOptions(command)
    .option(
      '--ever-top <n>',
      'the coins that were among the N largest at the end of any month, by the stored data',
      parsePositiveInteger,
    )
    .option('--inactive', 'only coins that are no longer active; with --all: these as well')
    .option('--start <T>', 'required: a date (UTC midnight), a date-time with its zone, or relative like -30d')
    .option('--end <T>', 'exclusive end (default: now)');
}

/** Checks everything that needs no open database. @throws UsageError */
export function checkTarget(coins: readonly string[], options: TargetOptions, now: Instant): void {
  checkCoins(coins, options);
  for (const interval of intervalsOf(options)) parseSpan(options, interval, now);
}

/** The slots between --start and --end. @throws UsageError for an invalid span */
export function parseSpan(
  { start, end }: Pick<TargetOptions, 'start' | 'end'>,
  interval: Interval,
  now: Instant,
): Span {
  // Commander would report a missing required option before a misspelt one like --strat, so this checks it.
  if (start === undefined)
    throw new UsageError('--start is missing; give one like --start 2024-01-01 or --start -30d.');
  const from = pastOption('--start', start, now);
  const until = end === undefined ? now : timeOption('--end', end, now);
  if (from === now) {
    throw new UsageError(`--start ${start} is now, and nothing has begun since; choose an earlier start, like -30d.`);
  }
  if (until <= from) {
    throw new UsageError(
      `--end ${end ?? 'now'} is not after --start ${start}; --end is exclusive, so choose a later one.`,
    );
  }
  const span = { from: ceilToGrid(from, interval), to: ceilToGrid(Math.min(until, now), interval) };
  if (span.from >= span.to) {
    throw new UsageError(
      `None of the ${describeInterval(interval)} begins between ${formatDay(from)} and ${formatDay(until)}; choose an earlier --start, or a shorter --interval.`,
    );
  }
  return span;
}

/** @throws UsageError when the arguments name no coins, or contradict each other */
export function checkCoins(
  coins: readonly string[],
  { top, all, everTop, inactive }: Pick<TargetOptions, 'top' | 'all' | 'everTop' | 'inactive'>,
): void {
  if (all && (top !== undefined || everTop !== undefined || coins.length > 0)) {
    throw new UsageError('--all already means every coin; give no coins, no --top and no --ever-top with it.');
  }
  if (coins.some((id) => id.trim() === '')) throw new UsageError('A coin id is empty; ids look like btc-bitcoin.');
  if (coins.length === 0 && top === undefined && everTop === undefined && !all && !inactive) {
    throw new UsageError('No coins given; give ids like btc-bitcoin, or --top 100, or --all.');
  }
}

export type NarrowOptions = { readonly interval?: Interval; readonly quote?: Quote };

/** Adds the arguments that select stored series, for `gaps` and `verify`. */
export function narrowOptions(command: Command): Command {
  return command
    .argument('[coin...]', 'coin ids, like btc-bitcoin; all series when none is given')
    .option('--interval <interval>', 'only this interval', parseInterval)
    .option('--quote <quote>', 'only this quote currency', parseQuote);
}

/** @throws UsageError for coins without series; the error names them and the most similar coins that have some */
export async function seriesFilter(
  sql: Sql,
  coins: readonly string[],
  { interval, quote }: NarrowOptions,
): Promise<SeriesFilter> {
  const unknown = coins.length === 0 ? [] : await coinsWithoutSeries(sql, coins);
  if (unknown.length === 0) return { coinIds: coins.length > 0 ? coins : undefined, interval, quote };
  const known = await coinIdsWithSeries(sql);
  const presentIds = await presentIdsOf(sql, unknown);
  const hints = await Promise.all(
    unknown.map(async (id) =>
      presentIds.has(id) ? ` (its id is ${presentIds.get(id)} now)` : coinsMeant(sql, id, new Set(known)),
    ),
  );
  const named = unknown.map((id, i) => `${id}${hints[i]}`).join(', ');
  throw new UsageError(
    known.length === 0
      ? `there are no series yet, so there are none of ${named}; begin with: chandler backfill ${unknown.map((id) => presentIds.get(id) ?? id).join(' ')} --start -30d`
      : `there are no series of ${named}; a coin is named by its id, like btc-bitcoin`,
  );
}

/** Whoever names series and reads exit code 0 believes that all of them are proved. @throws UsageError that names what matches no series */
export async function refuseUnmatched(sql: Sql, filter: SeriesFilter): Promise<void> {
  const { coinIds, ...narrow } = filter;
  if (coinIds === undefined && narrow.interval === undefined && narrow.quote === undefined) return;
  const without = coinIds && (await coinsWithoutSeries(sql, coinIds, narrow));
  if (without === undefined ? (await countSeries(sql, narrow)) > 0 : without.length === 0) return;
  const what = describeFilter({ ...narrow, coinIds: without });
  throw new UsageError(`there are no series of ${what}; chandler status lists what is stored`);
}

/** The filter in words, like "btc-bitcoin: 1h candles in usd". */
export function describeFilter({ coinIds, interval, quote }: SeriesFilter): string {
  const what = interval === undefined ? quote && 'any interval' : describeInterval(interval);
  const series = [what, quote && `in ${quote}`].filter(Boolean).join(' ');
  return [coinIds?.join(', '), series].filter(Boolean).join(': ');
}

const MOST_MEANT = 3;

/** The user may have meant a symbol or a name, or misspelt an id. */
async function coinsMeant(sql: Sql, id: string, known: ReadonlySet<string>): Promise<string> {
  return didYouMeanHint((await nearestCoinIds(sql, id, 10)).filter((one) => known.has(one)).slice(0, MOST_MEANT));
}
