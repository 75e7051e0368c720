/** Plain JSON-RPC 2.0 as in the API document: `tools/list` and `tools/call`, alone or in a batch, without a handshake. */

import {
  RPC_CODES,
  type RpcError,
  type RpcId,
  type RpcRequest,
  type RpcResponse,
  rpcIdSchema,
  rpcRequestSchema,
} from '../../contract/interface/json-rpc.ts';
import type { Caller } from '../../contract/plan/access.ts';
import { describeValue, readRecord } from '../../contract/record/records.ts';
import type { Admit } from './batch-throttle.ts';
import { rejected } from './tool-outcome.ts';
import type { Toolbox } from './toolbox.ts';

/** Maximum number of messages in a batch. The service answers them one after the other. */
export const MAX_BATCH = 20;

const METHODS = ['tools/list', 'tools/call', 'ping'] as const;

type RpcAnswer = {
  /** Null when all messages were notifications. */
  readonly body: RpcResponse | readonly RpcResponse[] | null;
  /** Not 200 when no message was a valid request. */
  readonly status: 200 | 400 | RefusalStatus;
};

type RefusalStatus = 402 | 403 | 429;

type RpcDeps = { readonly toolbox: Toolbox; readonly admit: Admit };

export async function answerMessages(deps: RpcDeps, caller: Caller, body: unknown): Promise<RpcAnswer> {
  const problem = batchProblem(body);
  if (problem !== null) {
    const refusal = await refusalFrom(deps.admit, caller, []);
    return {
      body: refusal === null ? refusedRequest(null, problem) : failure(null, refusal),
      status: statusOfMalformed(refusal),
    };
  }
  const messages = Array.isArray(body) ? body : [body];
  const refusal = await refusalFrom(deps.admit, caller, messages);
  const answers: RpcResponse[] = [];
  let isMalformed = true;
  for (const message of messages) {
    const read = readRecord(rpcRequestSchema, message);
    if (read.ok) {
      isMalformed = false;
      const answer = await answerMessage(deps, caller, read.value, refusal);
      if (answer !== null) answers.push(answer);
    } else {
      const id = idOf(message);
      answers.push(refusal === null ? refusedRequest(id, read.problem) : failure(id, refusal));
    }
  }
  const status = isMalformed ? statusOfMalformed(refusal) : 200;
  if (answers.length === 0) return { body: null, status };
  return { body: Array.isArray(body) ? answers : answers[0]!, status };
}

/** The HTTP status when nothing in the body is a request. */
function statusOfMalformed(refusal: RpcError | null): 400 | RefusalStatus {
  return refusal === null ? 400 : statusOf(refusal);
}

/** The HTTP status of a refusal. */
export function statusOf({ data }: RpcError): RefusalStatus {
  const status = (data as { status?: unknown } | undefined)?.status;
  return status === 402 || status === 429 ? status : 403;
}

/** What is wrong with the body as a whole; null if nothing. */
export function batchProblem(body: unknown): string | null {
  if (!Array.isArray(body)) return null;
  if (body.length === 0) return 'the batch is empty';
  return body.length > MAX_BATCH ? `a batch has at most ${MAX_BATCH} messages, this one has ${body.length}` : null;
}

/**
 * A tool call costs one request of the caller's quota. Everything else in a body is admitted once, by identity and rate only. So a caller with an
 * exhausted month may still list the tools, and a refused batch gets no lists.
 */
export async function refusalFrom(
  admit: Admit,
  caller: Caller,
  messages: readonly unknown[],
): Promise<RpcError | null> {
  if (messages.length > 0 && messages.every(isToolCall)) return null;
  const admission = await admit(caller, 'account');
  if (admission.kind === 'admitted') return null;
  const { code, message, data } = rejected(admission);
  return { code, message, data };
}

function isToolCall(message: unknown): boolean {
  const read = rpcRequestSchema.safeParse(message);
  return read.success && read.data.method === 'tools/call' && read.data.id !== undefined;
}

async function answerMessage(
  deps: RpcDeps,
  caller: Caller,
  { id, method, params }: RpcRequest,
  refusal: RpcError | null,
): Promise<RpcResponse | null> {
  // A notification: every method only reads, so without an answer there is nothing to do.
  if (id === undefined) return null;
  const answer = refusal ?? (await answerRequest(deps, caller, method, params));
  return 'result' in answer ? { jsonrpc: '2.0', id, ...answer } : failure(id, answer);
}

type Result = { readonly result: unknown };

async function answerRequest(
  deps: RpcDeps,
  caller: Caller,
  method: string,
  params: unknown,
): Promise<Result | RpcError> {
  switch (method) {
    case 'tools/call':
      return callTool(deps, caller, params);
    case 'tools/list':
      return { result: { tools: deps.toolbox.tools } };
    case 'ping':
      return { result: {} };
    default: {
      const message = `method not found: ${describeValue(method)}; the methods are ${METHODS.join(', ')}`;
      return { code: RPC_CODES.methodNotFound, message };
    }
  }
}

async function callTool({ toolbox, admit }: RpcDeps, caller: Caller, params: unknown): Promise<Result | RpcError> {
  const { name, arguments: given } = (Array.isArray(params) ? {} : (params ?? {})) as Record<string, unknown>;
  const outcome = await toolbox.call(caller, typeof name === 'string' ? name : null, given, admit);
  switch (outcome.kind) {
    case 'answered': {
      const result = { content: [{ type: 'text', text: JSON.stringify(outcome.output) }] };
      return { result: outcome.provenance === null ? result : { ...result, _meta: outcome.provenance } };
    }
    case 'unknown tool':
      return { code: RPC_CODES.invalidParams, message: outcome.message, data: { status: 400, argument: 'name' } };
    case 'failed': {
      const { code, message, data } = outcome;
      return { code, message, data };
    }
  }
}

/** The id of an invalid request; null if it has no valid one. */
export function idOf(message: unknown): RpcId {
  if (typeof message !== 'object' || message === null) return null;
  const read = rpcIdSchema.safeParse((message as { id?: unknown }).id);
  return read.success ? read.data : null;
}

export function refusedRequest(id: RpcId, problem: string): RpcResponse {
  return failure(id, { code: RPC_CODES.invalidRequest, message: `invalid request: ${problem}` });
}

export function failure(id: RpcId, error: RpcError): RpcResponse {
  return { jsonrpc: '2.0', id, error };
}
