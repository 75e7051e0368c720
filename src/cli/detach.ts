/** Runs the same command again in the background, so that closing the terminal does not end it. */
import { spawn } from 'node:child_process';
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { CommandContext } from './context.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { printJson } from './json.ts';

/** Starts this command line without `--detach`; its output goes to a log file in the home folder. */
export async function detach(
  { config, clock, io }: CommandContext,
  { json = false }: { readonly json?: boolean },
): Promise<ExitCode> {
  const { home } = config();
  const folder = join(home, 'log');
  await mkdir(folder, { recursive: true });
  const stamp = new Date(clock.now()).toISOString().replace(/[-:]|\.\d+/g, '');
  const path = join(folder, `backfill-${stamp}-${process.pid}.log`);
  const log = await open(path, 'a');
  try {
    const args = process.argv.slice(1).filter((argument) => argument !== '--detach');
    const child = spawn(process.execPath, [...process.execArgv, ...args], {
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    });
    await new Promise<void>((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    child.unref();
    if (json) {
      printJson(io.out, { process: child.pid, log: path });
      return EXIT.done;
    }
    io.out.write(`Running in the background as process ${child.pid}; its report goes to ${path}.\n`);
    io.out.write('chandler status shows how far it is. Stopping it loses nothing.\n');
    return EXIT.done;
  } finally {
    await log.close();
  }
}
