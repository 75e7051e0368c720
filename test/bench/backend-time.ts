/** Processor time of the server process behind a pool of one connection: what a statement costs, however busy the machine is. */
import { readFileSync } from 'node:fs';
import type { Sql } from '../../src/store/connection/connect.ts';
import { secondsOf } from './process-use.ts';

/** Seconds so far; null where the server is not on this machine, or the machine does not report them. */
export async function backendSeconds(sql: Sql): Promise<number | null> {
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return serverSecondsOf(row!.pid);
}

/** The same for each other session on this database, by its process. */
export async function sessionSeconds(sql: Sql): Promise<ReadonlyMap<number, number>> {
  const rows = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`;
  return new Map(
    rows.flatMap(({ pid }) => {
      const seconds = serverSecondsOf(pid);
      return seconds === null ? [] : [[pid, seconds] as const];
    }),
  );
}

function serverSecondsOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return /postgres/.test(stat) ? secondsOf(stat) : null;
  } catch {
    return null;
  }
}
