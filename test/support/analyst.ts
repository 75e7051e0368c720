/** A session of an analyst who configures no time zone: read-only, in New York. */
import { createClient, type Sql } from '../../src/store/connection/connect.ts';
import type { TestDatabase } from './database.ts';

export const NEW_YORK = 'America/New_York';

/**
 * One connection. Statements must return instants as text or number, because the client reads only what a session in UTC prints. End it
 * with `end`.
 */
export async function analystIn({ url }: Pick<TestDatabase, 'url'>, zone = NEW_YORK): Promise<Sql> {
  const sql = createClient({ url, max: 1, columns: 'as named' });
  await sql.unsafe(`set timezone = '${zone}'; set role analyst`);
  return sql;
}
