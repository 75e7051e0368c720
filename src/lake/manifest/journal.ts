/**
 * Notes what an export has begun and finished before its manifest is written, in a small file for each, so that the next run continues where a
 * killed one stopped. The manifest then replaces these notes, and they are removed.
 */
import { type Destination, readText } from '../destination/destination.ts';
import type { EncodedMonths } from '../digest/month-book.ts';
import type { ManifestFile } from './manifest.ts';

/** Readers of data ignore names that begin with a dot. */
const FOLDER = '.unfinished/';
const EXTENSION = '.json';

export type Finished = {
  readonly file: ManifestFile;
  /** For a file of series: the months of each series, by its name. */
  readonly months: Readonly<Record<string, EncodedMonths>>;
};

/** The path of the file that an entry of the journal is about; null for a file that is not an entry. */
export function pathOfEntry(entry: string): string | null {
  return entry.startsWith(FOLDER) ? entry.slice(FOLDER.length, -EXTENSION.length) : null;
}

/** Marks the content at this path as unknown, until it is noted as finished. */
export function noteBegun(destination: Destination, path: string): Promise<void> {
  return note(destination, path, null);
}

export function noteFinished(destination: Destination, finished: Finished): Promise<void> {
  return note(destination, finished.file.path, finished);
}

async function note(destination: Destination, path: string, entry: Finished | null): Promise<void> {
  await destination.put(placeOf(path), (sink) => sink(Buffer.from(JSON.stringify(entry))));
}

/** Null: the file was begun, and not finished. @throws Error when there is no entry */
export async function readEntry(destination: Destination, path: string): Promise<Finished | null> {
  const text = await readText(destination, placeOf(path));
  if (text === null) throw new Error(`${placeOf(path)} no longer exists`);
  return JSON.parse(text) as Finished | null;
}

export function removeEntry(destination: Destination, path: string): Promise<void> {
  return destination.delete(placeOf(path));
}

function placeOf(path: string): string {
  return `${FOLDER}${path}${EXTENSION}`;
}
