import { z } from 'zod';
import { rpcErrorSchema, rpcIdSchema, rpcVersion } from '../../src/contract/interface/json-rpc.ts';

/** The answer to a request: either `result` or `error`, which the reader distinguishes by `in`. */
export const rpcResponseSchema = z.union(
  [
    z
      .object({ jsonrpc: rpcVersion, id: rpcIdSchema, result: z.unknown() })
      .refine((answer) => answer.result !== undefined),
    z.object({ jsonrpc: rpcVersion, id: rpcIdSchema, error: rpcErrorSchema }),
  ],
  { error: 'expected a JSON-RPC 2.0 response' },
);
