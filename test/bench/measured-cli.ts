/** Runs `chandler` in a process of its own, and measures seconds, memory and processor time. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type CliResult, type RunningCli, startCli } from '../support/program.ts';
import { timed } from './rounds.ts';

export type Measured = CliResult & { readonly ms: number; readonly rssMb: number; readonly cpuMs: number };

const PRELOAD = new URL('report-peak.mjs', import.meta.url).href;

/** What a run needed that ended on its own; `nodeOptions` are added, for a profile. */
export async function runMeasured(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  nodeOptions = process.env.BENCH_NODE_OPTIONS ?? '',
): Promise<Measured> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-bench-'));
  const file = path.join(folder, 'peak.json');
  try {
    let result: CliResult | undefined;
    const ms = await timed(async () => {
      const running = await startCli(args, {
        ...env,
        NODE_OPTIONS: `--import ${PRELOAD} ${nodeOptions}`,
        BENCH_PEAK_FILE: file,
      });
      result = await running.ended;
    });
    const peak = JSON.parse(readFileSync(file, 'utf8')) as { rssMb: number; cpuMs: number };
    return { ...result!, ms, ...peak };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export type RunningSimulator = { readonly baseUrl: string; stop(): Promise<void> };

/** A made-up market behind HTTP in a process of its own, without limits. */
export async function startSimulator(coins: number): Promise<RunningSimulator> {
  const args = ['simulate', '--port', '0', '--unlimited', '--no-gzip', '--coins', String(coins), '--json'];
  const running: RunningCli = await startCli(args, {});
  const baseUrl = await new Promise<string>((resolve, reject) => {
    let text = '';
    running.process.stdout!.on('data', (part: Buffer) => {
      text += part;
      const found = /"baseUrl":\s*"([^"]+)"/.exec(text);
      if (found) resolve(found[1]!);
    });
    running.ended.then(({ err }) => reject(new Error(`the simulator ended: ${err}`)), reject);
  });
  return {
    baseUrl,
    stop: async () => {
      running.process.kill('SIGTERM');
      await running.ended;
    },
  };
}
