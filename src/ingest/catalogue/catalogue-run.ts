/**
 * A run of a schedule of the catalogue. It requests as many items as it may, with one request each: first the items that were never requested, then
 * the oldest. One request = one unit of quota = one transaction. An item that the upstream does not know, refuses, or fails on, waits longer each
 * time. A kind that the plan does not include is not requested until the plan changes.
 */
import type { Clock } from '../../clock.ts';
import { TOOL_LIMIT } from '../../contract/interface/tools.ts';
import {
  type CatalogueItem,
  type CatalogueKind,
  countRequestsSince,
  readDue,
} from '../../store/catalogue/catalogue-item.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { ListedTool } from '../../store/work/rpc-interface.ts';
import { findClaim } from '../../store/work/second-opinion.ts';
import { INTERRUPTED, UpstreamError } from '../outcome.ts';
import { createOriginCheck } from '../request/origin.ts';
import type { SendRequest } from '../request/send-request.ts';
import type { Run, RunContext, RunOutcome } from '../schedule-run.ts';
import type { Session } from '../session.ts';
import { CATALOGUE, type CatalogueQuestion } from './catalogue-kinds.ts';
import { type CatalogueContext, type ItemOutcome, refusalOf, refusedUntil } from './catalogue-outcome.ts';
import { CATALOGUE_PLAN } from './catalogue-plan.ts';
import { settleAnswer } from './catalogue-settle.ts';
import { unanswered, unansweredByTool } from './catalogue-unanswered.ts';
import { createToolRegistry, RATIONALE } from './tool-registry.ts';

type CatalogueDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly session: Pick<Session, 'sendRequest' | 'tools' | 'accountId' | 'plan'>;
  /** The most requests of a run of this kind. */
  readonly mostOf: (kind: CatalogueKind) => number;
};

export function createCatalogueRuns(deps: CatalogueDeps): Readonly<Record<CatalogueKind, Run>> {
  const { sql, clock, session, mostOf } = deps;
  const registry = session.tools === null ? null : createToolRegistry({ sql, clock, tools: session.tools });
  const catalogue: CatalogueContext = { sql, clock, session, registry, checkOrigin: createOriginCheck(sql) };
  const kinds = Object.keys(CATALOGUE) as CatalogueKind[];
  const runs = kinds.map(
    (kind) => [kind, (context: RunContext) => run(catalogue, kind, mostOf(kind), context)] as const,
  );
  return Object.fromEntries(runs) as Record<CatalogueKind, Run>;
}

/** So many failures in a row are no accident. */
const MOST_FAILURES = 2;

async function run(
  catalogue: CatalogueContext,
  kind: CatalogueKind,
  most: number,
  context: RunContext,
): Promise<RunOutcome> {
  const { sql, clock, session } = catalogue;
  const { tick, signal, retry } = context;
  const { accountId } = session;
  const refusal = await retry(() => findClaim(sql, refusalOf(kind, session)));
  const off = refusal === null ? null : refusedUntil(refusal, clock.now());
  if (off !== null) return off;
  const { ageMs, idleAgeMs } = CATALOGUE_PLAN[kind];
  let failures = 0;
  for (let questions = 0; ; questions++) {
    const requests = await retry(() => countRequestsSince(sql, { kind, accountId, since: tick }));
    // If the clock was set back during the run, the database counts 0, so the run's own count applies.
    if (Math.max(requests, questions) >= most) return { kind: 'done' };
    // One item at a time, because each answer may change which items are due.
    const [item] = await retry(() => readDue(sql, kind, { now: clock.now(), limit: 1, ageMs, idleAgeMs }));
    if (item === undefined) return { kind: 'done' };
    if (signal.aborted) return { kind: 'held', until: clock.now(), reason: INTERRUPTED };
    const outcome = await requestItem(catalogue, kind, item, context);
    if (outcome.kind === 'held') return outcome;
    failures = outcome.kind === 'failed' ? failures + 1 : 0;
    if (outcome.kind === 'failed' && failures >= MOST_FAILURES) {
      throw new UpstreamError(`${kind}: ${outcome.message}`, outcome.message);
    }
  }
}

async function requestItem(
  catalogue: CatalogueContext,
  kind: CatalogueKind,
  item: CatalogueItem,
  context: RunContext,
): Promise<ItemOutcome> {
  const { clock, session, registry } = catalogue;
  const { retry, signal, attempt } = context;
  const question = CATALOGUE[kind].question(item.id);
  const spender = { class: 'scheduled', name: kind } as const;
  const given = [...Object.keys(question.arguments), 'limit'];
  try {
    // The tool returns only the beginning of a truncated list.
    const route =
      registry === null || question.tool === null || item.isTruncated
        ? null
        : await registry.find(question.tool, { given, spender, retry, signal });
    if (route?.kind === 'held') return route;
    const tool = route?.kind === 'tool' ? route.tool : null;
    const limit = tool !== null && question.isLimited ? (tool.mostRows ?? TOOL_LIMIT.most) : null;
    const record = { endpoint: kind, attempt, subject: item.id };
    const sendRequest: SendRequest = tool === null ? session.sendRequest : session.tools!.sendRequest;
    const sent = await sendRequest(
      tool === null
        ? { path: question.path, query: question.query, withText: true }
        : { path: '', withText: true, rpc: callOf(tool, question.arguments, limit) },
      { spender, record, signal, retry, mayLack: true },
    );
    if (sent.kind === 'held') return sent;
    const request = { kind, item, context, sent };
    if (sent.answer.kind !== 'answered') {
      return tool === null
        ? unanswered(catalogue, request, sent.answer)
        : unansweredByTool(catalogue, request, sent.answer);
    }
    if (tool !== null) await registry!.answered(retry);
    return await settleAnswer(catalogue, request, sent.answer, { limit, isOfTool: tool !== null });
  } catch (error) {
    if (signal.aborted) return { kind: 'held', until: clock.now(), reason: INTERRUPTED };
    throw error;
  }
}

function callOf({ name, required }: ListedTool, given: CatalogueQuestion['arguments'], limit: number | null) {
  const more = {
    ...(limit === null ? {} : { limit }),
    ...(required.includes('rationale') ? { rationale: RATIONALE } : {}),
  };
  return { method: 'tools/call', tool: name, arguments: { ...given, ...more } } as const;
}
