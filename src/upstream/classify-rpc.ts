/**
 * Classifies a response of the JSON-RPC interface, with the same outcomes as for REST. A failure has one of four forms (API document,
 * section 7; upstream-api.md, section 4): an HTTP status, a JSON-RPC error object, a tool's error in a normal result, and `isError`.
 */
import { isUnknownIdError, UNKNOWN_ROUTE } from '../contract/answer/errors.ts';
import {
  RPC_CODES,
  rpcErrorSchema,
  toolFailureDataSchema,
  toolListSchema,
  toolResultSchema,
} from '../contract/interface/json-rpc.ts';
import { readRecord } from '../contract/record/records.ts';
import { rawMember } from '../core/raw-json.ts';
import type { Outcome, RpcCall } from './answer.ts';
import {
  classify,
  historyLimitRefusal,
  isObject,
  malformed,
  oneLine,
  outcomeOfStatus,
  type Received,
} from './classify.ts';
import { parseJson, parseJsonText } from './json.ts';
import { LONGEST_WAIT_MS } from './retry-after.ts';

type SentRpcCall = { readonly id: number; readonly rpc: RpcCall; readonly withText: boolean };

export function classifyRpc(received: Received, call: SentRpcCall): Outcome {
  const { host } = received.requestUrl;
  const carried = errorBody(received);
  const found: Outcome = carried === null ? classify(received) : { kind: 'answered', body: carried };
  if (found.kind !== 'answered') return found;
  const { body } = found;
  if (!isObject(body)) return malformed(`${host} answered with a list where one JSON-RPC response was expected`);
  const { jsonrpc, id, error, result } = body;
  const isError = error !== undefined && error !== null;
  if (jsonrpc !== '2.0') return malformed(`${host} answered with JSON that is not JSON-RPC 2.0`, true);
  // If the server could not read the request, its response has no id.
  if (id !== call.id && !(isError && (id === null || id === undefined))) {
    return malformed(
      `${host} answered with the id ${oneLine(JSON.stringify(id) ?? 'none', 60)} where ${call.id} was asked`,
    );
  }
  if (isError) return errorMeaning(error, host);
  return call.rpc.method === 'tools/list' ? listMeaning(result, host) : resultMeaning(result, host, call.withText);
}

/** The JSON-RPC error in the body of a 400, 404 or 500, because it is more exact than the status. Any other status is clear enough. */
function errorBody({ status, body }: Received): Record<string, unknown> | null {
  if (body.kind !== 'whole' || ![400, 404, 500].includes(status)) return null;
  const parsed = parseJson(body.bytes);
  return isObject(parsed) && parsed.jsonrpc === '2.0' && isObject(parsed.error) ? parsed : null;
}

function listMeaning(result: unknown, host: string): Outcome {
  const read = readRecord(toolListSchema, result);
  return read.ok
    ? { kind: 'answered', body: read.value }
    : malformed(`${host} answered with tools that cannot be read: ${read.problem}`);
}

function resultMeaning(result: unknown, host: string, withText: boolean): Outcome {
  const read = readRecord(toolResultSchema, result);
  if (!read.ok) return malformed(`${host} answered with a result that cannot be read: ${read.problem}`);
  const [first] = read.value.content;
  if (first?.type !== 'text' || first.text === undefined)
    return malformed(`${host} answered with a result without a text`);
  const { text } = first;
  const said = (message: string) => `${host} answered: ${oneLine(message, 300)}`;
  const parsed = parseJsonText(text);
  if (read.value.isError === true && (parsed === undefined || !isToolError(parsed))) {
    return failureMeaning(statusIn(text), text, said(text), null);
  }
  if (parsed === undefined)
    return malformed(`${host} answered with a text that is not JSON: ${oneLine(text.slice(0, 400), 80)}`);
  if (isToolError(parsed)) return toolErrorMeaning(parsed.error, parsed, said);
  const isEnvelope = isObject(parsed) && 'data' in parsed && isObject(parsed.meta) && !('id' in parsed);
  const body = isEnvelope ? parsed.data : parsed;
  if (body === null || typeof body !== 'object')
    return malformed(`${host} answered with JSON that is neither an object nor a list`);
  if (!withText) return { kind: 'answered', body };
  return { kind: 'answered', body, text: isEnvelope ? rawMember(text, 'data')! : text };
}

/** True for a tool's error: an object with an `error` and without an id. Every record has an id, and lists are not objects. */
function isToolError(data: unknown): data is { readonly error: unknown } & Record<string, unknown> {
  return isObject(data) && 'error' in data && data.error !== null && !('id' in data);
}

