/** Puts a market's catalogue into a warehouse as answers about it would be: without any quota or schedule. */
import type { MarketData } from '../../src/contract/market-data.ts';
import { pickTickers } from '../../src/core/ticker.ts';
import { examineTickers } from '../../src/ingest/examine-tickers.ts';
import type { Sql } from '../../src/store/connect.ts';
import { writeContracts } from '../../src/store/contract.ts';
import { type DocumentKind, writeDocuments } from '../../src/store/document.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../src/store/partition.ts';
import { writePerson } from '../../src/store/person.ts';
import { writeTags } from '../../src/store/tag.ts';
import { writeTickers } from '../../src/store/ticker.ts';

const QUOTES = { quotes: ['USD'] } as const;

/** All of it, as of `at`. */
export async function fillCatalogue(sql: Sql, data: MarketData, at: number): Promise<void> {
  const keep = (kind: DocumentKind, id: string, value: unknown) =>
    value === null
      ? undefined
      : writeDocuments(sql, {
          kind,
          documents: [{ id, text: JSON.stringify(value), essence: JSON.stringify(value) }],
          at,
        });
  const people = new Set<string>();
  for (const { id } of await data.coins()) {
    const coin = await data.coin(id);
    for (const { id: person } of coin?.team ?? []) people.add(person);
    await keep('coin', id, coin);
    await keep('coin_events', id, await data.coinEvents(id));
    await keep('coin_exchanges', id, await data.coinExchanges(id));
    await keep('coin_markets', id, await data.coinMarkets({ coinId: id, ...QUOTES }));
  }
  for (const { id } of await data.exchanges(QUOTES))
    await keep('exchange_markets', id, await data.exchangeMarkets({ exchangeId: id, ...QUOTES }));
  const tags = await data.tags();
  await writeTags(sql, { tags, at, isWhole: true });
  for (const tag of tags) await keep('tag', tag.id, tag);
  for (const id of people) {
    const person = await data.person(id);
    await keep('person', id, person);
    if (person !== null) await writePerson(sql, person, at);
  }
  await keep('platforms', '', await data.platforms());
  for (const platformId of await data.platforms()) {
    const contracts = (await data.contracts(platformId)) ?? [];
    await keep('contracts', platformId, contracts);
    await writeContracts(sql, { platformId, contracts, at, isWhole: true });
  }
}

/** A snapshot of the tickers at each of these instants, ascending, with the values of now. */
export async function fillTickerHistory(sql: Sql, data: MarketData, ats: readonly number[]): Promise<void> {
  await ensurePartitionsOf(sql, TICKER_HISTORY, { from: ats[0]!, to: ats.at(-1)! + 1 });
  const examined = examineTickers(await data.tickers(QUOTES), Number.MAX_SAFE_INTEGER);
  if (!examined.ok) throw new Error(examined.problem);
  for (const at of ats) {
    const tickers = pickTickers(examined.value, () => true);
    await writeTickers(sql, { ...tickers, updatedAt: tickers.updatedAt.map(() => at) }, at);
  }
}
