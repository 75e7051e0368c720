/** Checks whether the database's disk has free space. */
import type { Sql } from '../connection/connect.ts';

/** SQLSTATE `configuration_limit_exceeded`: the user's `temp_file_limit` is reached, which proves nothing about the disk. */
const TOO_MUCH = '53400';

/**
 * Writes a few pages into a temporary file of the statement. An update of a row would prove nothing, because the new row may fit into the same
 * page. @throws SQLSTATE 53100 when the disk is full
 */
export async function checkRoom(sql: Sql): Promise<void> {
  const writing = sql.begin(async (tx) => {
    // The file must be in the tablespace of the database, even if the server puts other temporary files elsewhere.
    await tx`select set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)`;
    await tx`select count(*) from generate_series(1, 20000)`;
  });
  await writing.catch((error: unknown) => {
    if ((error as { readonly code?: unknown }).code !== TOO_MUCH) throw error;
  });
}