function toolErrorMeaning(error: unknown, whole: unknown, said: (message: string) => string): Outcome {
  if (!isObject(error)) {
    const text = String(error);
    if (text === 'paid_endpoint') return notInPlan(said(JSON.stringify(whole)));
    return failureMeaning(statusIn(text), text, said(text), null);
  }
  const { code, message, metadata } = error;
  const text = `${typeof code === 'string' || typeof code === 'number' ? `${code} ` : ''}${typeof message === 'string' ? message : JSON.stringify(error)}`;
  const seconds = isObject(metadata) ? metadata.retry_after_seconds : null;
  return failureMeaning(statusIn(text), text, said(text), typeof seconds === 'number' ? seconds : null);
}

function errorMeaning(error: unknown, host: string): Outcome {
  const read = readRecord(rpcErrorSchema, error);
  if (!read.ok) return malformed(`${host} answered with an error that cannot be read: ${read.problem}`);
  const { code, message, data } = read.value;
  const failure = toolFailureDataSchema.safeParse(data);
  const status = (failure.success ? failure.data.status : null) ?? statusIn(message);
  const said = `${host} answered: ${oneLine(message, 300)} (${code})`;
  const { methodNotFound, invalidParams, invalidRequest, parseError } = RPC_CODES;
  if (status === null || code === methodNotFound || code === invalidParams) {
    const noTool =
      code === methodNotFound ||
      (code === invalidParams && /\btool\b.*\b(not found|unknown)\b|\bunknown tool\b/i.test(message));
    if (noTool) return { kind: 'refused', reason: 'unknown route', message: said };
    if ([invalidParams, invalidRequest, parseError].some((one) => one === code)) {
      return { kind: 'refused', reason: 'bad request', message: said };
    }
  }
  // A status 404 in the error's data is from the interface itself and is about the id, independent of the text.
  if (failure.success && failure.data.status === 404) return { kind: 'refused', reason: 'unknown id', message: said };
  return failureMeaning(status, message, said, (failure.success ? failure.data.retryAfterSeconds : null) ?? null);
}

const STATUSES = /(?:^|[^\d.,])(400|401|402|403|404|408|425|429|50[0-4])(?![\d.,]*\d)/;

/** The status in the text of a failure: `402: …`, `CP402_…`, `Request failed with status code 402`; null when there is none. */
function statusIn(text: string): number | null {
  const status = /\bCP(\d{3})_/.exec(text)?.[1] ?? STATUSES.exec(text)?.[1];
  return status === undefined ? null : Number(status);
}

const SAYS_NOT_IN_PLAN =
  /INSUFFICIENT_PLAN|\bpaid\b|\b(higher|upgrade|requires?)\b.*\bplan\b|\bplan\b.*\b(requires?|required)\b/i;
const SAYS_LIMITED = /\b(rate limit|too many requests|maximum request limit)\b/i;

/** Statuses of failed tools that are clear without the text. Any other status may be temporary. */
const CLEAR_STATUSES: readonly number[] = [400, 401, 402, 403, 429];

function failureMeaning(
  status: number | null,
  text: string,
  message: string,
  retryAfterSeconds: number | null,
): Outcome {
  const retryAfterMs =
    retryAfterSeconds === null ? null : Math.min(Math.max(0, retryAfterSeconds * 1000), LONGEST_WAIT_MS);
  const limit = historyLimitRefusal(text, message);
  if (limit !== null) return limit;
  if (status === 402 && SAYS_NOT_IN_PLAN.test(text)) return notInPlan(message);
  if (status === 404 && text.includes(UNKNOWN_ROUTE)) return outcomeOfStatus(404, message, null);
  // Only the interface's own text is about an id. A gateway's text is about the route.
  const isUnknownId = isUnknownIdError(text.replace(/^\s*\d{3}\s*:?\s*/, ''));
  if (
    (status === null && isUnknownId) ||
    (status === 404 && (isUnknownId || /\bid not found\b|\bCP404_/i.test(text)))
  ) {
    return { kind: 'refused', reason: 'unknown id', message };
  }
  if (status === null && SAYS_LIMITED.test(text)) return outcomeOfStatus(429, message, retryAfterMs);
  if (status !== null && CLEAR_STATUSES.includes(status)) return outcomeOfStatus(status, message, retryAfterMs);
  return { kind: 'unavailable', retryAfterMs, message };
}

function notInPlan(message: string): Outcome {
  return { kind: 'refused', reason: 'history limit', notBefore: null, message };
}
