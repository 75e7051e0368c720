/** What an export finds at its destination: the manifest of the one before, what a killed one has finished, and the files themselves. */
import { type Destination, isHiddenFile } from '../destination/destination.ts';
import type { EncodedMonths } from '../digest/month-book.ts';
import { type Finished, noteBegun, pathOfEntry, readEntry, removeEntry } from '../manifest/journal.ts';
import { MANIFEST_FILE, type ManifestFile, type ManifestHead } from '../manifest/manifest.ts';
import { DamagedManifest, readManifest } from '../manifest/read-manifest.ts';
import { ExportRefused } from '../refused.ts';
import type { Selection } from './selection.ts';

export type Before = {
  /** From now on a later run knows that what is there is an export, even if this one is killed with its first file. */
  begin(): Promise<void>;
  /** Whether something tells what is at this path: then that must be taken back before the file is replaced. */
  knows(path: string): boolean;
  /** The file at this path, if it is whole and of this version. */
  find(path: string, version: string | null): Promise<Kept | null>;
  /** Removes the files that are no part of the export any more, and what was noted of killed runs. Resolves to the paths of files. */
  removeOthers(paths: ReadonlySet<string>): Promise<string[]>;
};

export type Kept = {
  readonly file: ManifestFile;
  /** Null: no month of this series is known. */
  monthsOf(series: string): EncodedMonths | null;
};

/** @throws ExportRefused when something else is there */
export async function lookBefore(destination: Destination, selection: Selection): Promise<Before> {
  const sizes = new Map<string, number>();
  const noted = new Set<string>();
  for await (const { path, bytes } of destination.list()) {
    const of = pathOfEntry(path);
    if (of !== null) noted.add(of);
    else if (!isHiddenFile(path)) sizes.set(path, bytes);
  }
  const { files, months } = await readBefore(destination, selection);
  const isOurs = files !== null || noted.size > 0;
  if (!isOurs && sizes.size > 0)
    throw new ExportRefused(`${destination.name} is not empty, and has no export; name an empty folder, or a new one`);
  return {
    begin: async () => {
      if (!isOurs) await noteBegun(destination, MANIFEST_FILE);
    },
    knows: (path) => noted.has(path) || (files?.has(path) ?? false),
    find: async (path, version) => {
      if (version === null) return null;
      const entry = noted.has(path) ? await readEntry(destination, path) : null;
      const file = noted.has(path) ? entry?.file : files?.get(path);
      if (file === undefined || file.version !== version || sizes.get(path) !== file.bytes) return null;
      return { file, monthsOf: (series) => monthsIn(entry, months, series) };
    },
    removeOthers: async (paths) => {
      const known = new Set([...(files?.keys() ?? []), ...noted].filter((path) => path !== MANIFEST_FILE));
      const removed = [...known].filter((path) => !paths.has(path) && sizes.has(path)).sort();
      for (const path of removed) await destination.delete(path);
      for await (const { path } of destination.list()) {
        const of = pathOfEntry(path);
        if (of !== null) await removeEntry(destination, of);
      }
      return removed;
    },
  };
}

function monthsIn(
  entry: Finished | null,
  manifest: ReadonlyMap<string, EncodedMonths>,
  series: string,
): EncodedMonths | null {
  if (entry !== null) return entry.months[series] ?? null;
  return manifest.get(series) ?? null;
}

type Manifest = {
  /** Null: there is none. */
  readonly files: ReadonlyMap<string, ManifestFile> | null;
  /** By the names of series. */
  readonly months: ReadonlyMap<string, EncodedMonths>;
};

async function readBefore(destination: Destination, selection: Selection): Promise<Manifest> {
  const months = new Map<string, EncodedMonths>();
  try {
    const manifest = await readManifest(destination);
    if (manifest === null) return { files: null, months };
    checkSame(destination, manifest.head, selection);
    const files = new Map<string, ManifestFile>();
    for await (const { list, element } of manifest.elements) {
      if (list === 'files') files.set(element.path, element);
      else if (list === 'series' && element.months !== null) months.set(element.series, element.months);
    }
    return { files, months };
  } catch (error) {
    if (!(error instanceof DamagedManifest)) throw error;
    throw new ExportRefused(
      `${MANIFEST_FILE} in ${destination.name} ${error.message}; name another folder, or remove what is in this one`,
    );
  }
}

/** What must be the same for one export to go on from another. From and to may move. */
export function describeSelection({ format, layout, datasets, coinIds, intervals, finalOnly }: Selection) {
  return {
    format,
    layout,
    what: datasets.map(({ name }) => name),
    coins: coinIds === null ? null : [...coinIds].sort(),
    intervals: intervals === null ? null : [...intervals],
    finalOnly,
  };
}

const OPTIONS = {
  format: '--format',
  layout: '--layout',
  what: '--what',
  coins: '--coins',
  intervals: '--interval',
  finalOnly: '--final-only',
} as const;

function checkSame({ name }: Destination, head: ManifestHead, selection: Selection): void {
  const wanted = describeSelection(selection);
  const option = (Object.keys(OPTIONS) as (keyof typeof OPTIONS)[]).find(
    (key) => JSON.stringify(head[key]) !== JSON.stringify(wanted[key]),
  );
  if (option === undefined) return;
  const said = (value: unknown) => (value === null ? 'all' : String(value));
  throw new ExportRefused(
    `${name} has an export of ${head.at} with another ${OPTIONS[option]} (${said(head[option])}, and not ${said(wanted[option])}); give the same options, or name another folder`,
  );
}
