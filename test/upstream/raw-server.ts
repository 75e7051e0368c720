/** A server below HTTP: it sends exactly the bytes a test wants, when the test wants, and remembers every request. */
import net from 'node:net';
import { onTestFinished } from 'vitest';

export type Heard = {
  readonly line: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connection: number;
};
export type RawServer = {
  readonly origin: string;
  readonly port: number;
  readonly heard: readonly Heard[];
  stop(): Promise<void>;
};

/** `answer` is called once per request, with the socket to answer on. The server stops with the test. */
export async function startRawServer(
  answer: (socket: net.Socket, heard: Heard, count: number) => void,
): Promise<RawServer> {
  const heard: Heard[] = [];
  const sockets = new Set<net.Socket>();
  let connections = 0;
  const server = net.createServer((socket) => {
    const connection = ++connections;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    let pending = '';
    socket.on('data', (data) => {
      pending += data.toString('latin1');
      for (let end = pending.indexOf('\r\n\r\n'); end >= 0; end = pending.indexOf('\r\n\r\n')) {
        const [line = '', ...fields] = pending.slice(0, end).split('\r\n');
        pending = pending.slice(end + 4);
        const headers = Object.fromEntries(
          fields.map((field) => [
            field.slice(0, field.indexOf(':')).toLowerCase(),
            field.slice(field.indexOf(':') + 1).trim(),
          ]),
        );
        const request = { line, headers, connection };
        heard.push(request);
        answer(socket, request, heard.length);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const stop = () =>
    new Promise<void>((resolve) => {
      for (const socket of sockets) socket.destroy();
      server.close(() => resolve());
    });
  onTestFinished(stop);
  return { origin: `http://127.0.0.1:${port}`, port, heard, stop };
}

/** The bytes of a whole answer, with the true Content-Length unless `headers` gives another. */
export function http(status: number, headers: Record<string, string>, body: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(body);
  const all = { 'Content-Length': String(bytes.length), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status} X\r\n${lines.join('')}\r\n`), bytes]);
}

export const JSON_TYPE = { 'Content-Type': 'application/json; charset=UTF-8' };
