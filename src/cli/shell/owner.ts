/** The names of this process and its user, and whether a process of this machine still runs. */
import { hostname, userInfo } from 'node:os';
import { pidExists } from '../../store/embedded/process-identity.ts';

/** `host:pid`. `ops.backfill` uses it to name the process that runs a backfill. */
export function ownerName(pid: number): string {
  return `${hostname()}:${pid}`;
}

/** True only for a process of this machine that no longer exists. */
export function isGone(owner: string): boolean {
  const pid = Number(owner.slice(owner.lastIndexOf(':') + 1));
  return owner === ownerName(pid) && !pidExists(pid);
}

/** `user@host`. `ops.backfill` uses it to name who requested a backfill. */
export function requesterName(): string {
  return `${userName()}@${hostname()}`;
}

/** In a container the user may be a number without a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'somebody');
  }
}
