/** Who asks for a run here, and whether the process that owns one still lives, as far as this machine can tell. */
import { hostname, userInfo } from 'node:os';

/** Who runs here, as `ops.backfill` names them. */
export function ownerName(pid: number): string {
  return `${hostname()}:${pid}`;
}

/** True only when it is certain: a process of this machine that no longer exists. */
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

/** `user@host`, as `ops.backfill` names who wants one. */
export function requesterName(): string {
  return `${userName()}@${hostname()}`;
}

/** In a container the user may be a number that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'somebody');
  }
}
