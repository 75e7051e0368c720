/**
 * `/rpc`: the tool interface. One address for plain JSON-RPC 2.0, which the API document describes, and for MCP clients. The SDK's server
 * cannot be both: it refuses callers that do not accept event streams, ids that are null, and whole batches for one bad message.
 */
import { type Context, Hono } from 'hono';
import type { StatusCode } from 'hono/utils/http-status';
import type { Clock } from '../../clock.ts';
import { RPC_CODES, type RpcError, rpcRequestSchema } from '../../contract/interface/json-rpc.ts';
import type { Access, Admission } from '../../contract/plan/access.ts';
import { allowanceFields, callerOf } from '../http/admission.ts';
import { MCP_FIELDS } from '../http/answer.ts';
import type { ServiceEnv } from '../http/service-env.ts';
import { patiently } from './batch-throttle.ts';
import { MAX_BODY_BYTES, MAX_DEPTH, type RpcBody, readRpcBody } from './rpc-body.ts';
import { answerMessages, barredFrom, batchProblem, failure, idOf, refusedRequest } from './rpc-messages.ts';
import type { Toolbox } from './toolbox.ts';

export type RpcRoutesParts = {
  readonly toolbox: Toolbox;
  readonly access: Access;
  readonly clock: Clock;
  /** Origins of web pages that may ask, besides those of this machine: `https://app.example`; `*` lets all of them. */
  readonly origins?: readonly string[] | undefined;
  readonly onError: (error: unknown, where: string) => void;
};

type Asked = Context<ServiceEnv>;

export function rpcRoutes({ toolbox, access, clock, origins = [], onError }: RpcRoutesParts): Hono<ServiceEnv> {
  const routes = new Hono<ServiceEnv>();

  routes.post('/', async (c) => {
    const refused = refusedUnread(c, origins);
    if (refused !== null) return refused;
    const caller = callerOf(c.req.header('Authorization'), c.env?.address ?? 'here');
    const { signal } = c.req.raw;
    const told = tellingAllowance(c, access.admit);
    const body = await readRpcBody(c.req.raw);
    if (body.kind !== 'json') {
      const barred = await barredFrom(told, caller, []);
      return barred === null ? unreadable(c, body) : answer(c, 403, failure(null, barred));
    }
    const problem = batchProblem(body.value);
    const admit = Array.isArray(body.value) ? patiently(told, { clock, signal }) : told;
    if (problem !== null || !isMcp(c, body.value)) {
      const { body: said, isMalformed } = await answerMessages({ toolbox, admit }, caller, body.value);
      return said === null ? c.body(null, 202, NEVER_KEPT) : answer(c, isMalformed ? 400 : 200, said);
    }
    let isAsked = false;
    const asking: typeof admit = (...of) => {
      isAsked = true;
      return admit(...of);
    };
    const barred = await barredFrom(asking, caller, Array.isArray(body.value) ? body.value : [body.value]);
    if (barred !== null) return answer(c, statusOf(barred), failure(idOf(body.value), barred));
    // Not before it is needed: the SDK would slow down the start of every command.
    const { answerMcp } = await import('./mcp.ts');
    const said = await answerMcp({ toolbox, admit: asking, onError }, caller, c.req.raw, body.value);
    // Calls that the SDK refuses never come to the tools, where they would be counted: garbage, which costs key and pace as well.
    const late = isAsked ? null : await barredFrom(asking, caller, []);
    return late === null ? passOn(c, said) : answer(c, statusOf(late), failure(idOf(body.value), late));
  });

  routes.options('/', (c) => c.body(null, 204, PREFLIGHT));

  // There is no stream to open and no session to end (MCP, streamable HTTP).
  routes.all('/', (c) => {
    c.header('Allow', 'POST');
    return refuse(c, 405, `${c.req.method} is not possible here: send JSON-RPC 2.0 with POST`);
  });
  return routes;
}

/** Every answer says what is left to the caller, as it was told last. Before the answer is made, since changing one that exists copies it. */
function tellingAllowance(c: Asked, admit: Access['admit']): Access['admit'] {
  const tell = (admission: Admission) => {
    const fields = admission.allowance === undefined ? [] : allowanceFields(admission.allowance);
    for (let i = 0; i < fields.length; i += 2) c.header(fields[i]!, fields[i + 1]!);
    return admission;
  };
  return async (caller, about) => tell(await admit(caller, about));
}

