/** Processor time of the server's process behind a pool of one connection: what a statement costs, however busy the machine is. */
import { readFileSync } from 'node:fs';
import type { Sql } from '../../src/store/connection/connect.ts';

/** Of Linux, wherever it runs. */
const TICKS_A_SECOND = 100;

/** Seconds so far; null where the server is not on this machine, or the machine does not tell. */
export async function backendSeconds(sql: Sql): Promise<number | null> {
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  try {
    const stat = readFileSync(`/proc/${row!.pid}/stat`, 'utf8');
    // The name in parentheses may hold anything; user and system time are the 14th and 15th field.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (!/postgres/.test(stat)) return null;
    return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
  } catch {
    return null;
  }
}
