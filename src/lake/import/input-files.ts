/** Finds the files of an import: the named files, and the files in named folders. */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { type Destination, isHiddenFile } from '../destination/destination.ts';
import { openFolder } from '../destination/folder.ts';
import type { Format } from '../format/format.ts';
import { MANIFEST_FILE } from '../manifest/manifest.ts';
import { DamagedManifest, readManifest } from '../manifest/read-manifest.ts';
import { ImportRefused } from '../refused.ts';
import type { TableFile } from './table/table.ts';

export type InputFile = TableFile & {
  /** The name to show to users. */
  readonly name: string;
  readonly format: Format;
  /** The values in the names of its folders, as in `interval=1h/quote=usd`. */
  readonly place: Readonly<Partial<Record<'interval' | 'quote', string>>>;
};

type Inputs = {
  readonly files: readonly InputFile[];
  /** Folders with a manifest of an export. */
  readonly exports: readonly Destination[];
};

const FORMAT_OF: Readonly<Record<string, Format>> = {
  csv: 'csv',
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  parquet: 'parquet',
  arrow: 'arrow',
  feather: 'arrow',
};
const KNOWN = '.csv, .ndjson, .jsonl (each also with .gz), .parquet, .arrow or .feather';

/** `format`: of all files, whatever their names are; null: each name shows it. @throws ImportRefused when there is nothing to read */
export async function findInputs(paths: readonly string[], format: Format | null): Promise<Inputs> {
  const files: InputFile[] = [];
  const exports: Destination[] = [];
  for (const given of paths) {
    if (/^\w+:\/\//.test(given))
      throw new ImportRefused(`${given} is an address, but import reads only files and folders`);
    const found = await stat(given).catch(() => null);
    if (found === null) throw new ImportRefused(`there is no file or folder ${given}`);
    // An import reads the begin of a file before its rows, and some files twice.
    if (!found.isDirectory() && !found.isFile())
      throw new ImportRefused(
        `${given} is not a file but a pipe or a device, which can be read only once; write it to a file`,
      );
    if (!found.isDirectory()) {
      const file = inputFile(openFolder(path.dirname(given)), path.basename(given), found.size, { given, format });
      if (file === null)
        throw new ImportRefused(`the format of ${given} is not clear from its name (known: ${KNOWN}); give --format`);
      files.push(file);
      continue;
    }
    const folder = openFolder(given);
    if (await isExport(folder)) exports.push(folder);
    else files.push(...(await filesIn(folder, given, format)));
  }
  return { files, exports };
}

/**
 * Whether the folder is an export. A manifest.json of another program is a normal file. @throws ImportRefused when the manifest is ours, and
 * damaged
 */
async function isExport(folder: Destination): Promise<boolean> {
  try {
    return (await readManifest(folder)) !== null;
  } catch (error) {
    if (!(error instanceof DamagedManifest)) throw error;
    if (error.message === 'is not a manifest of an export') return false;
    throw new ImportRefused(`${path.join(folder.name, MANIFEST_FILE)} ${error.message}`);
  }
}

async function filesIn(folder: Destination, given: string, format: Format | null): Promise<InputFile[]> {
  const found: InputFile[] = [];
  for await (const { path: file, bytes } of folder.list()) {
    if (isHiddenFile(file) || file === MANIFEST_FILE) continue;
    const input = inputFile(folder, file, bytes, { given: path.join(given, file), format });
    if (input !== null) found.push(input);
  }
  if (found.length === 0) throw new ImportRefused(`the folder ${given} has no readable file (${KNOWN})`);
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function inputFile(
  destination: Destination,
  file: string,
  bytes: number,
  { given, format }: { readonly given: string; readonly format: Format | null },
): InputFile | null {
  const [, ending = '', gz] = /\.([^.]+?)(\.gz)?$/i.exec(file) ?? [];
  const isGzip = gz !== undefined;
  const told = format ?? FORMAT_OF[ending.toLowerCase()] ?? null;
  if (told === null || (isGzip && told !== 'csv' && told !== 'ndjson')) return null;
  return { destination, path: file, bytes, isGzip, name: given, format: told, place: placeOf(given) };
}

function placeOf(name: string): InputFile['place'] {
  const pairs = [...name.matchAll(/(?:^|[/\\])(interval|quote)=([^/\\]+)(?=[/\\])/g)];
  return Object.fromEntries(pairs.map(([, key, value]) => [key!, decoded(value!)]));
}

/** Not every folder with such a name was written by a program that escapes values, like `50%`. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
