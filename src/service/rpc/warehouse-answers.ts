/** The answers of the tools that only a warehouse has. */
import { isFound, type Missing } from '../../contract/answer/not-found.ts';
import { withSameProvenance } from '../../contract/answer/provenance.ts';
import { parseOhlcvParameters } from '../../contract/interface/parameters.ts';
import type { CallOf } from '../../contract/interface/tools.ts';
import { StatementError, type WAREHOUSE_TOOLS, type WarehouseTools } from '../../contract/interface/warehouse-tools.ts';
import type { Access } from '../../contract/plan/access.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import type { Candles } from '../../contract/record/market-data.ts';
import { writeOhlcvRows } from '../../contract/record/ohlcv.ts';
import { INTERVALS } from '../../core/interval.ts';
import { impossibleId } from '../http/request-input.ts';
import { hasImpossibleId } from './tool-answers.ts';

export type WarehouseCall = CallOf<typeof WAREHOUSE_TOOLS>;

/** The output, or "not found"; or a refusal. */
export type WarehouseAnswer =
  | { readonly kind: 'answered'; readonly output: object | Missing }
  | { readonly kind: 'refused'; readonly status: 400 | 402 | 429; readonly message: string }
  | { readonly kind: 'invalid'; readonly argument: string; readonly message: string };

type Sources = { readonly data: Candles<Missing>; readonly access: Access; readonly warehouse: WarehouseTools };

export async function answerWarehouseTool(
  { data, access, warehouse }: Sources,
  plan: Plan,
  call: WarehouseCall,
): Promise<WarehouseAnswer> {
  const isImpossible = hasImpossibleId(call.arguments);
  switch (call.name) {
    case 'getOHLCV':
      return isImpossible ? answered(impossibleId(data)) : ohlcv(data, access, plan, call.arguments);
    case 'getCoverage':
      return answered(isImpossible ? [] : await warehouse.coverage(call.arguments));
    case 'getGaps':
      return answered(isImpossible ? [] : await warehouse.gaps(call.arguments));
    case 'runSql':
      if (warehouse.runSql === undefined) throw new Error('runSql was called, and is not offered');
      // A statement reads everything, so it is for plans without limits on what they read.
      if (!seesEverything(access, plan)) return { kind: 'refused', status: 402, message: SQL_REFUSAL };
      try {
        return answered(await warehouse.runSql(call.arguments));
      } catch (error) {
        if (error instanceof StatementError) return { kind: 'refused', status: error.status, message: error.message };
        throw error;
      }
  }
}

const SQL_REFUSAL = 'Running SQL is not allowed in this plan';

function seesEverything(access: Access, plan: Plan): boolean {
  const hasWholeHistory = INTERVALS.every((interval) => access.refuseHistory(plan.name, interval, 0) === null);
  return hasWholeHistory && plan.tickerCoins === null && plan.circulatingSupply;
}

/** The rules, limits and candles of `/coins/{id}/ohlcv/historical`; but an unknown coin is not found, instead of having no candles. */
async function ohlcv(
  data: Candles<Missing>,
  access: Access,
  plan: Plan,
  { coinId, ...given }: Extract<WarehouseCall, { name: 'getOHLCV' }>['arguments'],
): Promise<WarehouseAnswer> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, String(value));
  const parsed = parseOhlcvParameters(query);
  if (!parsed.ok) return { kind: 'invalid', argument: parsed.parameter, message: parsed.message };
  const { start, ...question } = parsed.value;
  const refusal = access.refuseHistory(plan.name, question.interval, start);
  if (refusal !== null) return { kind: 'refused', status: 402, message: refusal };
  const candles = await data.ohlcv({ ...question, coinId });
  if (!isFound(candles)) return answered(candles);
  return answered(withSameProvenance(JSON.parse(writeOhlcvRows(candles)) as object, candles));
}

function answered(output: object | Missing): WarehouseAnswer {
  return { kind: 'answered', output };
}
