/** JSON-RPC 2.0 as used by the tool interface: requests and responses, error codes, and the status in a failure's message. */
import { z } from 'zod';

/** The path below the server's own address. */
export const RPC_PATH = '/rpc';
/** All paths of the interface, with those of the vendor's hosted server, for clients that were written for it (upstream-api.md, section 4). */
export const RPC_PATHS = [RPC_PATH, '/json-rpc', '/streamable-http'] as const;

/**
 * A string, a number or null. A request without an id is a notification and gets no answer. The server refuses a whole number that a
 * double cannot store exactly, because it could not send it back unchanged.
 */
const ID_RULE = { error: 'expected string, number (below 2^53) or null' };
export const rpcIdSchema = z.union(
  [z.string(), z.number().refine((id) => !Number.isInteger(id) || Number.isSafeInteger(id), ID_RULE), z.null()],
  ID_RULE,
);
export type RpcId = z.output<typeof rpcIdSchema>;

/** The required params of MCP's handshake. */
export const initializeParams = z.looseObject(
  {
    protocolVersion: z.string({ error: 'protocolVersion must be a string' }),
    capabilities: z.looseObject({}, { error: 'capabilities must be an object' }),
    clientInfo: z.looseObject(
      {
        name: z.string({ error: 'clientInfo.name must be a string' }),
        version: z.string({ error: 'clientInfo.version must be a string' }),
      },
      { error: 'clientInfo must be an object' },
    ),
  },
  { error: 'params must be an object' },
);

export const rpcVersion = z.literal('2.0', { error: 'expected "2.0"' });

/** A request, or a notification when `id` is absent. */
export const rpcRequestSchema = z.object(
  {
    jsonrpc: rpcVersion,
    id: rpcIdSchema.optional(),
    method: z.string({ error: 'expected string' }),
    params: z
      .union([z.record(z.string(), z.unknown()), z.array(z.unknown())], { error: 'expected object or array' })
      .optional(),
  },
  { error: 'expected object' },
);
export type RpcRequest = z.output<typeof rpcRequestSchema>;

export const rpcErrorSchema = z.object(
  {
    code: z.number({ error: 'expected number' }),
    message: z.string({ error: 'expected string' }),
    data: z.unknown().optional(),
  },
  { error: 'expected object' },
);
export type RpcError = z.output<typeof rpcErrorSchema>;

/** The response to a request: with either `result` or `error`; test with `in`. */
export type RpcResponse =
  | { readonly jsonrpc: '2.0'; readonly id: RpcId; readonly result: unknown }
  | { readonly jsonrpc: '2.0'; readonly id: RpcId; readonly error: RpcError };

/** `result` of `tools/call`. The first element contains the tool's output, a JSON document as text. */
export const toolResultSchema = z.object(
  {
    content: z
      .array(z.looseObject({ type: z.string({ error: 'expected string' }), text: z.string().optional() }), {
        error: 'expected array',
      })
      .min(1, { error: 'expected at least one element' }),
    isError: z.boolean().optional(),
    structuredContent: z.unknown().optional(),
  },
  { error: 'expected object' },
);

/** `result` of `tools/list`. `inputSchema` is JSON Schema; its `required` lists the required arguments. */
export const toolListSchema = z.object(
  {
    tools: z.array(
      z.looseObject({
        name: z.string({ error: 'expected string' }),
        description: z.string().optional(),
        inputSchema: z.looseObject({ required: z.array(z.string()).optional() }),
      }),
      { error: 'expected array' },
    ),
    nextCursor: z.string().optional(),
  },
  { error: 'expected object' },
);

/** The codes of the JSON-RPC 2.0 specification, section 5.1, and one from the range for servers: the tool ran and failed. */
export const RPC_CODES = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  toolFailed: -32000,
} as const;

/** The statuses with which a tool can fail: the same as on the REST interface for the same query. */
export type ToolFailureStatus = 400 | 402 | 403 | 404 | 429 | 500 | 503;

/** `error.message` of a failed tool: the REST status, a colon, the REST text (API document, section 7). */
export function toolFailureMessage(status: ToolFailureStatus, text: string): string {
  return `${status}: ${text}`;
}

/** The provenance of a tool's answer (decision 74). The keys have the form that MCP reserves for extensions. */
const toolProvenance = { 'chandler/coverage': z.string(), 'chandler/as-of': z.string().optional() };
const toolProvenanceSchema = z.object(toolProvenance);
export type ToolProvenance = z.output<typeof toolProvenanceSchema>;

/** `error.data` of a failed tool: the content of the message, for programs. */
export const toolFailureDataSchema = z.object({
  status: z.number(),
  retryAfterSeconds: z.number().optional(),
  /** The invalid argument, if that is the reason. */
  argument: z.string().optional(),
  /** The provenance of a 404. */
  ...z.object(toolProvenance).partial().shape,
});
export type ToolFailureData = z.output<typeof toolFailureDataSchema>;
