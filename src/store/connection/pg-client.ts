/** A connection of node-postgres, for one thing that postgres.js cannot do: rows and copies that wait for a slow reader. */
import net from 'node:net';
import type { Writable } from 'node:stream';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { CONNECT_SECONDS, KEEPALIVES, LOCK_TIMEOUT, RELIED_ON } from './connect.ts';
import type { Watchdog } from './connection-watchdog.ts';
import { readDatabaseUrl } from './database-url.ts';

type PgOptions = {
  readonly url: string;
  /** Shown in `pg_stat_activity`, unless the address says otherwise. */
  readonly applicationName: string;
  /** Settings of the server as `-c name=value`. They follow those of the address. */
  readonly settings?: string;
  readonly watchdog?: Watchdog | undefined;
};

/**
 * The options with which node-postgres connects. We parse the address ourselves, so that `sslmode` means the same as for postgres.js.
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
    options: [LOCK_TIMEOUT, KEEPALIVES, options, RELIED_ON, settings].filter(Boolean).join(' '),
  };
}

/** Opens a connection in UTC. Rejects with the error of the driver when the server cannot be reached. */
export async function openPgClient(options: PgOptions): Promise<pg.Client> {
  const client = new pg.Client({
    ...pgSettings({ ...options, settings: `-c TimeZone=UTC -c DateStyle=ISO ${options.settings ?? ''}` }),
    keepAlive: true,
  });
  // A running statement rejects with this error. Without a listener it would end the process.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** The bytes of a statement `copy … to stdout` as they arrive. If the caller stops reading, the server does not cancel the statement. */
export function copyOf(client: pg.Client, statement: string): AsyncIterable<Buffer> {
  return client.query(copyTo(statement)) as AsyncIterable<Buffer>;
}

/** A stream into a statement `copy … from stdin`. It emits `finish` when the server has stored everything. */
export function copyInto(client: pg.Client, statement: string): Writable {
  return client.query(copyFrom(statement));
}
