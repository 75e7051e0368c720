/** Finds and runs psql. */
import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import path from 'node:path';
import type { Environment } from '../../settings.ts';

/** The program `psql` on the PATH of `env`, or null. */
export function findPsql(env: Environment): string | null {
  const name = process.platform === 'win32' ? 'psql.exe' : 'psql';
  for (const folder of (env.PATH ?? '').split(path.delimiter).filter(Boolean)) {
    const file = path.join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // Not in this folder.
    }
  }
  return null;
}

/** Runs psql on this terminal; resolves to its exit code. The password is passed in the environment, where `ps` does not show it. */
export function runPsql(file: string, args: readonly string[], url: string, env: Environment): Promise<number> {
  const { address, password } = withoutPassword(url);
  const ours = { PGAPPNAME: 'chandler sql', PGTZ: 'UTC', ...(password === '' ? {} : { PGPASSWORD: password }) };
  return new Promise((resolve, reject) => {
    const child = spawn(file, ['--dbname', address, ...args], { stdio: 'inherit', env: { ...env, ...ours } });
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });
}

function withoutPassword(url: string): { address: string; password: string } {
  const parsed = new URL(url);
  const password = decodeURIComponent(parsed.password);
  parsed.password = '';
  return { address: parsed.href, password };
}
