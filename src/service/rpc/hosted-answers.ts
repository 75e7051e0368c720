/** The tools of the vendor's hosted server beyond the API document's. */
import type { Clock } from '../../clock.ts';
import { INVALID_KEY, KEY_REQUIRED } from '../../contract/answer/errors.ts';
import { isFound, type Missing } from '../../contract/answer/not-found.ts';
import { withSameProvenance } from '../../contract/answer/provenance.ts';
import { quote as quoteParameter } from '../../contract/interface/endpoint-parameters.ts';
import { type HOSTED_TOOLS, RESOLVED } from '../../contract/interface/hosted-tools.ts';
import { oneMapping } from '../../contract/interface/mapping-parameters.ts';
import type { CallOf } from '../../contract/interface/tools.ts';
import type { Access, Caller } from '../../contract/plan/access.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import { ID_PROVIDERS } from '../../contract/record/catalogue.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import { formatTime } from '../../contract/time.ts';
import { DAY, floorToGrid } from '../../core/interval.ts';
import { VERSION } from '../../core/version.ts';
import { impossibleId, isPossibleId } from '../http/request-input.ts';
import { answerCandles, answerOhlcv, answerTicks } from './history-answers.ts';
import { hasImpossibleId } from './tool-answers.ts';
import { answered, failed, invalid, type ToolOutcome } from './tool-outcome.ts';

type HostedCall = CallOf<typeof HOSTED_TOOLS>;
type Sources = {
  readonly data: MarketData<Missing>;
  readonly access: Access;
  readonly clock: Clock;
  readonly latestTurnsAfterMs: number;
  readonly plan: Plan;
  readonly caller: Caller;
  /** The names of the offered tools. */
  readonly names: readonly string[];
};

const SERVER = { server: 'chandler', version: VERSION } as const;
const MOST_MATCHES = 10;

export async function answerHostedTool(of: Sources, call: HostedCall): Promise<ToolOutcome> {
  const { data, access, clock, latestTurnsAfterMs, plan, caller, names } = of;
  if (hasImpossibleId(call.arguments)) return answered(impossibleId(data));
  const sources = { data, access, clock, plan: plan.name };
  switch (call.name) {
    case 'status':
      return answered({ status: 'ok', ...SERVER, time: formatTime(clock.now()) });
    case 'getCoinOHLCVLatest':
      return oneDay(data, call.arguments, floorToGrid(clock.now() - latestTurnsAfterMs, '24h') - DAY);
    case 'getCoinOHLCVToday':
      return oneDay(data, call.arguments, floorToGrid(clock.now(), '24h'));
    case 'getCoinOHLCVHistorical': {
      const { coinId, ...given } = call.arguments;
      return answerOhlcv(sources, coinId, given);
    }
    case 'getTickersHistoricalById': {
      const { coinId, ...given } = call.arguments;
      return answerTicks(sources, coinId, given);
    }
    case 'getHistoricalTickerByContract': {
      const { platformId, contractAddress, ...given } = call.arguments;
      const found = await data.coinOfContract({ platformId, address: contractAddress });
      return isFound(found) ? answerTicks(sources, found.coinId, given) : answered(found);
    }
    case 'resolveId': {
      const { type, query } = call.arguments;
      const category = RESOLVED[type];
      const found = await data.search({ q: query, categories: [category], symbolOnly: false, limit: MOST_MATCHES });
      return answered(withSameProvenance({ type, query, matches: found[category] ?? [] }, found));
    }
    case 'keyInfo': {
      const info = await access.account(caller);
      return info ? answered(info) : failed(403, caller.key === null ? KEY_REQUIRED : INVALID_KEY);
    }
    case 'getChangelogIDs': {
      const refusal = access.refuseIdChanges(plan.name);
      return refusal === null ? answered(await data.idChanges(call.arguments)) : failed(402, refusal);
    }
    case 'getCapabilities': {
      const { name, intervals, historyDepthMs } = plan;
      const history_days = historyDepthMs === null ? null : historyDepthMs / DAY;
      return answered({ ...SERVER, plan: name, intervals, history_days, tools: names });
    }
    case 'getMappings': {
      const query = oneMapping(ID_PROVIDERS.map((provider) => [provider, call.arguments[provider]]));
      if (!query.ok) return invalid(query.parameter, query.message);
      const refusal = access.refuseMappings(plan.name);
      if (refusal !== null) return failed(402, refusal);
      return answered(isPossibleId(query.value.id) ? await data.mapping(query.value) : impossibleId(data));
    }
    case 'submitFeedback':
      return failed(404, 'this server collects no feedback: tell its operator');
  }
}

function oneDay(
  data: MarketData<Missing>,
  { coinId, quote }: { readonly coinId: string; readonly quote?: string | undefined },
  at: number,
): Promise<ToolOutcome> | ToolOutcome {
  const parsed = quoteParameter.parse(quote ?? null);
  if (!parsed.ok) return invalid(parsed.parameter, parsed.message);
  return answerCandles(data, { coinId, quote: parsed.value, interval: '24h', from: at, to: at, limit: 1 });
}
