/** What the tools answer that only a warehouse has. */
import { isThere, type Nothing } from '../../contract/answer/not-found.ts';
import { standingOnSame } from '../../contract/answer/provenance.ts';
import { parseOhlcvParameters } from '../../contract/interface/parameters.ts';
import type { CallOf } from '../../contract/interface/tools.ts';
import { StatementError, type WAREHOUSE_TOOLS, type WarehouseTools } from '../../contract/interface/warehouse-tools.ts';
import type { Access } from '../../contract/plan/access.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import type { Candles } from '../../contract/record/market-data.ts';
import { writeOhlcvRows } from '../../contract/record/ohlcv.ts';
import { INTERVALS } from '../../core/interval.ts';
import { impossible } from '../http/request-input.ts';
import { hasImpossibleId } from './tool-answers.ts';

export type WarehouseCall = CallOf<typeof WAREHOUSE_TOOLS>;

/** The output; that there is no such id; or why not. */
export type WarehouseAnswer =
  | { readonly kind: 'answered'; readonly output: object | Nothing }
  | { readonly kind: 'refused'; readonly status: 400 | 402 | 429; readonly message: string }
  | { readonly kind: 'invalid'; readonly argument: string; readonly message: string };

type Sources = { readonly data: Candles<Nothing>; readonly access: Access; readonly warehouse: WarehouseTools };

export async function answerWarehouseTool(
  { data, access, warehouse }: Sources,
  plan: Plan,
  call: WarehouseCall,
): Promise<WarehouseAnswer> {
  const isImpossible = hasImpossibleId(call.arguments);
  switch (call.name) {
    case 'getOHLCV':
      return isImpossible ? answered(impossible(data)) : ohlcv(data, access, plan, call.arguments);
    case 'getCoverage':
      return answered(isImpossible ? [] : await warehouse.coverage(call.arguments));
    case 'getGaps':
      return answered(isImpossible ? [] : await warehouse.gaps(call.arguments));
    case 'runSql':
      if (warehouse.runSql === undefined) throw new Error('runSql is not offered, and was called');
      // Statements see through every wall of a plan: they are for those whose plan has none.
      if (!seesEverything(access, plan)) return { kind: 'refused', status: 402, message: SQL_WALL };
      try {
        return answered(await warehouse.runSql(call.arguments));
      } catch (error) {
        if (error instanceof StatementError) return { kind: 'refused', status: error.status, message: error.message };
        throw error;
      }
  }
}

const SQL_WALL = 'Running SQL is not allowed in this plan';

function seesEverything(access: Access, plan: Plan): boolean {
  const hasNoWall = INTERVALS.every((interval) => access.refuseHistory(plan.name, interval, 0) === null);
  return hasNoWall && plan.tickerCoins === null && plan.circulatingSupply;
}

/** The same rules, walls and candles as `/coins/{id}/ohlcv/historical`; only an unknown coin is told apart from one without candles. */
async function ohlcv(
  data: Candles<Nothing>,
  access: Access,
  plan: Plan,
  { coinId, ...given }: Extract<WarehouseCall, { name: 'getOHLCV' }>['arguments'],
): Promise<WarehouseAnswer> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, String(value));
  const parsed = parseOhlcvParameters(query);
  if (!parsed.ok) return { kind: 'invalid', argument: parsed.parameter, message: parsed.message };
  const { start, ...question } = parsed.value;
  const wall = access.refuseHistory(plan.name, question.interval, start);
  if (wall !== null) return { kind: 'refused', status: 402, message: wall };
  const candles = await data.ohlcv({ ...question, coinId });
  if (!isThere(candles)) return answered(candles);
  return answered(standingOnSame(JSON.parse(writeOhlcvRows(candles)) as object, candles));
}

function answered(output: object | Nothing): WarehouseAnswer {
  return { kind: 'answered', output };
}
