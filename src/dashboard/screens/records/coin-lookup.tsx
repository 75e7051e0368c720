/** Which coin a text in the filter means (its id, symbol, name or an old id), and what the page says when it is not exactly one coin. */
import type { FC } from 'hono/jsx';
import type { Sql } from '../../../store/connection/connect.ts';
import { type FoundCoin, findCoins, onlyMatch, readOldIds } from '../../../views/chart/find-coins.ts';
import { coinUrl } from '../../coin/coin-address.ts';
import { withFields } from '../../parts/address.ts';

type CoinLookup = {
  readonly text: string;
  /** Null when the text matches no coin or several. */
  readonly coin: FoundCoin | null;
  /** Ids of the coin, including old ones. */
  readonly ids: readonly string[];
  /** Coins that the text could mean, the best match first. */
  readonly candidates: readonly FoundCoin[];
};

const MOST_CANDIDATES = 10;

export async function lookUpCoin(sql: Sql, text: string): Promise<CoinLookup> {
  const candidates = await findCoins(sql, text, MOST_CANDIDATES);
  const coin = onlyMatch(candidates, text);
  const ids = coin === null ? [] : [coin.id, ...(await readOldIds(sql, coin.id))];
  return { text, coin, ids, candidates };
}

export const CoinLookupResult: FC<{ readonly meant: CoinLookup; readonly url: URL }> = ({ meant, url }) => {
  const { text, coin, candidates } = meant;
  if (coin !== null)
    return (
      <p>
        Requests of <a href={coinUrl(coin.id)}>{coin.name}</a> (<code>{coin.id}</code>).
      </p>
    );
  if (candidates.length === 0)
    return <p class="notice warn">No coin matches {JSON.stringify(text)} by its symbol, name, id or an old id.</p>;
  return (
    <div class="notice warn">
      <p>{JSON.stringify(text)} can mean several coins. Choose one:</p>
      <ul>
        {candidates.map(({ id, name, symbol, isActive }) => (
          <li>
            <a href={withFields(url, { coin: id, before: null })}>
              {name} ({symbol})
            </a>{' '}
            <code>{id}</code>
            {!isActive && ', no longer active'}
          </li>
        ))}
      </ul>
      {candidates.length === MOST_CANDIDATES && <p>There may be more coins. A longer text finds fewer.</p>}
    </div>
  );
};
