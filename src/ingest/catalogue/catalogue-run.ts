/**
 * A run of a schedule of the catalogue: asks about as many things as it may, one request each, those never asked and the oldest
 * first. One request = one unit of quota = one transaction. What upstream does not know, or cannot say, waits longer each time; what
 * it does not give to the plan is left alone until the plan changes.
 */
import type { Clock } from '../../clock.ts';
import { TOOL_LIMIT } from '../../contract/interface/tools.ts';
import {
  type CatalogueItem,
  type CatalogueKind,
  countAskedSince,
  readDue,
} from '../../store/catalogue/catalogue-item.ts';
import { readCatalogueRefusals } from '../../store/catalogue/catalogue-refusal.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { INTERRUPTED, UpstreamError } from '../outcome.ts';
import { createOriginCheck } from '../request/origin.ts';
import type { SendRequest } from '../request/send-request.ts';
import type { Run, RunContext, RunOutcome } from '../schedule-run.ts';
import type { Session } from '../session.ts';
import { CATALOGUE, type CatalogueQuestion } from './catalogue-kinds.ts';
import { type ItemOutcome, offUntil, type Parts } from './catalogue-outcome.ts';
import { CATALOGUE_PLAN } from './catalogue-plan.ts';
import { settleAnswer } from './catalogue-settle.ts';
import { unanswered, unansweredByTool } from './catalogue-unanswered.ts';
import { createToolRegistry, RATIONALE } from './tool-registry.ts';

export type CatalogueDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly session: Pick<Session, 'sendRequest' | 'tools' | 'accountId' | 'plan'>;
  /** Requests that a run of a kind may make. */
  readonly mostOf: (kind: CatalogueKind) => number;
};

export function createCatalogueRuns(deps: CatalogueDeps): Readonly<Record<CatalogueKind, Run>> {
  const { sql, clock, session, mostOf } = deps;
  const book = session.tools === null ? null : createToolRegistry({ sql, clock, tools: session.tools });
  const parts: Parts = { sql, clock, session, book, checkOrigin: createOriginCheck(sql) };
  const kinds = Object.keys(CATALOGUE) as CatalogueKind[];
  const runs = kinds.map((kind) => [kind, (context: RunContext) => run(parts, kind, mostOf(kind), context)] as const);
  return Object.fromEntries(runs) as Record<CatalogueKind, Run>;
}

/** Troubles in a row that are no chance any more. */
const MOST_TROUBLES = 2;

async function run(parts: Parts, kind: CatalogueKind, most: number, context: RunContext): Promise<RunOutcome> {
  const { sql, clock, session } = parts;
  const { tick, signal, retry } = context;
  const { accountId, plan } = session;
  const refusals = await retry(() => readCatalogueRefusals(sql, { accountId, plan: plan.name }));
  const refusal = refusals.find((one) => one.kind === kind);
  const off = refusal === undefined ? null : offUntil(refusal, clock.now());
  if (off !== null) return off;
  const { ageMs, idleAgeMs } = CATALOGUE_PLAN[kind];
  let troubles = 0;
  for (let questions = 0; ; questions++) {
    const asked = await retry(() => countAskedSince(sql, { kind, accountId, since: tick }));
    // By a clock that was set back meanwhile nothing has been asked yet.
    if (Math.max(asked, questions) >= most) return { kind: 'done' };
    // One by one: what is asked before may change what is due.
    const [item] = await retry(() => readDue(sql, kind, { now: clock.now(), limit: 1, ageMs, idleAgeMs }));
    if (item === undefined) return { kind: 'done' };
    if (signal.aborted) return { kind: 'held', until: clock.now(), reason: INTERRUPTED };
    const outcome = await askItem(parts, kind, item, context);
    if (outcome.kind === 'held') return outcome;
    troubles = outcome.kind === 'trouble' ? troubles + 1 : 0;
    if (outcome.kind === 'trouble' && troubles >= MOST_TROUBLES) {
      throw new UpstreamError(`${kind}: ${outcome.message}`);
    }
  }
}

async function askItem(
  parts: Parts,
  kind: CatalogueKind,
  item: CatalogueItem,
  context: RunContext,
): Promise<ItemOutcome> {
  const { clock, session, book } = parts;
  const { retry, signal, attempt } = context;
  const question = CATALOGUE[kind].question(item.id);
  const spender = { class: 'scheduled', name: kind } as const;
  const given = [...Object.keys(question.arguments), 'limit'];
  try {
    // The tool gives only the beginning of such a list.
    const route =
      book === null || item.isCut ? null : await book.find(question.tool, { given, spender, retry, signal });
    if (route?.kind === 'held') return route;
    const tool = route?.kind === 'tool' ? route.tool : null;
    const limit = tool !== null && question.isLimited ? (tool.mostRows ?? TOOL_LIMIT.most) : null;
    const record = { endpoint: kind, attempt, subject: item.id };
    const sendRequest: SendRequest = tool === null ? session.sendRequest : session.tools!.sendRequest;
    const asked = await sendRequest(
      tool === null
        ? { path: question.path, query: question.query, withText: true }
        : { path: '', withText: true, rpc: callOf(question, limit, tool.required) },
      { spender, record, signal, retry, mayLack: true },
    );
    if (asked.kind === 'held') return { kind: 'held', until: asked.until, reason: asked.reason };
    const asking = { kind, item, context, asked };
    if (asked.answer.kind !== 'answered') {
      return tool === null ? unanswered(parts, asking, asked.answer) : unansweredByTool(parts, asking, asked.answer);
    }
    if (tool !== null) await book!.answered(retry);
    return await settleAnswer(parts, asking, asked.answer, { limit, isOfTool: tool !== null });
  } catch (error) {
    if (signal.aborted) return { kind: 'held', until: clock.now(), reason: INTERRUPTED };
    throw error;
  }
}

function callOf({ tool, arguments: given }: CatalogueQuestion, limit: number | null, required: readonly string[]) {
  const more = {
    ...(limit === null ? {} : { limit }),
    ...(required.includes('rationale') ? { rationale: RATIONALE } : {}),
  };
  return { method: 'tools/call', tool, arguments: { ...given, ...more } } as const;
}
