/** Candles and price histories for tools, with the rules, limits and refusals of REST. */
import type { Clock } from '../../clock.ts';
import { isFound, type Missing } from '../../contract/answer/not-found.ts';
import { withSameProvenance } from '../../contract/answer/provenance.ts';
import { parseOhlcvParameters, parseTickerHistoryParameters } from '../../contract/interface/endpoint-parameters.ts';
import type { Access } from '../../contract/plan/access.ts';
import type { PlanName } from '../../contract/plan/plans.ts';
import type { MarketData, OhlcvQuery } from '../../contract/record/market-data.ts';
import { writeOhlcvRows } from '../../contract/record/ohlcv.ts';
import { answered, failed, invalid, type ToolOutcome } from './tool-outcome.ts';

type Given = Readonly<Record<string, string | number | undefined>>;
type HistorySources = {
  readonly data: Pick<MarketData<Missing>, 'ohlcv' | 'tickerHistory'>;
  readonly access: Pick<Access, 'refuseHistory' | 'refuseTickerHistory'>;
  readonly clock: Clock;
  readonly plan: PlanName;
};

/** The candles of `/coins/{id}/ohlcv/historical`. Here an unknown coin is "not found", not an empty list. */
export async function answerOhlcv(
  { data, access, clock, plan }: HistorySources,
  coinId: string,
  given: Given,
): Promise<ToolOutcome> {
  const parsed = parseOhlcvParameters(queryOf(given), clock.now());
  if (!parsed.ok) return invalid(parsed.parameter, parsed.message);
  const { start, ...question } = parsed.value;
  const refusal = access.refuseHistory(plan, question.interval, start);
  if (refusal !== null) return failed(402, refusal);
  return answerCandles(data, { ...question, coinId });
}

export async function answerCandles(data: HistorySources['data'], query: OhlcvQuery): Promise<ToolOutcome> {
  const candles = await data.ohlcv(query);
  if (!isFound(candles)) return answered(candles);
  return answered(withSameProvenance(JSON.parse(writeOhlcvRows(candles)) as object, candles));
}

/** The rows of `/tickers/{id}/historical`. */
export async function answerTicks(
  { data, access, clock, plan }: HistorySources,
  coinId: string,
  given: Given,
): Promise<ToolOutcome> {
  const parsed = parseTickerHistoryParameters(queryOf(given), clock.now());
  if (!parsed.ok) return invalid(parsed.parameter, parsed.message);
  const { start, resolution, ...question } = parsed.value;
  const refusal = access.refuseTickerHistory(plan, resolution, start);
  return refusal === null ? answered(await data.tickerHistory({ ...question, coinId })) : failed(402, refusal);
}

function queryOf(given: Given): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, String(value));
  return query;
}
