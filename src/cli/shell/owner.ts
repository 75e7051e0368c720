/** The names of this process and its user, and whether a process of this machine still lives. */
import { hostname, userInfo } from 'node:os';

/** `host:pid`, as `ops.backfill` names the process that runs a backfill. */
export function ownerName(pid: number): string {
  return `${hostname()}:${pid}`;
}

/** True only for a process of this machine that no longer exists. */
export function isGone(owner: string): boolean {
  const pid = Number(owner.slice(owner.lastIndexOf(':') + 1));
  if (owner !== ownerName(pid)) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** `user@host`, as `ops.backfill` names who requested a backfill. */
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
