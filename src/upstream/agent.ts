/**
 * Undici's agent and its `request`. Only these parts are imported: all of undici (`fetch`, WebSocket, caches) would take 8 MB in every process,
 * and some 50 ms of the start of every command.
 */
import type { Dispatcher, Agent as UndiciAgent } from 'undici';
import request from 'undici/lib/api/api-request.js';
import Agent from 'undici/lib/dispatcher/agent.js';

type HttpAgent = {
  /** Sends one request. Resolves when the headers of the response have arrived. */
  request(options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData>;
  /** Resolves when all requests in progress have ended. */
  close(): Promise<void>;
  /** Ends the requests in progress. */
  destroy(): Promise<void>;
};

export function createHttpAgent(options: UndiciAgent.Options): HttpAgent {
  const agent = new Agent(options);
  return {
    request: (of) => request.call(agent, of),
    close: () => agent.close(),
    destroy: () => agent.destroy(),
  };
}
