/** The processor time and memory of a process of this machine, read from outside, so that the measurement does not count itself. Linux only. */
import { readFileSync } from 'node:fs';

/** The value of Linux on every machine. */
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
  // The name in parentheses may contain anything; user and system time are the 14th and 15th field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}
