/**
 * Asks the JSON-RPC interface of the upstream (API document, section 4.2): exactly one HTTP request per call, and every way it can
 * end is a value, the same as of REST. An `answered` one carries the data of the tool, and their own text where that is wanted.
 */
import { readAddress, urlOf } from './address.ts';
import type { Answer, Question, RpcCall, Upstream } from './answer.ts';
import { classifyRpc } from './classify-rpc.ts';
import { createSender, type SenderOptions } from './sender.ts';

export type RpcOptions = SenderOptions & {
  readonly rpcUrl: string;
  /** Where REST is asked. The key belongs to that origin: to an interface of another one it is not sent. */
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
      if (rpc === undefined) throw new TypeError('a question to the JSON-RPC interface says what is called');
      const url = absolute ? urlOf(address, { path, absolute }) : address;
      const id = ++lastId;
      const post = JSON.stringify({ jsonrpc: '2.0', id, ...paramsOf(rpc) });
      return sender.send({ url, post, scheme, signal }, (received) => classifyRpc(received, { id, rpc, withText }));
    },
    close: sender.close,
  };
}

/** One service answers both: what is true of the one is true of the other. */
export function sharesOrigin({ rpcUrl, baseUrl }: Pick<RpcOptions, 'rpcUrl' | 'baseUrl'>): boolean {
  return readAddress(rpcUrl).origin === readAddress(baseUrl).origin;
}

function paramsOf(call: RpcCall): { readonly method: string; readonly params: unknown } {
  if (call.method === 'tools/list') {
    return { method: call.method, params: call.cursor === undefined ? {} : { cursor: call.cursor } };
  }
  return { method: call.method, params: { name: call.tool, arguments: call.arguments } };
}
