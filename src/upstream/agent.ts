/**
 * Undici's agent and its `request`. Imported as parts: all of undici (`fetch`, WebSocket, caches) would take 8 MB in every process, and some 50 ms
 * of the start of every command.
 */
import type { Dispatcher, Agent as UndiciAgent } from 'undici';
import request from 'undici/lib/api/api-request.js';
import Agent from 'undici/lib/dispatcher/agent.js';

export type HttpAgent = {
  /** Sends one request; resolves when the headers of its response are here. */
  request(options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData>;
  /** Resolves when the requests in progress are over. */
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
