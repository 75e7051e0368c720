/** How many packets a piece of work exchanges with the database: work that queries row by row is noticed on a machine of any speed. */
import { createClient, type Sql } from '../../src/store/connection/connect.ts';
import type { TestDatabase } from './database.ts';
import { createRelay } from './relay.ts';

/** Packets: a statement needs a few for itself and its parameters, however many rows they have. */
export async function packetsOf(database: TestDatabase, work: (sql: Sql) => Promise<unknown>): Promise<number> {
  const relay = await createRelay(database.url);
  const sql = createClient({ url: relay.url, max: 1 });
  try {
    await sql`select 1`;
    const before = relay.activity();
    await work(sql);
    return relay.activity() - before;
  } finally {
    await sql.end({ timeout: 5 });
    await relay.close();
  }
}
