/**
 * Lists of the present files as plain text, one file on each line, for readers that cannot read the manifest. Engines of the Hive family read them
 * as tables (`SymlinkTextInputFormat`), others as arguments. Each list is replaced in one step, so it always shows one state.
 */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Destination, readText } from '../destination/destination.ts';
import type { ManifestFile } from '../manifest/manifest.ts';

/** Readers of data ignore names that begin with an underscore. */
const FOLDER = '_symlink/';
const NAME = 'files.txt';

/** The lists of these files, by path. Series have a list for each interval and quote, because their files have no columns for these. */
export function listsOf(files: readonly ManifestFile[], destination: Pick<Destination, 'name'>): Map<string, string> {
  const lists = new Map<string, string>();
  for (const file of files) {
    const list = `${FOLDER}${placeOf(file)}/${NAME}`;
    lists.set(list, `${lists.get(list) ?? ''}${addressOf(file.path, destination)}\n`);
  }
  return lists;
}

export function isFileList(path: string): boolean {
  return path.startsWith(FOLDER) && path.endsWith(`/${NAME}`);
}

/** `candles/interval=24h/quote=usd`. */
function placeOf({ path: file, dataset, interval }: ManifestFile): string {
  return interval === null ? dataset : file.split('/').slice(0, 3).join('/');
}

/** The address in the form that engines accept. */
function addressOf(file: string, { name }: Pick<Destination, 'name'>): string {
  return name.startsWith('s3://') ? `${name}/${file}` : pathToFileURL(path.resolve(name, file)).href;
}

/** Writes the lists that have changed, and removes those that have no file left. */
export async function writeLists(
  destination: Destination,
  files: readonly ManifestFile[],
  there: Iterable<string>,
): Promise<void> {
  const lists = listsOf(files, destination);
  for (const [list, text] of lists) {
    if ((await readText(destination, list)) !== text) await destination.put(list, (sink) => sink(Buffer.from(text)));
  }
  for (const list of there) if (isFileList(list) && !lists.has(list)) await destination.delete(list);
}
