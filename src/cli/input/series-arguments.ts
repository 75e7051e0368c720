/** The coins, intervals and quotes that `gaps` and `verify` accept; a misspelt coin is an error, not an empty answer. */
import type { Command } from 'commander';
import { didYouMean } from '../../core/settings/did-you-mean.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { coinIdsWithSeries, coinsWithoutSeries } from '../../views/operations/series-filter.ts';
import { UsageError } from '../shell/exit.ts';
import { argument, parseInterval, parseQuote } from './options.ts';

/** Adds the arguments that narrow the series. */
export function narrowing(command: Command): Command {
  return command
    .argument('[coin...]', 'coin ids, like btc-bitcoin; all series when none is given')
    .option('--interval <interval>', 'only this interval', argument(parseInterval))
    .option('--quote <quote>', 'only this quote currency', argument(parseQuote));
}

/** @throws UsageError that names the coins without series, and the most similar coins that have some. */
export async function requireKnownCoins(sql: Sql, coinIds: readonly string[]): Promise<void> {
  const unknown = coinIds.length === 0 ? [] : await coinsWithoutSeries(sql, coinIds);
  if (unknown.length === 0) return;
  const known = await coinIdsWithSeries(sql);
  const named = unknown.map((id) => `${id}${didYouMean(id, known, 3)}`).join(', ');
  throw new UsageError(
    known.length === 0
      ? `there are no series yet, so none of ${named}; begin with: chandler backfill ${unknown.join(' ')} --start -30d`
      : `there are no series of ${named}; a coin is named by its id, like btc-bitcoin`,
  );
}
