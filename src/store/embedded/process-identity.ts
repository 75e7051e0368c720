/** Tells a process from a later one that was given the same number (in a container, after a restart, that is the usual case). */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';

export type ProcessIdentity = {
  readonly pid: number;
  /** Linux: the kernel's start time of the process. Elsewhere empty: the number has to do. */
  readonly startedAt: string;
};

export function identityOf(pid: number): ProcessIdentity {
  return { pid, startedAt: startTimeOf(pid) };
}

export function isAlive({ pid, startedAt }: ProcessIdentity): boolean {
  if (!pidExists(pid)) return false;
  return startedAt === '' || startedAt === startTimeOf(pid);
}

export function pidExists(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, and belongs to somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return stateAndStart(pid)?.state !== 'Z';
}

/** Does the process belong to a user whose processes we may not signal? */
export function isForeign(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The folder a process works in; null where the system does not tell. */
export function workingFolderOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    // No /proc here, or not ours to read: the caller must do without.
    return null;
  }
}

/** Processes of the program called `program` that work in `folder` (its real path); none where the system does not tell. */
export function processesIn(folder: string, program: string): number[] {
  let names: string[];
  try {
    names = readdirSync('/proc');
  } catch {
    // Not Linux.
    return [];
  }
  const pids = names.map(Number).filter((pid) => Number.isInteger(pid) && pid > 0);
  return pids.filter((pid) => workingFolderOf(pid) === folder && programOf(pid) === program);
}

function programOf(pid: number): string | null {
  try {
    // An upgrade may have replaced the file under a running program.
    return path.basename(readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, ''));
  } catch {
    return null;
  }
}

function startTimeOf(pid: number): string {
  return stateAndStart(pid)?.start ?? '';
}

function stateAndStart(pid: number): { state: string; start: string } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold spaces: count from behind it. Start time is the 22nd field.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', start: fields[19] ?? '' };
  } catch {
    // Not Linux, or gone.
    return null;
  }
}