/** What a web page asks before it sends what MCP clients send; whether it may is decided by its origin, when it does. */
const PREFLIGHT = {
  'Access-Control-Allow-Methods': 'POST, OPTIONS',
  'Access-Control-Allow-Headers': `Authorization, Content-Type, ${MCP_FIELDS}`,
  'Access-Control-Max-Age': '86400',
};

/** What can be told from the headers alone. */
function refusedUnread(c: Asked, origins: readonly string[]): Response | null {
  const origin = c.req.header('Origin');
  if (origin !== undefined && !isTrustedOrigin(origin, origins)) {
    return refuse(c, 403, 'web pages of this origin may not ask here; the operator can allow it');
  }
  const type = c.req.header('Content-Type') ?? '';
  if (!/^\s*application\/json\s*(;|$)/i.test(type)) {
    return refuse(c, 415, 'Content-Type must be application/json');
  }
  const encoding = c.req.header('Content-Encoding');
  return encoding === undefined || encoding.toLowerCase() === 'identity'
    ? null
    : refuse(c, 415, 'the body must not be compressed');
}

/**
 * A page on the internet can give its own name this machine's address (DNS rebinding): then the browser takes it for the same site, and
 * only `Origin` tells that a stranger asks. Callers that are no browsers send none.
 */
export function isTrustedOrigin(origin: string, origins: readonly string[]): boolean {
  if (origins.includes('*') || origins.includes(origin)) return true;
  if (!URL.canParse(origin)) return false;
  const host = new URL(origin).hostname;
  return host === 'localhost' || host === '127.0.0.1' || host === '[::1]';
}

/**
 * What only a client of the Model Context Protocol sends: its version header, the wish for event streams, or its handshake. What is no
 * request at all is refused alike for everybody; and nothing here ever changes, so there is nothing to listen for.
 */
function isMcp(c: Asked, body: unknown): boolean {
  const messages = (Array.isArray(body) ? body : [body]).map((message) => rpcRequestSchema.safeParse(message).data);
  if (messages.some((message) => message === undefined || message.method === 'subscriptions/listen')) return false;
  return (
    c.req.header('MCP-Protocol-Version') !== undefined ||
    /\btext\/event-stream\b/i.test(c.req.header('Accept') ?? '') ||
    messages.some((message) => message?.method === 'initialize')
  );
}

function unreadable(c: Asked, body: Exclude<RpcBody, { kind: 'json' }>): Response {
  switch (body.kind) {
    case 'too large':
      return refuse(c, 413, `the body has more than ${MAX_BODY_BYTES} bytes`);
    case 'too deep':
      return refuse(c, 400, `the body is nested deeper than ${MAX_DEPTH} levels`);
    case 'unreadable':
      return answer(c, 400, failure(null, { code: RPC_CODES.parseError, message: `parse error: ${body.problem}` }));
    case 'cut off':
      return answer(
        c,
        400,
        failure(null, { code: RPC_CODES.parseError, message: 'parse error: the body ended early' }),
      );
  }
}

function refuse(c: Asked, status: 400 | 403 | 405 | 413 | 415, problem: string): Response {
  return answer(c, status, refusedRequest(null, problem));
}

const NEVER_KEPT = { 'Cache-Control': 'no-store' };

function answer(c: Asked, status: 200 | 400 | 402 | 403 | 405 | 413 | 415 | 429, body: unknown): Response {
  return c.body(JSON.stringify(body), status, { 'Content-Type': 'application/json', ...NEVER_KEPT });
}

function statusOf({ data }: RpcError): 402 | 403 | 429 {
  const status = (data as { status?: unknown } | undefined)?.status;
  return status === 402 || status === 429 ? status : 403;
}

/** With the headers that every answer of the service has. */
async function passOn(c: Asked, response: Response): Promise<Response> {
  for (const [name, value] of response.headers) c.header(name, value);
  c.header('Cache-Control', 'no-store');
  const status = response.status as StatusCode;
  return response.body === null ? c.newResponse(null, status) : c.newResponse(await response.text(), status);
}
