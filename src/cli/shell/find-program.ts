/** Finds programs that Chandler runs but does not contain: psql, pg_dump, pg_restore. */
import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import type { Environment } from '../../settings.ts';

/** Every program of this name on the PATH of `env`, in its order. Folders that are links to each other count once. */
export function findPrograms(name: string, env: Environment): string[] {
  const file = process.platform === 'win32' ? `${name}.exe` : name;
  const folders = (env.PATH ?? '').split(path.delimiter).filter(Boolean);
  const programs = folders.map((folder) => path.join(folder, file)).filter(isProgram);
  const real = programs.map((program) => realpathSync(path.dirname(program)));
  return programs.filter((_, i) => real.indexOf(real[i]!) === i);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    // Not in this folder.
    return false;
  }
}
