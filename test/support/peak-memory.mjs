// How much memory this process had at most. It is for scripts that are preloaded into a process that a test or a benchmark measures.
import { existsSync, readFileSync } from 'node:fs';

const STATUS = '/proc/self/status';

/** On Linux, `maxRSS` of a child also counts the process that started it, and a test worker may have hundreds of MB. `VmHWM` does not. */
export function peakMb() {
  const own = existsSync(STATUS) ? /VmHWM:\s*(\d+) kB/.exec(readFileSync(STATUS, 'utf8'))[1] : null;
  return (own ?? process.resourceUsage().maxRSS) / 1024;
}
