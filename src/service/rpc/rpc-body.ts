/** Reads the body of a JSON-RPC request within limits: size, depth, UTF-8, JSON. */
import { RPC_CODES, type RpcResponse } from '../../contract/interface/json-rpc.ts';
import { depthOf } from '../../core/raw-json.ts';
import { readRawBody } from '../../upstream/body.ts';
import { failure, refusedRequest } from './rpc-messages.ts';

/** Far above a batch of tool calls with the longest arguments. */
const MAX_BODY_BYTES = 256 * 1_024;
/** Far above the depth of every valid body, and far below the depth at which recursion fails. */
const MAX_DEPTH = 64;

type RpcBody =
  | { readonly kind: 'json'; readonly value: unknown }
  /** The status and the body to answer with. */
  | { readonly kind: 'refused'; readonly status: 400 | 413; readonly answer: RpcResponse };

export async function readRpcBody(request: Request): Promise<RpcBody> {
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) return TOO_LARGE;
  const body = await readRawBody(request.body ?? [], MAX_BODY_BYTES);
  if (body.kind === 'too large') return TOO_LARGE;
  if (body.kind === 'cut') return unreadable('the body ended early');
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body.bytes);
  } catch {
    return unreadable('the body is not UTF-8');
  }
  // Before the parser, which may recurse.
  if (depthOf(text) > MAX_DEPTH) return refused(400, `the body is nested deeper than ${MAX_DEPTH} levels`);
  try {
    return { kind: 'json', value: JSON.parse(text) };
  } catch {
    return unreadable(text === '' ? 'the body is empty' : 'the body is not JSON');
  }
}

function refused(status: 400 | 413, problem: string): RpcBody {
  return { kind: 'refused', status, answer: refusedRequest(null, problem) };
}

const TOO_LARGE = refused(413, `the body has more than ${MAX_BODY_BYTES} bytes`);

function unreadable(problem: string): RpcBody {
  const answer = failure(null, { code: RPC_CODES.parseError, message: `parse error: ${problem}` });
  return { kind: 'refused', status: 400, answer };
}
