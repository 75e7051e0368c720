/** Reads the body of a JSON-RPC request within limits: size, depth, UTF-8, JSON. */

/** Far above a batch of tool calls with the longest arguments. */
export const MAX_BODY_BYTES = 256 * 1_024;
/** Far above every valid body, and far below what recursion can take. */
export const MAX_DEPTH = 64;

export type RpcBody =
  | { readonly kind: 'json'; readonly value: unknown }
  /** Not JSON, or not UTF-8. */
  | { readonly kind: 'unreadable'; readonly problem: string }
  | { readonly kind: 'too deep' }
  | { readonly kind: 'too large' }
  /** The caller disconnected in the middle of it. */
  | { readonly kind: 'cut off' };

export async function readRpcBody(request: Request): Promise<RpcBody> {
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) return { kind: 'too large' };
  const bytes = await readBytes(request);
  if (bytes === 'cut off' || bytes === 'too large') return { kind: bytes };
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { kind: 'unreadable', problem: 'the body is not UTF-8' };
  }
  if (isDeeperThan(text, MAX_DEPTH)) return { kind: 'too deep' };
  try {
    return { kind: 'json', value: JSON.parse(text) };
  } catch {
    return { kind: 'unreadable', problem: text === '' ? 'the body is empty' : 'the body is not JSON' };
  }
}

async function readBytes(request: Request): Promise<Uint8Array | 'cut off' | 'too large'> {
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return Buffer.concat(chunks, size);
      size += value.byteLength;
      if (size > MAX_BODY_BYTES) {
        await reader.cancel();
        return 'too large';
      }
      chunks.push(value);
    }
  } catch {
    return 'cut off';
  }
}

/** Counts brackets outside of strings, so it works on text that is not JSON as well. */
export function isDeeperThan(text: string, most: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (quoted) {
      if (char === BACKSLASH) i++;
      else if (char === QUOTE) quoted = false;
    } else if (char === QUOTE) quoted = true;
    else if (char === BRACKET || char === BRACE) {
      if (++depth > most) return true;
    } else if (char === BRACKET + 2 || char === BRACE + 2) depth--;
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACKET = 0x5b;
const BRACE = 0x7b;
