/** A Postgres with TLS: a proxy before one without, which uses the self-signed certificate and passes on the rest. */
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { SELF_SIGNED } from './self-signed.ts';

export type TlsFront = {
  /** The address with the proxy in place of the server, and with these parameters after the `?`. */
  urlWith(parameters: Readonly<Record<string, string>>): string;
  /** Connections that reached encryption. */
  encrypted(): number;
  stop(): Promise<void>;
};

export async function startTlsFront(databaseUrl: string): Promise<TlsFront> {
  const target = new URL(databaseUrl);
  const sockets = new Set<net.Socket>();
  let encrypted = 0;
  const keep = (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    return socket;
  };
  const server = net.createServer((client) => {
    keep(client);
    // A client that wants TLS first sends a request for it, and nothing else.
    client.once('data', () => {
      client.write('S');
      const secure = new tls.TLSSocket(client, { isServer: true, ...SELF_SIGNED });
      keep(secure);
      secure.once('secure', () => {
        encrypted++;
        const behind = keep(net.connect(Number(target.port), target.hostname.replace(/^\[(.*)\]$/, '$1')));
        secure.pipe(behind).pipe(secure);
        secure.once('close', () => behind.destroy());
        behind.once('close', () => secure.destroy());
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  return {
    urlWith: (parameters) => {
      const url = new URL(databaseUrl);
      url.host = `localhost:${port}`;
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
      return url.href;
    },
    encrypted: () => encrypted,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
