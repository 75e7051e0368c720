/** Finds programs that Chandler runs but does not bring: psql, pg_dump, pg_restore. */
import { accessSync, constants, statSync } from 'node:fs';
import path from 'node:path';
import type { Environment } from '../../settings.ts';

/** Every program of this name on the PATH of `env`, in its order. */
export function findPrograms(name: string, env: Environment): string[] {
  const file = process.platform === 'win32' ? `${name}.exe` : name;
  const folders = (env.PATH ?? '').split(path.delimiter).filter(Boolean);
  return [...new Set(folders.map((folder) => path.join(folder, file)))].filter(isProgram);
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
