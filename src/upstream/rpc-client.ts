/**
 * The client of the upstream's JSON-RPC interface (API document, section 4.2): exactly one HTTP request per call, with the same
 * outcomes as REST. An `answered` one carries the tool's data, and their own text where that is wanted.
 */
import { readAddress, urlOf } from './address.ts';
import type { Answer, Question, RpcCall, Upstream } from './answer.ts';
import { classifyRpc } from './classify-rpc.ts';
import { createSender, type SenderOptions } from './sender.ts';

export type RpcOptions = SenderOptions & {
  readonly rpcUrl: string;
  /** The REST address. The key belongs to its origin and is never sent to another one. */
  readonly baseUrl: string;
};

/** @throws TypeError when an address or the key is not usable (the message never repeats the key). */
export function createRpcClient(options: RpcOptions): Upstream {
  const address = readAddress(options.rpcUrl);
  const key = sharesOrigin(options) ? options.key : null;
  const sender = createSender({ ...options, key });
  let lastId = 0;
  return {
    send: async ({ rpc, path, absolute, scheme, signal, withText = false }: Question): Promise<Answer> => {
      if (rpc === undefined) throw new TypeError('a request to the JSON-RPC interface needs a call');
      const url = absolute ? urlOf(address, { path, absolute }) : address;
      const id = ++lastId;
      const post = JSON.stringify({ jsonrpc: '2.0', id, ...paramsOf(rpc) });
      return sender.send({ url, post, scheme, signal }, (received) => classifyRpc(received, { id, rpc, withText }));
    },
    close: sender.close,
  };
}

/** Does one service implement both interfaces? Then what is known of one is true of the other. */
export function sharesOrigin({ rpcUrl, baseUrl }: Pick<RpcOptions, 'rpcUrl' | 'baseUrl'>): boolean {
  return readAddress(rpcUrl).origin === readAddress(baseUrl).origin;
}

function paramsOf(call: RpcCall): { readonly method: string; readonly params: unknown } {
  if (call.method === 'tools/list') {
    return { method: call.method, params: call.cursor === undefined ? {} : { cursor: call.cursor } };
  }
  return { method: call.method, params: { name: call.tool, arguments: call.arguments } };
}
