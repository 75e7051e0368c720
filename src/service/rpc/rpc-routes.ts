/**
 * `/rpc`: the tool interface, at one address for plain JSON-RPC 2.0, which the API document describes, and for MCP clients. The SDK's server cannot
 * serve both: it refuses callers that do not accept event streams, null ids, and a whole batch because of one bad message.
 */
import { type Context, Hono } from 'hono';
import type { StatusCode } from 'hono/utils/http-status';
import {
  initializeParams,
  RPC_CODES,
  type RpcError,
  type RpcId,
  type RpcResponse,
  rpcRequestSchema,
  toolFailureDataSchema,
} from '../../contract/interface/json-rpc.ts';
import type { Access } from '../../contract/plan/access.ts';
import { allowanceHeaders, callerOf } from '../http/admission.ts';
import { MCP_HEADERS } from '../http/answer.ts';
import type { ServiceEnv } from '../http/request-input.ts';
import { throttleBatch } from './batch-throttle.ts';
import { readRpcBody } from './rpc-body.ts';
import { answerMessages, batchProblem, failure, idOf, refusalFrom, refusedRequest, statusOf } from './rpc-messages.ts';
import type { Toolbox, ToolboxDeps } from './toolbox.ts';

type RpcRoutesDeps = Pick<ToolboxDeps, 'access' | 'clock' | 'onError'> & {
  readonly toolbox: Toolbox;
  /** Origins of web pages that may use the tools, besides those of this machine: `https://app.example`; `*` allows all. */
  readonly origins?: readonly string[] | undefined;
};

type RequestInput = Context<ServiceEnv>;

export function rpcRoutes({ toolbox, access, clock, origins = [], onError }: RpcRoutesDeps): Hono<ServiceEnv> {
  const routes = new Hono<ServiceEnv>();

  routes.post('/', async (c) => {
    const refusedByHeaders = checkHeaders(c, origins);
    if (refusedByHeaders !== null) return refusedByHeaders;
    const caller = callerOf(c.req.header('Authorization'), c.env?.address ?? 'here');
    const admitOne = settingAllowanceHeaders(c, access.admit);
    const refuseAs = (id: RpcId, refusal: RpcError) => answer(c, statusOf(refusal), failure(id, refusal));
    const body = await readRpcBody(c.req.raw);
    if (body.kind !== 'json') {
      const refusal = await refusalFrom(admitOne, caller, []);
      return refusal === null ? answer(c, body.status, body.answer) : refuseAs(null, refusal);
    }
    const isBatch = Array.isArray(body.value);
    const admit = isBatch ? throttleBatch(admitOne, { clock, signal: c.req.raw.signal }) : admitOne;
    if (batchProblem(body.value) !== null || !isMcp(c, body.value)) {
      const { body: answers, status } = await answerMessages({ toolbox, admit }, caller, body.value);
      return answers === null ? c.body(null, 202, NO_STORE) : answer(c, status, answers);
    }
    /** Whether any part of this request went through admission. */
    let isAdmitted = false;
    const admitAndNotice: typeof admit = (...of) => {
      isAdmitted = true;
      return admit(...of);
    };
    const refusal = await refusalFrom(admitAndNotice, caller, isBatch ? (body.value as unknown[]) : [body.value]);
    if (refusal !== null) return refuseAs(idOf(body.value), refusal);
    const problem = handshakeProblem(body.value);
    if (problem !== null)
      return answer(c, 200, failure(idOf(body.value), { code: RPC_CODES.invalidParams, message: problem }));
    // Imported only here, because the SDK would slow down the start of every command.
    const { answerMcp } = await import('./mcp.ts');
    const response = await answerMcp({ toolbox, admit: admitAndNotice, onError }, caller, c.req.raw, body.value);
    // The tools admit their callers. A call that the SDK refuses never reaches a tool, but it needs a key and a token as well.
    const late = isAdmitted ? null : await refusalFrom(admitAndNotice, caller, []);
    return late === null ? passOn(c, response) : refuseAs(idOf(body.value), late);
  });

  routes.options('/', (c) => c.body(null, 204, PREFLIGHT));

  // There is no stream to open and no session to end (MCP, streamable HTTP).
  routes.all('/', (c) => {
    c.header('Allow', 'POST');
    return refuse(c, 405, `${c.req.method} is not possible here: send JSON-RPC 2.0 with POST`);
  });
  return routes;
}

