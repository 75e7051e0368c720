/** A proxy between client and server that can be cut like a network, and knows whether anything is in progress. */
import net from 'node:net';

export type Relay = {
  /** The server's address through this relay. */
  readonly url: string;
  /** Grows with everything that passes. */
  activity(): number;
  /** Statements that Postgres has not answered yet; 0 for other servers. */
  pending(): number;
  /** Resets every connection, and every new one, until it is mended. */
  cut(): void;
  mend(): void;
  /** Lets nothing pass and closes nothing, like a host that hangs or a network that drops packets. Until it is thawed or mended. */
  freeze(): void;
  /** Lets pass what was held. A relay that was cut stays cut. */
  thaw(): void;
  close(): Promise<void>;
};

type Pair = { readonly client: net.Socket; readonly server: net.Socket; readonly pending: () => number };

export async function createRelay(target: string): Promise<Relay> {
  const to = new URL(target);
  const isPostgres = to.protocol.startsWith('postgres');
  const pairs = new Set<Pair>();
  let activity = 0;
  let isCut = false;
  let isFrozen = false;
  /**
   * Connections that arrived while nothing passed. The server does not see them either: Postgres would keep a process for each without
   * knowing its database, and meanwhile no test could drop any database.
   */
  const held = new Set<net.Socket>();
  const admit = (client: net.Socket) => {
    if (isCut) return void client.resetAndDestroy();
    if (isFrozen) {
      held.add(client.pause().on('error', () => undefined));
      return;
    }
    const server = net.connect({ host: to.hostname, port: Number(to.port), noDelay: true });
    const count = isPostgres ? countStatements() : null;
    const pair = { client, server, pending: () => count?.pending() ?? 0 };
    pairs.add(pair);
    const pass = (from: net.Socket, into: net.Socket, see: ((data: Buffer) => void) | undefined) => {
      from.on('data', (data) => {
        activity++;
        see?.(data);
        if (!into.write(data)) {
          from.pause();
          into.once('drain', () => isFrozen || from.resume());
        }
      });
      from.on('end', () => into.end());
      from.on('error', () => undefined);
      from.on('close', () => {
        activity++;
        pairs.delete(pair);
        into.destroy();
      });
    };
    pass(client, server, count?.asked);
    pass(server, client, count?.answered);
  };
  const release = (how: (client: net.Socket) => void) => {
    const all = [...held];
    held.clear();
    for (const client of all) if (!client.destroyed) how(client);
  };
  const listener = net.createServer({ noDelay: true }, admit);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String((listener.address() as net.AddressInfo).port);
  if (isPostgres) url.searchParams.set('sslmode', 'disable');
  const cut = () => {
    isCut = true;
    for (const { client, server } of pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
    release((client) => void client.resetAndDestroy());
  };
  const thaw = () => {
    isFrozen = false;
    for (const { client, server } of pairs) for (const end of [client, server]) end.resume();
    release((client) => admit(client.resume()));
  };
  return {
    url: url.href,
    activity: () => activity,
    pending: () => [...pairs].reduce((sum, pair) => sum + pair.pending(), 0),
    cut,
    freeze: () => {
      isFrozen = true;
      for (const { client, server } of pairs) for (const end of [client, server]) end.pause();
    },
    thaw,
    mend: () => {
      isCut = false;
      thaw();
    },
    close: async () => {
      const closed = new Promise((resolve) => listener.close(resolve));
      cut();
      await closed;
    },
  };
}

const [QUERY, SYNC, READY] = [...'QSZ'].map((letter) => letter.charCodeAt(0));

/** Reads the frames of the Postgres protocol: a query or sync is answered when the server says that it is ready again. */
function countStatements() {
  // The first message has no type, and is answered the same way.
  let pending = 1;
  return {
    pending: () => Math.max(0, pending),
    asked: frames(true, (type) => {
      if (type === QUERY || type === SYNC) pending++;
    }),
    answered: frames(false, (type) => {
      if (type === READY) pending--;
    }),
  };
}

/** Calls `each` with the type of each message; `isUntyped`: the first message has none. */
function frames(isUntyped: boolean, each: (type: number) => void): (data: Buffer) => void {
  let left = Buffer.alloc(0);
  let skip = 0;
  let first = isUntyped;
  return (data) => {
    let at = Math.min(skip, data.length);
    skip -= at;
    if (skip > 0) return;
    let rest = left.length === 0 ? data.subarray(at) : Buffer.concat([left, data.subarray(at)]);
    at = 0;
    for (;;) {
      const head = first ? 4 : 5;
      if (rest.length - at < head) break;
      const length = rest.readUInt32BE(at + head - 4) + (first ? 0 : 1);
      if (!first) each(rest[at]!);
      first = false;
      at += length;
      if (at > rest.length) {
        skip = at - rest.length;
        at = rest.length;
      }
    }
    rest = rest.subarray(at);
    left = Buffer.from(rest);
  };
}
