/** Has the disk of the database room? */
import type { Sql } from '../connection/connect.ts';

/** SQLSTATE `configuration_limit_exceeded`: the user's `temp_file_limit`, which says nothing of the disk. */
const TOO_MUCH = '53400';

/** Writes a few pages into a file that goes with the statement. A change of a row tells nothing: it may fit where the old one was. @throws SQLSTATE 53100 */
export async function checkRoom(sql: Sql): Promise<void> {
  const writing = sql.begin(async (tx) => {
    // In the tablespace of the database, wherever the temporary files of others go.
    await tx`select set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)`;
    await tx`select count(*) from generate_series(1, 20000)`;
  });
  await writing.catch((error: unknown) => {
    if ((error as { readonly code?: unknown }).code !== TOO_MUCH) throw error;
  });
}
