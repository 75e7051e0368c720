/** How much goes to and fro between a piece of work and the database: what asks row by row shows, on a machine of any speed. */
import { createClient, type Sql } from '../../src/store/connection/connect.ts';
import type { TestDatabase } from './database.ts';
import { createRelay } from './relay.ts';

/** Packets, a few of which a statement needs with its parameters, however many rows they have. */
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
