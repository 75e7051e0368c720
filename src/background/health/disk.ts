/** How much room there is on the disks that Chandler itself writes to. The disk of a shared Postgres is not visible from here. */
import { access, constants, statfs } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../config.ts';

export const LITTLE_DISK = 1e9;
export const NO_DISK = 100e6;

export type Disk = { readonly folder: string; readonly freeBytes: number };

/** The disks of the embedded server's folder, of attestations, and of the lake. Skips a folder that cannot be read: other parts report that. */
export async function readDisks({
  databaseUrl,
  home,
  attest,
  lake,
}: Pick<Config, 'databaseUrl' | 'home' | 'attest' | 'lake'>) {
  const folders = [
    ...(databaseUrl === null ? [home] : []),
    ...(attest === null ? [] : [attest.dir]),
    ...(lake?.address.kind === 'folder' ? [lake.address.folder] : []),
  ];
  const disks = await Promise.all(
    folders.map(async (folder): Promise<Disk | null> => {
      const full = path.resolve(folder);
      const freeBytes = await readFree(await nearestExisting(full)).catch(() => null);
      return freeBytes === null ? null : { folder: full, freeBytes };
    }),
  );
  return disks.filter((disk) => disk !== null);
}

export async function readFree(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** The folder itself, or its nearest existing parent. */
export async function nearestExisting(folder: string): Promise<string> {
  for (let at = folder; ; at = path.dirname(at)) {
    const exists = await access(at, constants.F_OK).then(
      () => true,
      () => false,
    );
    if (exists || at === path.dirname(at)) return at;
  }
}
