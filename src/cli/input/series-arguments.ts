/** Coins given to commands that read what is there: a misspelt one is an error, not an empty answer. */
import { didYouMean } from '../../core/did-you-mean.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { coinIdsWithSeries, coinsWithoutSeries } from '../../views/operations/series-filter.ts';
import { UsageError } from '../shell/exit.ts';

/** @throws UsageError that names the coins no series has, and the nearest ones that have some. */
export async function requireKnownCoins(sql: Sql, coinIds: readonly string[]): Promise<void> {
  const unknown = coinIds.length === 0 ? [] : await coinsWithoutSeries(sql, coinIds);
  if (unknown.length === 0) return;
  const known = await coinIdsWithSeries(sql);
  const named = unknown.map((id) => `${id}${didYouMean(id, known, 3)}`).join(', ');
  throw new UsageError(
    known.length === 0
      ? `nothing has been asked for yet, so there is nothing about ${named}; begin with: chandler backfill ${unknown.join(' ')} --start -30d`
      : `nothing was ever asked for of ${named}; coins are named by their id, like btc-bitcoin`,
  );
}
