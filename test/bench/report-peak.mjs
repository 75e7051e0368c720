// Preloaded into a measured process: at its end it leaves its largest resident size (MB) and its processor time (ms) in the file named.
import { writeFileSync } from 'node:fs';
import { peakMb } from '../support/peak-memory.mjs';

process.on('exit', () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const peak = { rssMb: peakMb(), cpuMs: (userCPUTime + systemCPUTime) / 1000 };
  writeFileSync(process.env.BENCH_PEAK_FILE, JSON.stringify(peak));
});
