/** Processor time of the server's process behind a pool of one connection: what a statement costs, however busy the machine is. */
import { readFileSync } from 'node:fs';
import type { Sql } from '../../src/store/connection/connect.ts';

/** Of Linux, wherever it runs. */
const TICKS_A_SECOND = 100;

/** Seconds so far; null where the server is not on this machine, or the machine does not tell. */
export async function backendSeconds(sql: Sql): Promise<number | null> {
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return secondsOf(row!.pid);
}

/** The same of each session of others on this database, by its process. */
export async function sessionSeconds(sql: Sql): Promise<ReadonlyMap<number, number>> {
  const rows = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`;
  return new Map(
    rows.flatMap(({ pid }) => {
      const seconds = secondsOf(pid);
      return seconds === null ? [] : [[pid, seconds] as const];
    }),
  );
}

function secondsOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold anything; user and system time are the 14th and 15th field.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (!/postgres/.test(stat)) return null;
    return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
  } catch {
    return null;
  }
}
