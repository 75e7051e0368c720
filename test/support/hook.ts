/** A webhook on a port of its own that keeps what it receives and answers as configured. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Hook = {
  /** With a secret in its path. */
  readonly url: string;
  readonly secret: string;
  /** The bodies as they arrived, oldest first. */
  readonly posts: readonly string[];
  /** How many GETs arrived. */
  gets: number;
  /** The texts of the messages that it accepted. */
  texts(): string[];
  /** How it answers from now on; null: it accepts everything. */
  answer: ((request: IncomingMessage, response: ServerResponse) => void) | null;
  close(): Promise<void>;
};

export async function startHook(): Promise<Hook> {
  const secret = 'T0SECRET/B0SECRET/xyzzy-1234567890';
  const posts: string[] = [];
  const taken: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      const isGet = request.method === 'GET';
      if (isGet) hook.gets++;
      else posts.push(body);
      if (hook.answer !== null) return hook.answer(request, response);
      if (!isGet) taken.push(body);
      response.end('ok');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const hook: Hook = {
    url: `http://127.0.0.1:${port}/services/${secret}`,
    secret,
    posts,
    gets: 0,
    texts: () => taken.map((body) => (JSON.parse(body) as { text: string }).text),
    answer: null,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return hook;
}
