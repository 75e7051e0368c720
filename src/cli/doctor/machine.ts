/** Checks the machine: the version of Node, and the folder of the embedded server. */
import { access, constants, statfs } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../config.ts';
import { formatBytes } from '../../core/format.ts';
import { type Check, fail, ok, warn } from './check.ts';

const LEAST_NODE = [20, 19] as const;
const LITTLE_DISK = 1e9;
const NO_DISK = 100e6;

export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isOld = major < LEAST_NODE[0] || (major === LEAST_NODE[0] && minor < LEAST_NODE[1]);
  if (!isOld) return ok('Node', version);
  return fail('Node', `${version} is too old`, `install Node ${LEAST_NODE.join('.')} or newer`);
}

/** Whether the folder of the embedded server is writable and has room. No checks when `DATABASE_URL` is set. */
export async function checkHome(config: Config): Promise<Check[]> {
  if (config.databaseUrl !== null) return [];
  const home = path.resolve(config.home);
  const existing = await nearestExisting(home);
  const refused = await access(existing, constants.W_OK | constants.X_OK).then(
    () => null,
    (error: NodeJS.ErrnoException) => error.code,
  );
  if (refused !== null) {
    return [
      refused === 'EROFS'
        ? fail(
            'home folder',
            `${existing} is on a read-only disk`,
            'choose a folder on another disk with CHANDLER_HOME',
          )
        : fail(
            'home folder',
            `${existing} cannot be written by this user`,
            'correct its owner, or choose another folder with CHANDLER_HOME',
          ),
    ];
  }
  const { bavail, bsize } = await statfs(existing);
  const free = bavail * bsize;
  const room = `${formatBytes(free)} free`;
  const more = 'make room, or choose a folder on another disk with CHANDLER_HOME';
  return [
    ok('home folder', home),
    free < NO_DISK ? fail('disk', room, more) : free < LITTLE_DISK ? warn('disk', room, more) : ok('disk', room),
  ];
}

async function nearestExisting(folder: string): Promise<string> {
  for (let at = folder; ; at = path.dirname(at)) {
    const exists = await access(at, constants.F_OK).then(
      () => true,
      () => false,
    );
    if (exists || at === path.dirname(at)) return at;
  }
}
