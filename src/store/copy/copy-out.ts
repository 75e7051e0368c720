/** Reads the rows of statements from Postgres as fast as it sends them, all from one snapshot. */
import pg from 'pg';
import type { Watchdog } from '../connection/connection-watchdog.ts';
import { copyOf, pgSettings } from '../connection/pg-client.ts';
import { explainDatabaseError } from '../connection/store-error.ts';
import { type Batch, type ColumnType, createBatch } from './columns.ts';
import { readCopy } from './read-copy.ts';

export type CopyOut = {
  /** Yields the rows of the statements, one statement after the other, in batches of `capacity` rows. The last batch may be smaller. */
  read(statements: Statements, types: readonly ColumnType[], capacity: number): AsyncGenerator<Batch>;
  close(): Promise<void>;
};

export type Statements = Iterable<string> | AsyncIterable<string>;

type CopyOptions = {
  readonly url: string;
  /** The name of an exported snapshot; the transaction that exported it must still be open. */
  readonly snapshot: string;
  readonly watchdog?: Watchdog | undefined;
};

/** Enough for Postgres to sort a page of rows in memory. */
const WORK_MEM = '64MB';

/**
 * Opens a connection of its own with `pg`, because the COPY of postgres.js waits for ever after an error of the server.
 * @throws StoreError when no server answers there
 */
export async function openCopyOut({ url, snapshot, watchdog }: CopyOptions): Promise<CopyOut> {
  const client = new pg.Client(pgSettings({ url, applicationName: 'chandler export', watchdog }));
  let lost: Error | null = null;
  // Without a listener, a connection lost between two statements would end the process.
  client.on('error', (error) => {
    lost ??= error;
  });
  const explained = (error: unknown) => explainDatabaseError(lost ?? error, url) ?? lost ?? error;
  try {
    await client.connect();
    await client.query('begin isolation level repeatable read read only');
    await client.query(`set transaction snapshot '${snapshot.replaceAll("'", "''")}'`);
    await client.query(
      `set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0; set local work_mem = '${WORK_MEM}';
       set local jit = off; set local timezone = 'UTC'; set local datestyle = 'ISO'`,
    );
  } catch (error) {
    await client.end().catch(() => undefined);
    throw explained(error);
  }
  return {
    async *read(statements, types, capacity) {
      const batch = createBatch(types, capacity);
      try {
        for await (const statement of statements) {
          const bytes = copyOf(client, `copy (${statement}) to stdout (format binary)`);
          yield* readCopy(bytes, batch, capacity);
        }
      } catch (error) {
        throw explained(error);
      }
      if (batch.rows > 0) yield batch;
    },
    close: () => client.end().catch(() => undefined),
  };
}
