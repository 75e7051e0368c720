/** The check of the lake: whether Chandler can read and write it, and whether the place contains a lake. */
import { randomUUID } from 'node:crypto';
import { access, constants, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { App } from '../../app.ts';
import type { Config } from '../../config.ts';
import { formatInstant } from '../../core/format.ts';
import { nameOfAddress } from '../../lake/destination/address.ts';
import type { Destination } from '../../lake/destination/destination.ts';
import { DestinationError } from '../../lake/destination/destination-error.ts';
import { openDestination } from '../../lake/destination/open-destination.ts';
import { refusedDamage } from '../../lake/export/existing-export.ts';
import { DamagedManifest, readManifestHead } from '../../lake/manifest/read-manifest.ts';
import { ExportRefused } from '../../lake/refused.ts';
import { nearestExisting } from '../health/disk.ts';
import { readOtherLake } from '../lake/lake-choice.ts';
import { type Check, fail, failWith, ok } from './check.ts';

/** Fewer attempts than usual, because somebody waits for the result. */
const SOON = { attempts: 2, idleMs: 5_000 };
const ELSEWHERE = 'name another place in CHANDLER_LAKE_URL';

/** No checks without a lake. `mayWrite`: the check may write a file to object storage and remove it, to find out whether that is possible. */
export async function checkLake({ lake, s3 }: Config, { mayWrite }: { readonly mayWrite: boolean }): Promise<Check[]> {
  if (lake === null) return [];
  const name = nameOfAddress(lake.address);
  try {
    const destination = await openDestination(lake.address, s3, SOON);
    const head = await readManifestHead(destination);
    if (head !== null && head.kind !== 'lake')
      return [fail('lake', `${name} has an export that was made by hand`, ELSEWHERE)];
    if (lake.address.kind === 's3' && mayWrite) await writeAndRemove(destination);
    else if (lake.address.kind !== 's3') await checkFolder(lake.address.folder);
    const state = head === null ? 'nothing there yet' : `as of ${formatInstant(Date.parse(head.at))}`;
    return [ok('lake', `${name}, ${state}`)];
  } catch (error) {
    if (error instanceof DestinationError) return [fail('lake', error.message, error.remedy)];
    if (error instanceof DamagedManifest) return [failWith('lake', refusedDamage({ name }, 'lake', error).message)];
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return [fail('lake', `${name} cannot be written (${code})`, `correct its owner, or ${ELSEWHERE}`)];
  }
}

/** Whether it is the lake of this warehouse. Reports only problems that `checkLake` does not find. */
export async function checkWhichLake(app: Pick<App, 'config' | 'database'>): Promise<Check[]> {
  try {
    const other = await readOtherLake(app, SOON);
    if (other === null) return [];
    const failed = failWith('lake', other.problem);
    return [other.isRefused ? failed : { ...failed, state: 'warn' }];
  } catch (error) {
    if (error instanceof DestinationError || error instanceof ExportRefused) return [];
    throw error;
  }
}

/** The first file of the lake creates the folder, so it need not exist. @throws the file system's error that writing the lake would meet */
async function checkFolder(folder: string): Promise<void> {
  const existing = await nearestExisting(path.resolve(folder));
  await readdir(existing);
  await access(existing, constants.W_OK | constants.X_OK);
}

/** Readers ignore a file whose name begins with a dot. */
async function writeAndRemove(destination: Destination): Promise<void> {
  const file = `.doctor-${randomUUID()}`;
  await destination.put(file, (sink) => sink(Buffer.from('chandler doctor')));
  await destination.delete(file);
}