/** What is wrong with the params of `initialize`; null if nothing. The SDK would report an internal error. */
function handshakeProblem(body: unknown): string | null {
  const message = rpcRequestSchema.safeParse(body).data;
  if (message?.method !== 'initialize') return null;
  const read = initializeParams.safeParse(message.params);
  return read.success ? null : `invalid parameters: ${read.error.issues[0]!.message}`;
}

/**
 * Adds the caller's latest allowance to every answer. It is set before the answer is built, because Hono copies an answer to change its headers.
 */
function settingAllowanceHeaders(c: RequestInput, admit: Access['admit']): Access['admit'] {
  return async (caller, about) => {
    const admission = await admit(caller, about);
    for (const [name, value] of Object.entries(allowanceHeaders(admission.allowance))) c.header(name, value);
    return admission;
  };
}

/** The answer to a browser's preflight request for MCP headers. The service decides later, by the page's origin, whether it may send them. */
const PREFLIGHT = {
  'Access-Control-Allow-Methods': 'POST, OPTIONS',
  'Access-Control-Allow-Headers': `Authorization, Content-Type, ${MCP_HEADERS}`,
  'Access-Control-Max-Age': '86400',
};

/** The refusal of a request whose headers are wrong; null when they are right. */
function checkHeaders(c: RequestInput, origins: readonly string[]): Response | null {
  const origin = c.req.header('Origin');
  if (origin !== undefined && !isTrustedOrigin(origin, origins)) {
    return refuse(c, 403, 'web pages of this origin are not allowed here; the operator can allow them');
  }
  const type = c.req.header('Content-Type') ?? '';
  if (!/^\s*application\/json\s*(;|$)/i.test(type)) return refuse(c, 415, 'Content-Type must be application/json');
  const isPlain = (c.req.header('Content-Encoding') ?? 'identity').toLowerCase() === 'identity';
  return isPlain ? null : refuse(c, 415, 'the body must not be compressed');
}

/**
 * A web page can point its own name at this machine (DNS rebinding). Then the browser treats both as the same site, and only `Origin` shows where
 * the page comes from. Clients that are not browsers send no `Origin`.
 */
function isTrustedOrigin(origin: string, origins: readonly string[]): boolean {
  if (origins.includes('*') || origins.includes(origin)) return true;
  if (!URL.canParse(origin)) return false;
  const host = new URL(origin).hostname;
  return host === 'localhost' || host === '127.0.0.1' || host === '[::1]';
}

/**
 * Only a client of the Model Context Protocol sends its version header, accepts event streams, or begins its handshake. Invalid requests
 * and subscriptions are not passed to the SDK: they are refused in the same way for every client.
 */
function isMcp(c: RequestInput, body: unknown): boolean {
  const messages = (Array.isArray(body) ? body : [body]).map((message) => rpcRequestSchema.safeParse(message).data);
  if (messages.some((message) => message === undefined || message.method === 'subscriptions/listen')) return false;
  return (
    c.req.header('MCP-Protocol-Version') !== undefined ||
    /\btext\/event-stream\b/i.test(c.req.header('Accept') ?? '') ||
    messages.some((message) => message?.method === 'initialize')
  );
}

function refuse(c: RequestInput, status: 400 | 403 | 405 | 413 | 415, problem: string): Response {
  return answer(c, status, refusedRequest(null, problem));
}

const NO_STORE = { 'Cache-Control': 'no-store' };

type Answers = RpcResponse | readonly RpcResponse[];

function answer(c: RequestInput, status: 200 | 400 | 402 | 403 | 405 | 413 | 415 | 429, body: Answers): Response {
  const headers = { 'Content-Type': 'application/json', ...NO_STORE };
  const wait = status === 402 || status === 429 ? waitOf(body) : undefined;
  return c.body(JSON.stringify(body), status, wait === undefined ? headers : { ...headers, 'Retry-After': `${wait}` });
}

/** The waiting time of a refusal, as clients of REST get it. */
function waitOf(body: Answers): number | undefined {
  const [first] = [body].flat();
  const data =
    first !== undefined && 'error' in first ? toolFailureDataSchema.safeParse(first.error.data).data : undefined;
  return data?.retryAfterSeconds;
}

/** Returns the SDK's response with the headers of every answer of the service. */
async function passOn(c: RequestInput, response: Response): Promise<Response> {
  for (const [name, value] of response.headers) c.header(name, value);
  c.header('Cache-Control', 'no-store');
  const status = response.status as StatusCode;
  return response.body === null ? c.newResponse(null, status) : c.newResponse(await response.text(), status);
}
