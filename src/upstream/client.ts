/** The clients of the upstream's two interfaces. They send exactly one HTTP request per question, and return every outcome as a value. */
import { readAddress, urlOf } from './address.ts';
import type { Outcome, RpcCall, Upstream } from './answer.ts';
import { classify, type Received } from './classify.ts';
import { classifyRpc } from './classify-rpc.ts';
import { createSender, type SenderOptions } from './sender.ts';

export type UpstreamOptions = SenderOptions & {
  /** `http(s)://host[:port]/v1`: no credentials, query or fragment. The key is sent to this origin and to no other. */
  readonly baseUrl: string;
};
type RpcOptions = UpstreamOptions & { readonly rpcUrl: string };

/** The client of REST. @throws TypeError when the base URL or the key is not usable (the message never contains the key). */
export function createUpstream(options: UpstreamOptions): Upstream {
  const base = readAddress(options.baseUrl);
  const sender = createSender(options);
  return {
    send: async (question) => {
      const { scheme, signal, withText = false } = question;
      const found = (received: Received) => (withText ? attachText(classify(received), received) : classify(received));
      return sender.send({ url: urlOf(base, question), scheme, signal }, found);
    },
    close: sender.close,
  };
}

/**
 * The client of the JSON-RPC interface (API document, section 4.2). An `answered` outcome has the tool's data and, if `withText` is set,
 * their text as it arrived. @throws TypeError when an address or the key is not usable (the message never contains the key).
 */
export function createRpcClient(options: RpcOptions): Upstream {
  const address = readAddress(options.rpcUrl);
  const sender = createSender({ ...options, key: sharesOrigin(options) ? options.key : null });
  let lastId = 0;
  return {
    send: async ({ rpc, path, absolute, scheme, signal, withText = false }) => {
      if (rpc === undefined) throw new TypeError('a request to the JSON-RPC interface needs a call');
      const url = absolute ? urlOf(address, { path, absolute }) : address;
      const id = ++lastId;
      const post = JSON.stringify({ jsonrpc: '2.0', id, ...paramsOf(rpc) });
      return sender.send({ url, post, scheme, signal }, (received) => classifyRpc(received, { id, rpc, withText }));
    },
    close: sender.close,
  };
}

/** True if one service implements both interfaces. Then an outage or a limit of one is also an outage or a limit of the other. */
export function sharesOrigin({ rpcUrl, baseUrl }: Pick<RpcOptions, 'rpcUrl' | 'baseUrl'>): boolean {
  return readAddress(rpcUrl).origin === readAddress(baseUrl).origin;
}

function paramsOf(call: RpcCall): { readonly method: string; readonly params: unknown } {
  if (call.method === 'tools/list') {
    return { method: call.method, params: call.cursor === undefined ? {} : { cursor: call.cursor } };
  }
  return { method: call.method, params: { name: call.tool, arguments: call.arguments } };
}

function attachText(outcome: Outcome, { body }: Received): Outcome {
  if (outcome.kind !== 'answered' || body.kind !== 'whole') return outcome;
  return { ...outcome, text: body.bytes.toString('utf8').replace(/^\uFEFF/, '') };
}
