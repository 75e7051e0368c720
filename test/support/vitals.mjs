// Preloaded into a process that is watched: every second it leaves how it is in the file named by VITALS_FILE.
import { renameSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** A timer of this period measures the loop, so a loop that is never late shows the period itself. */
const RESOLUTION_MS = 10;
/** Until then it is loading its modules. */
const WARM_UP_MS = 3_000;

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
setTimeout(() => delay.reset(), WARM_UP_MS).unref();

const file = process.env.VITALS_FILE;
const lateMs = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
setInterval(() => {
  const { user, system } = process.cpuUsage();
  const vitals = {
    upMs: process.uptime() * 1000,
    rssMb: process.memoryUsage.rss() / 2 ** 20,
    cpuMs: (user + system) / 1000,
    delays: delay.count,
    delayP50Ms: lateMs(delay.percentile(50)),
    delayP99Ms: lateMs(delay.percentile(99)),
    delayMaxMs: lateMs(delay.max),
  };
  // A reader finds all of it or the one before.
  writeFileSync(`${file}.new`, JSON.stringify(vitals));
  renameSync(`${file}.new`, file);
}, 1_000).unref();
