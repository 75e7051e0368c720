/** The visible fields of a record: those that the plan includes and that were requested. REST and tools use the same rules. */

import type { TagField } from '../../contract/interface/endpoint-parameters.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import type { Tag } from '../../contract/record/catalogue.ts';
import type { Ticker } from '../../contract/record/records.ts';

/** A ticker without what the plan does not include (decision 18). */
export function visibleTicker(plan: Plan, ticker: Ticker): Partial<Ticker> {
  if (plan.circulatingSupply) return ticker;
  const { circulating_supply: _, ...rest } = ticker;
  return rest;
}

/** The tickers that the plan includes, and at most `limit`. */
export function visibleTickers(plan: Plan, tickers: readonly Ticker[], limit?: number): Partial<Ticker>[] {
  const most = Math.min(plan.tickerCoins ?? Number.POSITIVE_INFINITY, limit ?? Number.POSITIVE_INFINITY);
  return tickers.slice(0, most).map((ticker) => visibleTicker(plan, ticker));
}

/** A tag without the lists that were not requested. */
export function visibleTag(fields: readonly TagField[], tag: Tag): Tag {
  const { coins, icos, ...rest } = tag;
  return {
    ...rest,
    ...(fields.includes('coins') && coins !== undefined ? { coins } : {}),
    ...(fields.includes('icos') && icos !== undefined ? { icos } : {}),
  } as Tag;
}
