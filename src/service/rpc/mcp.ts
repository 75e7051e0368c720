/**
 * The same tools for clients of the Model Context Protocol, through the official SDK. It serves the 2026 revision, where each request is
 * self-contained, and the older ones that begin with `initialize`. There are no sessions: any process can answer any request.
 */
import {
  type CallToolResult,
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { RPC_CODES } from '../../contract/interface/json-rpc.ts';
import type { Caller } from '../../contract/plan/access.ts';
import { VERSION } from '../../core/version.ts';
import type { Admit } from './batch-throttle.ts';
import type { ToolOutcome } from './tool-outcome.ts';
import type { Toolbox } from './toolbox.ts';

type McpDeps = {
  readonly toolbox: Toolbox;
  readonly admit: Admit;
  /** Called with unexpected errors. */
  readonly onError: (error: unknown, where: string) => void;
};

const INSTRUCTIONS =
  'Cryptocurrency market data: prices, volumes, coins, exchanges, markets, tags, people, contracts. ' +
  'Ids look like btc-bitcoin; search finds them by name or symbol.';

/** Answers one HTTP request whose JSON body has been read. */
export async function answerMcp(
  { toolbox, admit, onError }: McpDeps,
  caller: Caller,
  request: Request,
  body: unknown,
): Promise<Response> {
  const headers = new Headers(request.headers);
  // The answer is one JSON document, whatever else the client accepts.
  headers.set('Accept', 'application/json, text/event-stream');
  headers.delete('Content-Length');
  // The copy has no signal: when the client disconnects, the call still runs to its end, and releases what it holds.
  const bare = new Request(request.url, { method: 'POST', headers });
  const serve = () => serverFor(toolbox, caller, admit);
  if (await isLegacyRequest(bare, body)) {
    const answerLegacy = (messages: unknown) => answerByTransport(serve(), bare, messages);
    return Array.isArray(body) ? answerBatch(answerLegacy, body) : answerLegacy(body);
  }
  // The SDK reports every request that it refuses. Only the SDK's own failures are of interest.
  let lastError: Error | null = null;
  const modern = createMcpHandler(serve, {
    legacy: 'reject',
    onerror: (error) => {
      lastError = error;
    },
  });
  const answer = await modern.fetch(bare, { parsedBody: body });
  if (answer.status >= 500) onError(lastError ?? new Error(`the MCP handler answered ${answer.status}`), 'mcp');
  return answer;
}

async function answerByTransport(server: Server, request: Request, messages: unknown): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    return await transport.handleRequest(request, { parsedBody: messages });
  } finally {
    await server.close();
  }
}

/**
 * Answers a batch like plain JSON-RPC: an array with one response for each request, in their order. The SDK keeps one response for each id, so it gets
 * the position of a request instead of its id. It gets no notifications, which nobody executes: it would never answer a batch in which a request is cancelled.
 */
async function answerBatch(
  answer: (messages: unknown) => Promise<Response>,
  batch: readonly { readonly id?: unknown }[],
): Promise<Response> {
  const requests = batch.filter(({ id }) => id !== undefined);
  const response = await answer(requests.map((request, position) => ({ ...request, id: position })));
  // Without requests there is no body, and a refusal concerns the whole batch.
  if (response.status !== 200) return response;
  const answers = [await response.json()].flat() as { readonly id: number }[];
  return Response.json(answers.map((one) => ({ ...one, id: requests[one.id]!.id })));
}

function serverFor(toolbox: Toolbox, caller: Caller, admit: Admit): Server {
  const server = new Server(
    { name: 'chandler', title: 'Chandler', version: VERSION },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler('tools/list', () => ({ tools: [...toolbox.tools] }));
  server.setRequestHandler('tools/call', async ({ params }) => {
    const outcome = await toolbox.call(caller, params.name, params.arguments, admit);
    const tool = toolbox.tools.find(({ name }) => name === params.name);
    return server.projectCallToolResult(toolResult(outcome), tool?.outputSchema);
  });
  return server;
}

/** MCP requires that a failure is a result with `isError`: the model reads the reason, and can correct its call. */
function toolResult(outcome: ToolOutcome): CallToolResult {
  switch (outcome.kind) {
    case 'answered': {
      const content = [{ type: 'text' as const, text: JSON.stringify(outcome.output) }];
      const result = { content, structuredContent: outcome.output };
      return outcome.provenance === null ? result : { ...result, _meta: outcome.provenance };
    }
    case 'failed': {
      const { status: _, retryAfterSeconds: __, argument: ___, ...provenance } = outcome.data;
      const said = { content: [{ type: 'text' as const, text: outcome.message }], isError: true };
      return Object.keys(provenance).length === 0 ? said : { ...said, _meta: provenance };
    }
    case 'unknown tool':
      throw new ProtocolError(RPC_CODES.invalidParams, outcome.message);
  }
}
