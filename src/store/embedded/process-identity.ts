/** Distinguishes a process from a later one with the same process id. In a container this is the usual case after a restart. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';

export type ProcessIdentity = {
  readonly pid: number;
  /** On Linux, the start time that the kernel has for the process. Elsewhere empty, so that only the process id is compared. */
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
    // EPERM: the process lives and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return stateAndStart(pid)?.state !== 'Z';
}

/** True if the process belongs to a user whose processes we may not signal. */
export function isForeign(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The working folder of a process. Null where the system does not provide it. */
export function workingFolderOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    // There is no /proc, or we may not read it.
    return null;
  }
}

/** Processes of the program `program` whose working folder is `folder` (a real path). None where the system does not provide it. */
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
    // The name in parentheses may contain spaces, so this counts from behind it. The start time is the 22nd field.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', start: fields[19] ?? '' };
  } catch {
    // Not Linux, or the process has ended.
    return null;
  }
}
