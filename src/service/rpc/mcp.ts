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
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    const server = serve();
    await server.connect(transport);
    // As in plain JSON-RPC, nobody executes a notification of a batch. The SDK would never answer a batch whose request is cancelled in it.
    const requests = Array.isArray(body) ? body.filter(({ id }) => id !== undefined) : body;
    try {
      return await transport.handleRequest(bare, { parsedBody: requests });
    } finally {
      await server.close();
    }
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
