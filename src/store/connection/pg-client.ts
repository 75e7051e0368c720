/** A connection of node-postgres, for what postgres.js cannot do: rows and copies that wait for a slow reader. */
import net from 'node:net';
import type { Writable } from 'node:stream';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { CONNECT_SECONDS, KEEPALIVES, LOCK_TIMEOUT } from './connect.ts';
import type { Watchdog } from './connection-watchdog.ts';
import { readDatabaseUrl } from './database-url.ts';

export type PgOptions = {
  readonly url: string;
  /** Shown in `pg_stat_activity`, unless the address says otherwise. */
  readonly applicationName: string;
  /** Of the server: `-c name=value`; they come after those of the address. */
  readonly settings?: string;
  readonly watchdog?: Watchdog | undefined;
};

/**
 * What node-postgres connects with. We parse the address ourselves: `sslmode` must mean the same here as for postgres.js.
 * @throws StoreError when the address is wrong.
 */
export function pgSettings({ url, applicationName, settings = '', watchdog }: PgOptions) {
  const { applicationName: named, connectTimeoutSeconds = CONNECT_SECONDS, options, ...address } = readDatabaseUrl(url);
  return {
    ...address,
    connectionTimeoutMillis: connectTimeoutSeconds * 1000,
    application_name: named ?? applicationName,
    stream: () => {
      const socket = new net.Socket().setNoDelay(true);
      watchdog?.add(socket);
      return socket;
    },
    options: [LOCK_TIMEOUT, KEEPALIVES, options, settings].filter(Boolean).join(' '),
  };
}

/** In UTC. Rejects with the driver's error when the server cannot be reached. */
export async function openPgClient(options: PgOptions): Promise<pg.Client> {
  const client = new pg.Client({
    ...pgSettings({ ...options, settings: `-c TimeZone=UTC -c DateStyle=ISO ${options.settings ?? ''}` }),
    keepAlive: true,
  });
  // A statement under way rejects with it; without a listener it would end the process.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** What a statement `copy … to stdout` gives, as it comes; reading no further cancels nothing on the server. */
export function copyOf(client: pg.Client, statement: string): AsyncIterable<Buffer> {
  return client.query(copyTo(statement)) as AsyncIterable<Buffer>;
}

/** Takes what a statement `copy … from stdin` reads; `finish` comes when the server has stored all of it. */
export function copyInto(client: pg.Client, statement: string): Writable {
  return client.query(copyFrom(statement));
}
