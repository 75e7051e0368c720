/**
 * Reads what an export finds at its destination: the manifest of the export before, the finished files of a killed one, and the files themselves.
 */
import { intersect, normalize, type Spans } from '../../core/span.ts';
import { type Destination, isHiddenFile } from '../destination/destination.ts';
import type { EncodedMonths } from '../digest/month-book.ts';
import { isOfTool } from '../layout/layout.ts';
import { type Finished, noteBegun, pathOfEntry, readEntry, removeEntry } from '../manifest/journal.ts';
import {
  type ExportKind,
  MANIFEST_FILE,
  type ManifestDataset,
  type ManifestFile,
  type ManifestHead,
  type ManifestSeries,
  type RetiredFile,
  spanOfFile,
  spansAsIso,
  spansOf,
} from '../manifest/manifest.ts';
import { DamagedManifest, readManifest } from '../manifest/read-manifest.ts';
import { ExportRefused } from '../refused.ts';
import type { Selection } from './selection.ts';

export type ExistingExport = {
  /** Null: there is no manifest. */
  readonly head: ManifestHead | null;
  /** The file at this path; null unless it is whole and of this version. */
  find(path: string, version: string | null): Promise<ExistingFile | null>;
  /** The existing files that the manifest, or a killed run, names. */
  readonly known: readonly string[];
  /** All existing files, except hidden ones: their bytes by their paths. */
  readonly sizes: ReadonlyMap<string, number>;
  /** The files that the manifest names, by path. */
  readonly files: ReadonlyMap<string, ManifestFile>;
  readonly retired: readonly RetiredFile[];
  readonly datasets: readonly ManifestDataset[];
  readonly archive: Archive;
  /** The archive, reduced to these files. */
  narrowArchive(files: readonly ManifestFile[]): Archive;
  /** Notes that these files are of the export, so that the next run removes them if this one is killed before it does. */
  noteRemoval(paths: readonly string[]): Promise<void>;
  /** Removes files, and the notes of killed runs. */
  remove(paths: readonly string[]): Promise<void>;
};

/** The files that stay as they are, whatever Postgres has. */
export type Archive = {
  /** In the order of the manifest. */
  readonly files: readonly ManifestFile[];
  /** For each series with coverage in these files: the manifest's element, narrowed to them. */
  readonly series: ReadonlyMap<string, ManifestSeries>;
};

type ExistingFile = {
  readonly file: ManifestFile;
  /** Null when no month of this series is known. */
  monthsOf(series: string): EncodedMonths | null;
};

