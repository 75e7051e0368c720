/** Stores a history of tickers as answers would, without quota or schedule. */
import type { MarketData } from '../../src/contract/record/market-data.ts';
import { pickTickers } from '../../src/core/ticker.ts';
import { validateTickers } from '../../src/ingest/snapshot/validate-tickers.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { writeTickers } from '../../src/store/snapshot/ticker.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../src/store/upkeep/partition.ts';

const QUOTES = { quotes: ['USD'] } as const;

/** A snapshot of the tickers at each of these instants, ascending, with the present values. */
export async function fillTickerHistory(sql: Sql, data: MarketData, ats: readonly number[]): Promise<void> {
  await ensurePartitionsOf(sql, TICKER_HISTORY, { from: ats[0]!, to: ats.at(-1)! + 1 });
  const validated = validateTickers(await data.tickers(QUOTES), Number.MAX_SAFE_INTEGER);
  if (!validated.ok) throw new Error(validated.problem);
  for (const at of ats) {
    const tickers = pickTickers(validated.value, () => true);
    await writeTickers(sql, { ...tickers, updatedAt: tickers.updatedAt.map(() => at) }, at);
  }
}
