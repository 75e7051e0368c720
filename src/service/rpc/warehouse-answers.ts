/** The tools that only a warehouse has: candles at any depth, coverage, gaps, the story of a candle and SQL. */
import type { Clock, Instant } from '../../clock.ts';
import type { Missing } from '../../contract/answer/not-found.ts';
import { invalid as invalidParameter, parseInstant } from '../../contract/interface/parameters.ts';
import type { CallOf } from '../../contract/interface/tools.ts';
import { StatementError, type WAREHOUSE_TOOLS, type WarehouseTools } from '../../contract/interface/warehouse-tools.ts';
import type { Access, Caller } from '../../contract/plan/access.ts';
import { type Plan, resolutionOf } from '../../contract/plan/plans.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import { callerAddress } from '../../core/caller/address.ts';
import { ALL_INTERVALS, floorToGrid, INTERVAL_MS, type Interval, isPriceInterval } from '../../core/interval.ts';
import { impossibleId } from '../http/request-input.ts';
import { answerOhlcv } from './history-answers.ts';
import { hasImpossibleId } from './tool-answers.ts';
import { answered, failed, invalid, type ToolOutcome } from './tool-outcome.ts';

type WarehouseCall = CallOf<typeof WAREHOUSE_TOOLS>;

type Sources = {
  readonly data: MarketData<Missing>;
  readonly access: Access;
  readonly clock: Clock;
  readonly warehouse: WarehouseTools;
  readonly caller: Caller;
};

export async function answerWarehouseTool(
  { data, access, clock, warehouse, caller }: Sources,
  plan: Plan,
  call: WarehouseCall,
): Promise<ToolOutcome> {
  const isImpossible = hasImpossibleId(call.arguments);
  switch (call.name) {
    case 'getOHLCV': {
      if (isImpossible) return answered(impossibleId(data));
      const { coinId, ...given } = call.arguments;
      return answerOhlcv({ data, access, clock, plan: plan.name }, coinId, given);
    }
    case 'getCoverage':
      return answered(isImpossible ? [] : await warehouse.coverage(call.arguments));
    case 'getGaps':
      return answered(isImpossible ? [] : await warehouse.gaps(call.arguments));
    case 'explainCandle':
      return isImpossible ? NO_SERIES : explainCandle(access, warehouse, plan, call.arguments);
    case 'runSql':
      if (warehouse.runSql === undefined) throw new Error('runSql was called, and is not offered');
      // A statement can read everything, so only plans without limits on reading may run one.
      if (!seesEverything(access, plan)) return failed(402, 'Running SQL is not allowed in this plan');
      try {
        return answered(
          await warehouse.runSql({ ...call.arguments, caller: caller.key ?? callerAddress(caller.address) }),
        );
      } catch (error) {
        if (error instanceof StatementError) return failed(error.status, error.message);
        throw error;
      }
  }
}

function seesEverything(access: Access, plan: Plan): boolean {
  const hasWholeHistory = ALL_INTERVALS.every((interval) => refusalOf(access, plan, interval, 0) === null);
  return hasWholeHistory && plan.tickerCoins === null && plan.circulatingSupply;
}

const NO_SERIES = failed(404, 'there is no such series; getCoverage lists the series of a coin');

/** Why the plan may not read the rows of such a series from `start` on; null if it may. */
function refusalOf(access: Access, plan: Plan, interval: Interval, start: Instant): string | null {
  if (!isPriceInterval(interval)) return access.refuseHistory(plan.name, interval, start);
  return access.refuseTickerHistory(plan.name, resolutionOf(INTERVAL_MS[interval]), start);
}

/** A plan that may not read a candle or a price may not read its story either. */
async function explainCandle(
  access: Access,
  warehouse: WarehouseTools,
  plan: Plan,
  { time, ...series }: Extract<WarehouseCall, { name: 'explainCandle' }>['arguments'],
): Promise<ToolOutcome> {
  const at = parseInstant(time, 'time');
  if (!at.ok) return invalid(at.parameter, at.message);
  const refusal = refusalOf(access, plan, series.interval, floorToGrid(at.value, series.interval));
  if (refusal !== null) return failed(402, refusal);
  const story = await warehouse.explain({ ...series, at: at.value });
  if (story === 'no series') return NO_SERIES;
  if (story !== 'not opened yet') return answered(story);
  const { parameter, message } = invalidParameter('time', 'must not lie in the future', time);
  return invalid(parameter, message);
}