/** @throws ExportRefused when the destination holds something else */
export async function readExistingExport(
  destination: Destination,
  selection: Selection,
  kind: ExportKind,
): Promise<ExistingExport> {
  const sizes = new Map<string, number>();
  const noted = new Set<string>();
  for await (const { path, bytes } of destination.list()) {
    const of = pathOfEntry(path);
    if (of !== null) noted.add(of);
    else if (!isHiddenFile(path)) sizes.set(path, bytes);
  }
  const manifest = await readBefore(destination, selection, kind);
  const { head, files, months } = manifest;
  if (head === null && noted.size === 0 && sizes.size > 0)
    throw new ExportRefused(`${destination.name} is not empty, but has no export; name an empty folder, or a new one`);
  const known = new Set([...files.keys(), ...noted].filter((path) => path !== MANIFEST_FILE && sizes.has(path)));
  return {
    ...manifest,
    find: async (path, version) => {
      if (version === null) return null;
      const entry = noted.has(path) ? await readEntry(destination, path) : null;
      const file = noted.has(path) ? entry?.file : files.get(path);
      if (file === undefined || file.version !== version || sizes.get(path) !== file.bytes) return null;
      return { file, monthsOf: (series) => monthsIn(entry, months, series) };
    },
    known: [...known],
    sizes,
    noteRemoval: async (paths) => {
      for (const path of paths) if (!noted.has(path)) await noteBegun(destination, path);
    },
    remove: async (paths) => {
      for (const path of paths) await destination.delete(path);
      for await (const { path } of destination.list()) {
        const of = pathOfEntry(path);
        if (of !== null) await removeEntry(destination, of);
      }
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

type Manifest = Pick<ExistingExport, 'head' | 'files' | 'retired' | 'datasets' | 'archive' | 'narrowArchive'> & {
  /** By the names of series. */
  readonly months: ReadonlyMap<string, EncodedMonths>;
};

const NOTHING: Manifest = {
  head: null,
  files: new Map(),
  months: new Map(),
  retired: [],
  datasets: [],
  archive: { files: [], series: new Map() },
  narrowArchive: () => NOTHING.archive,
};

async function readBefore(destination: Destination, selection: Selection, kind: ExportKind): Promise<Manifest> {
  try {
    const manifest = await readManifest(destination);
    if (manifest === null) return NOTHING;
    const { head } = manifest;
    checkSame(destination, head, selection, kind);
    const months = new Map<string, EncodedMonths>();
    const files = new Map<string, ManifestFile>();
    const retired: RetiredFile[] = [];
    const series: ManifestSeries[] = [];
    const datasets: ManifestDataset[] = [];
    for await (const { list, element } of manifest.elements) {
      if (list === 'files') files.set(element.path, element);
      else if (list === 'retired') retired.push(element);
      else if (list === 'datasets') datasets.push(element);
      else {
        if (element.months !== null) months.set(element.series, element.months);
        // Only a lake has archived files.
        if (kind === 'lake') series.push(element);
      }
    }
    const archived = [...files.values()].filter(({ isArchived }) => isArchived);
    const narrowArchive = (to: readonly ManifestFile[]) => ({ files: to, series: narrowed(series, to) });
    return { head, files, months, retired, datasets, archive: narrowArchive(archived), narrowArchive };
  } catch (error) {
    throw error instanceof DamagedManifest ? refusedDamage(destination, kind, error) : error;
  }
}

const INSTEAD: Readonly<Record<ExportKind, string>> = {
  export: 'name another folder, or remove what is in this one',
  lake: 'restore it from a copy of the lake; without one, name an empty place in CHANDLER_LAKE_URL, and run chandler lake accept',
};

export function refusedAsLake(name: string): ExportRefused {
  return new ExportRefused(`${name} has an export that was made by hand; name an empty place in CHANDLER_LAKE_URL`);
}

export function refusedDamage(
  { name }: Pick<Destination, 'name'>,
  kind: ExportKind,
  { message }: DamagedManifest,
): ExportRefused {
  return new ExportRefused(`${MANIFEST_FILE} in ${name} ${message}; ${INSTEAD[kind]}`);
}

function narrowed(series: readonly ManifestSeries[], archived: readonly ManifestFile[]): Map<string, ManifestSeries> {
  const spans = new Map<string, Spans>();
  for (const file of archived) {
    const place = `${file.quote} ${file.interval}`;
    spans.set(place, normalize([...(spans.get(place) ?? []), spanOfFile(file)]));
  }
  const found = new Map<string, ManifestSeries>();
  for (const one of series) {
    const within = spans.get(one.series.slice(one.series.indexOf(' ') + 1));
    if (within === undefined) continue;
    const covered = intersect(spansOf(one.covered), within);
    const gaps = one.gaps.filter(([from, to]) => {
      const gap = { from: Date.parse(from), to: Date.parse(to) };
      return intersect([gap], within).length > 0;
    });
    if (covered.length > 0) found.set(one.series, { ...one, covered: spansAsIso(covered), gaps });
  }
  return found;
}

/** The options that must be the same for one export to continue another. From and to may move. */
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

/** `--interval 1h,24h` selects the same as `--interval 24h,1h`. */
const inOrder = (value: unknown) => JSON.stringify(Array.isArray(value) ? [...value].sort() : value);

function checkSame({ name }: Destination, head: ManifestHead, selection: Selection, kind: ExportKind): void {
  if (head.kind !== kind)
    throw kind === 'lake'
      ? refusedAsLake(name)
      : new ExportRefused(`${name} is a lake, which the service keeps up to date; name another folder`);
  // The datasets of a lake may change: the service is its only writer.
  if (kind === 'lake') return;
  const wanted = describeSelection(selection);
  const option = (Object.keys(OPTIONS) as (keyof typeof OPTIONS)[]).find(
    (key) =>
      inOrder(head[key]) !== inOrder(wanted[key]) &&
      // Files for tools from earlier versions also have rows that may still change. Such files are written anew.
      !(key === 'finalOnly' && isOfTool(selection.layout)),
  );
  if (option === undefined) return;
  const said = (value: unknown) => (value === null ? 'all' : String(value));
  throw new ExportRefused(
    `${name} has an export of ${head.at} with a different ${OPTIONS[option]} (${said(head[option])}, not ${said(wanted[option])}); give the same options, or name another folder`,
  );
}
