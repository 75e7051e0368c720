/** The registry of tools: their list, and calls by name. Plain JSON-RPC and MCP both use it, so that they answer alike. */
import { z } from 'zod';
import type { Clock } from '../../clock.ts';
import { DATABASE_UNAVAILABLE, RETRY_AFTER_SECONDS } from '../../contract/answer/errors.ts';
import type { Missing } from '../../contract/answer/not-found.ts';
import { HOSTED_TOOLS } from '../../contract/interface/hosted-tools.ts';
import { RPC_CODES } from '../../contract/interface/json-rpc.ts';
import { readToolCall, TOOLS, type Tool } from '../../contract/interface/tools.ts';
import { WAREHOUSE_TOOLS, type WarehouseTools } from '../../contract/interface/warehouse-tools.ts';
import type { Access, Caller } from '../../contract/plan/access.ts';
import { PLANS } from '../../contract/plan/plans.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import type { Admit } from './batch-throttle.ts';
import { answerHostedTool } from './hosted-answers.ts';
import { answerTool } from './tool-answers.ts';
import { answered, failed, invalid, rejected, type ToolOutcome, unknownTool } from './tool-outcome.ts';
import { answerWarehouseTool } from './warehouse-answers.ts';

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
type JsonSchema = { [keyword: string]: Json };

/** An entry of `tools/list`. */
export type ListedTool = {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: { readonly type: 'object'; properties: JsonSchema; required: string[] };
  readonly outputSchema: JsonSchema;
  readonly annotations: { readonly readOnlyHint: true; readonly idempotentHint: true; readonly openWorldHint: false };
};

export type Toolbox = {
  readonly tools: readonly ListedTool[];
  /**
   * Costs one request of the caller's quota, whatever the outcome; `admit` decides whether the call is allowed. Never rejects. `name` is null when
   * it was not a string.
   */
  call(caller: Caller, name: string | null, given: unknown, admit: Admit): Promise<ToolOutcome>;
};

export type ToolboxDeps = {
  readonly data: MarketData<Missing>;
  readonly access: Access;
  readonly clock: Clock;
  /** How long after midnight `getCoinOHLCVLatest` switches to the day that has ended; default: at once. */
  readonly latestTurnsAfterMs?: number | undefined;
  /** Whether calls must give a rationale, as the vendor's hosted server requires (upstream-api.md, section 4); default false. */
  readonly requireRationale?: boolean | undefined;
  /** Undefined: the warehouse's own tools are not offered. */
  readonly warehouse?: WarehouseTools | undefined;
  /** Called with unexpected errors; the caller only sees a 500. */
  readonly onError: (error: unknown, where: string) => void;
  /** Whether this error means that the source is temporarily unavailable. Then the caller gets 503 with `Retry-After`. */
  readonly isUnavailable?: ((error: unknown) => boolean) | undefined;
};

export function createToolbox(deps: ToolboxDeps): Toolbox {
  const { data, access, clock, warehouse, onError, isUnavailable } = deps;
  const { latestTurnsAfterMs = 0, requireRationale = false } = deps;
  const extra = offeredBy(warehouse);
  const offered: Readonly<Record<string, Tool>> = { ...TOOLS, ...HOSTED_TOOLS, ...extra };
  const names = Object.keys(offered);

  const answer = async (caller: Caller, name: string | null, given: unknown, admit: Admit): Promise<ToolOutcome> => {
    const admission = await admit(caller, 'data');
    if (admission.kind === 'rejected') return rejected(admission);
    if (name === null || !names.includes(name)) return unknownTool(name, names);
    const plan = PLANS[admission.plan];
    if (requireRationale && !hasRationale(given)) return invalid('rationale', RATIONALE_RULE);
    const read = readToolCall(TOOLS, name, given);
    if (read.kind === 'call') return answered(await answerTool(data, plan, read.call));
    if (read.kind === 'invalid') return invalid(read.argument, read.message);
    const hosted = readToolCall(HOSTED_TOOLS, name, given);
    if (hosted.kind === 'invalid') return invalid(hosted.argument, hosted.message);
    if (hosted.kind === 'call') {
      return answerHostedTool({ data, access, clock, latestTurnsAfterMs, plan, caller, names }, hosted.call);
    }
    const more = readToolCall(WAREHOUSE_TOOLS, name, given);
    if (more.kind === 'invalid') return invalid(more.argument, more.message);
    if (more.kind === 'unknown tool' || warehouse === undefined) return unknownTool(name, names);
    return answerWarehouseTool({ data, access, clock, warehouse, caller }, plan, more.call);
  };

  return {
    tools: Object.entries(offered).map(([name, tool]) => listed(name, tool, requireRationale)),
    async call(caller, name, given, admit) {
      try {
        return await answer(caller, name, given, admit);
      } catch (error) {
        onError(error, `tools/call ${name !== null && names.includes(name) ? name : 'of an unknown tool'}`);
        if (isUnavailable?.(error))
          return failed(503, DATABASE_UNAVAILABLE, { retryAfterSeconds: RETRY_AFTER_SECONDS });
        return failed(500, 'An unexpected server error has occurred', {}, RPC_CODES.internalError);
      }
    },
  };
}

/** The warehouse's tools. SQL is offered only if the warehouse runs it. */
function offeredBy(warehouse: WarehouseTools | undefined): Readonly<Record<string, Tool>> {
  if (warehouse === undefined) return {};
  const { runSql, ...rest } = WAREHOUSE_TOOLS;
  return warehouse.runSql === undefined ? rest : { ...rest, runSql };
}

const RATIONALE_RULE = 'invalid parameters: rationale must be a text of 20 to 500 characters';

function hasRationale(given: unknown): boolean {
  const rationale = (given as { rationale?: unknown } | null | undefined)?.rationale;
  return typeof rationale === 'string' && rationale.length >= 20 && rationale.length <= 500;
}

function listed(
  name: string,
  { title, description, arguments: given, output }: Tool,
  requireRationale: boolean,
): ListedTool {
  const own = jsonSchema(given) as { properties: JsonSchema; required?: string[] };
  const rationale = { type: 'string', minLength: 20, maxLength: 500, description: 'Why the call is made.' };
  const properties = requireRationale ? { ...own.properties, rationale } : own.properties;
  const required = [...(own.required ?? []), ...(requireRationale ? ['rationale'] : [])];
  return {
    name,
    title,
    description,
    inputSchema: { type: 'object', properties, required },
    outputSchema: jsonSchema(output),
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  };
}

/** Created once for all services of a process: creating all schemas takes longer than anything else that a new service does. */
const made = new WeakMap<z.ZodType, JsonSchema>();

/** Omits `$schema`: it names the default dialect, and not every reader knows the name. */
function jsonSchema(schema: z.ZodType): JsonSchema {
  const known = made.get(schema);
  if (known !== undefined) return known;
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  const json = JSON.parse(JSON.stringify(rest)) as JsonSchema;
  made.set(schema, json);
  return json;
}
