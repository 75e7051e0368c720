/** What a process of this machine needed so far, read from outside, so that what is measured does not measure itself. Linux only. */
import { readFileSync } from 'node:fs';

/** Of Linux, wherever it runs. */
const TICKS_A_SECOND = 100;

/** Processor time of these processes, user and system, in seconds. */
export function cpuSecondsOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + secondsOf(readFileSync(`/proc/${pid}/stat`, 'utf8')), 0);
}

/** Resident size now, in MB. */
export function rssMbOf(pid: number): number {
  const [, kb] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kb) / 1024;
}

/** From the text of `/proc/<pid>/stat`. */
export function secondsOf(stat: string): number {
  // The name in parentheses may hold anything; user and system time are the 14th and 15th field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}
