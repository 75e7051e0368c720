/** The registry of tools: their list, and calls by name. Plain JSON-RPC and MCP both use it, so that they answer alike. */
import { z } from 'zod';
import { DATABASE_UNAVAILABLE, RETRY_AFTER_SECONDS, UNKNOWN_ID } from '../../contract/answer/errors.ts';
import { isFound, type Missing } from '../../contract/answer/not-found.ts';
import { AS_OF_HEADER, COVERAGE_HEADER, provenanceHeaders } from '../../contract/answer/provenance.ts';
import {
  RPC_CODES,
  type ToolFailureData,
  type ToolFailureStatus,
  type ToolProvenance,
  toolFailureMessage,
} from '../../contract/interface/json-rpc.ts';
import { readToolCall, TOOLS, type Tool } from '../../contract/interface/tools.ts';
import { WAREHOUSE_TOOLS, type WarehouseTools } from '../../contract/interface/warehouse-tools.ts';
import type { Access, Caller } from '../../contract/plan/access.ts';
import { PLANS } from '../../contract/plan/plans.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import { describeValue } from '../../contract/record/records.ts';
import { didYouMean } from '../../core/settings/did-you-mean.ts';
import type { Admit } from './batch-throttle.ts';
import { answerTool } from './tool-answers.ts';
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

export type ToolOutcome =
  | {
      readonly kind: 'answered';
      readonly output: object;
      /** Null from a source without provenance. */
      readonly provenance: ToolProvenance | null;
    }
  | { readonly kind: 'unknown tool'; readonly message: string }
  | { readonly kind: 'failed'; readonly code: number; readonly message: string; readonly data: ToolFailureData };

export type Toolbox = {
  readonly tools: readonly ListedTool[];
  /**
   * Costs one request of the caller's quota, whatever the outcome; `admit` decides whether there is one. Never rejects. `name` is null
   * when it was not a string.
   */
  call(caller: Caller, name: string | null, given: unknown, admit: Admit): Promise<ToolOutcome>;
};

export type ToolboxDeps = {
  readonly data: MarketData<Missing>;
  readonly access: Access;
  /** Undefined: only the tools of the API document. */
  readonly warehouse?: WarehouseTools | undefined;
  /** Told of unexpected errors; the caller only sees a 500. */
  readonly onError: (error: unknown, where: string) => void;
  /** Does this error mean that the source is unavailable for the moment? Then the caller gets a 503 with a waiting time. */
  readonly isUnavailable?: ((error: unknown) => boolean) | undefined;
};

export function createToolbox({ data, access, warehouse, onError, isUnavailable }: ToolboxDeps): Toolbox {
  const extra = offeredBy(warehouse);
  const names = [...Object.keys(TOOLS), ...Object.keys(extra)];

  const answer = async (caller: Caller, name: string | null, given: unknown, admit: Admit): Promise<ToolOutcome> => {
    const admission = await admit(caller, 'data');
    if (admission.kind === 'rejected') return rejected(admission);
    const plan = PLANS[admission.plan];
    if (name === null) return unknown(name, names);
    const read = readToolCall(TOOLS, name, given);
    if (read.kind === 'call') return answered(await answerTool(data, plan, read.call));
    if (read.kind === 'invalid') return invalid(read.argument, read.message);
    if (warehouse === undefined || !Object.hasOwn(extra, name)) return unknown(name, names);
    const more = readToolCall(WAREHOUSE_TOOLS, name, given);
    if (more.kind === 'invalid') return invalid(more.argument, more.message);
    if (more.kind === 'unknown tool') return unknown(name, names);
    const found = await answerWarehouseTool({ data, access, warehouse }, plan, more.call);
    switch (found.kind) {
      case 'answered':
        return answered(found.output);
      case 'invalid':
        return invalid(found.argument, found.message);
      case 'refused':
        return failed(found.status, found.message);
    }
  };

  return {
    tools: [...Object.entries(TOOLS), ...Object.entries(extra)].map(([name, tool]) => listed(name, tool)),
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

/** The refusal of an `Access`, as a failure of the tool. */
export function rejected(admission: {
  readonly status: ToolFailureStatus;
  readonly message: string;
  readonly retryAfterSeconds?: number;
}): Extract<ToolOutcome, { kind: 'failed' }> {
  const { status, message, retryAfterSeconds } = admission;
  return failed(status, message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
}

/** SQL is offered only where the warehouse runs it. */
function offeredBy(warehouse: WarehouseTools | undefined): Readonly<Record<string, Tool>> {
  if (warehouse === undefined) return {};
  const { runSql, ...rest } = WAREHOUSE_TOOLS;
  return warehouse.runSql === undefined ? rest : { ...rest, runSql };
}

function listed(name: string, { title, description, arguments: given, output }: Tool): ListedTool {
  const { properties, required } = jsonSchema(given) as { properties: JsonSchema; required?: string[] };
  return {
    name,
    title,
    description,
    inputSchema: { type: 'object', properties, required: required ?? [] },
    outputSchema: jsonSchema(output),
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  };
}

/** Without `$schema`: it is the default dialect, and not every reader knows its name. */
function jsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return JSON.parse(JSON.stringify(rest)) as JsonSchema;
}

function answered(output: object | Missing): ToolOutcome {
  const provenance = toolProvenance(output);
  if (!isFound(output)) return failed(404, UNKNOWN_ID, provenance ?? {});
  return { kind: 'answered', output, provenance };
}

/** The provenance under the names of tools, for `_meta` of a result and `data` of an error; null from a source without provenance. */
function toolProvenance(output: object | Missing): ToolProvenance | null {
  const { [COVERAGE_HEADER]: coverage, [AS_OF_HEADER]: asOf } = provenanceHeaders(output);
  if (coverage === undefined) return null;
  return { 'chandler/coverage': coverage, ...(asOf !== undefined && { 'chandler/as-of': asOf }) };
}

function invalid(argument: string | null, message: string): ToolOutcome {
  return failed(400, message, argument === null ? {} : { argument }, RPC_CODES.invalidParams);
}

function unknown(name: string | null, names: readonly string[]): ToolOutcome {
  const rule = 'invalid parameters: name must be one of the tools of tools/list';
  if (name === null) return { kind: 'unknown tool', message: toolFailureMessage(400, rule) };
  const message = `${rule}, got ${describeValue(name)}${didYouMean(name.slice(0, 100), names)}`;
  return { kind: 'unknown tool', message: toolFailureMessage(400, message) };
}

function failed(
  status: ToolFailureStatus,
  text: string,
  data: Omit<ToolFailureData, 'status'> = {},
  code: number = RPC_CODES.toolFailed,
): Extract<ToolOutcome, { kind: 'failed' }> {
  return { kind: 'failed', code, message: toolFailureMessage(status, text), data: { status, ...data } };
}
