/** Finds coins by symbol, name, id or old id. A search that can mean only one coin opens its page directly. */
import { formatCount, formatSeries } from '../../core/format.ts';
import { findCoins, onlyMatch, readStoredSeries, type StoredSeries } from '../../views/chart/find-coins.ts';
import { readText } from '../parts/address.ts';
import { Table } from '../parts/table.tsx';
import type { ScreenInput, ScreenView } from '../screen.ts';
import { coinUrl } from './coin-address.ts';

const MOST_COINS = 50;

export async function searchScreen({ deps: { sql }, url }: ScreenInput): Promise<ScreenView> {
  const q = readText(url.searchParams, 'q') ?? '';
  const coins = q === '' ? [] : await findCoins(sql, q, MOST_COINS + 1);
  const meant = url.searchParams.get('all') === 'true' ? null : onlyMatch(coins, q);
  const shown = coins.slice(0, MOST_COINS);
  const ids = shown.map(({ id }) => id);
  const series = new Map<string, StoredSeries[]>(ids.map((id) => [id, []]));
  if (meant === null) for (const one of await readStoredSeries(sql, ids)) series.get(one.coinId)!.push(one);
  const body = (
    <div>
      <h1>{q === '' ? 'Search' : `Coins that match ${JSON.stringify(q)}`}</h1>
      {q === '' && <p>Enter the symbol, the name or the id of a coin. An id that a coin had before works too.</p>}
      {coins.length > MOST_COINS && (
        <p>Only the first {MOST_COINS} coins are shown. A longer text finds fewer coins.</p>
      )}
      {q !== '' && (
        <Table
          caption="Exact matches first, then by rank"
          rows={shown}
          empty="No coin matches this text by its symbol, name, id or an old id."
          columns={[
            { title: 'Rank', isNumber: true, cell: ({ rank }) => (rank > 0 ? formatCount(rank) : '') },
            { title: 'Name', cell: ({ id, name }) => <a href={coinUrl(id)}>{name}</a> },
            { title: 'Symbol', cell: ({ symbol }) => symbol },
            {
              title: 'Id',
              cell: ({ id, oldId }) => (
                <span>
                  <code>{id}</code>
                  {oldId !== null && <span class="soft"> was {oldId}</span>}
                </span>
              ),
            },
            { title: 'Active', cell: ({ isActive }) => (isActive ? 'yes' : <span class="warn">no</span>) },
            { title: 'Stored', cell: ({ id }) => series.get(id)!.map(formatSeries).join(', ') },
          ]}
        />
      )}
    </div>
  );
  const title = q === '' ? 'Search' : `Search: ${q}`;
  if (meant === null) return { title, body };
  // Keeps an old id in the address, so that the page says what became of it.
  const to = meant.oldId !== null && meant.oldId === q ? meant.oldId : meant.id;
  return { title, body, redirect: `${coinUrl(to)}${coins.length > 1 ? `?${new URLSearchParams({ q })}` : ''}` };
}
