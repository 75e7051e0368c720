/** Whether the process that owns a run still lives, as far as this machine can tell. */
import { ownerName } from '../ingestion.ts';

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
