/** The tools as the service offers them: listed, and called. Plain JSON-RPC and MCP take them from here, so that both answer alike. */
import { z } from 'zod';
import { AWAY, AWAY_SECONDS, UNKNOWN_ID } from '../../contract/answer/errors.ts';
import { isThere, type Nothing } from '../../contract/answer/not-found.ts';
import { AS_OF_HEADER, basisHeaders, COVERAGE_HEADER } from '../../contract/answer/provenance.ts';
import {
  RPC_CODES,
  type ToolBasis,
  type ToolFailureData,
  type ToolFailureStatus,
  toolFailureMessage,
} from '../../contract/interface/json-rpc.ts';
import { readToolCall, TOOLS, type Tool } from '../../contract/interface/tools.ts';
import { WAREHOUSE_TOOLS, type WarehouseTools } from '../../contract/interface/warehouse-tools.ts';
import type { Access, Caller } from '../../contract/plan/access.ts';
import { PLANS } from '../../contract/plan/plans.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import { describeValue } from '../../contract/record/records.ts';
import { didYouMean } from '../../core/did-you-mean.ts';
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
      /** What the output stands on, where the source says so. */
      readonly basis: ToolBasis | null;
    }
  | { readonly kind: 'unknown tool'; readonly message: string }
  | { readonly kind: 'failed'; readonly code: number; readonly message: string; readonly data: ToolFailureData };

export type Toolbox = {
  readonly tools: readonly ListedTool[];
  /**
   * One request of the caller's quota, whatever becomes of it; `admit` says whether there is one. Never rejects. A name that is no text
   * is null.
   */
  call(caller: Caller, name: string | null, given: unknown, admit: Admit): Promise<ToolOutcome>;
};

export type ToolboxParts = {
  readonly data: MarketData<Nothing>;
  readonly access: Access;
  /** Without it there are only the tools of the API document. */
  readonly warehouse?: WarehouseTools | undefined;
  /** Told of what nobody expected; the caller only learns that it happened. */
  readonly onError: (error: unknown, where: string) => void;
  /** Is it a source that cannot be reached for now? Then the caller is told to come again. */
  readonly isAway?: ((error: unknown) => boolean) | undefined;
};

export function createToolbox({ data, access, warehouse, onError, isAway }: ToolboxParts): Toolbox {
  const extra = offered(warehouse);
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
        if (isAway?.(error)) return failed(503, AWAY, { retryAfterSeconds: AWAY_SECONDS });
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

/** SQL is offered only where somebody answers it. */
function offered(warehouse: WarehouseTools | undefined): Readonly<Record<string, Tool>> {
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

/** Without `$schema`: what is meant by default is what is written, and not every reader knows the dialect by its name. */
function jsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return JSON.parse(JSON.stringify(rest)) as JsonSchema;
}

function answered(output: object | Nothing): ToolOutcome {
  const basis = toolBasis(output);
  if (!isThere(output)) return failed(404, UNKNOWN_ID, basis ?? {});
  return { kind: 'answered', output, basis };
}

/** What REST says in headers, a tool says under `_meta` of its result, and in the `data` of its error; null where the source does not say. */
function toolBasis(output: object | Nothing): ToolBasis | null {
  const { [COVERAGE_HEADER]: coverage, [AS_OF_HEADER]: asOf } = basisHeaders(output);
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
