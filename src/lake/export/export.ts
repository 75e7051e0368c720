/**
 * Exports: writes the files of a selection that do not exist already, and then the manifest that names them. All data are of one instant.
 *
 * A file that exists, and whose rows cannot have changed since, is not written again. So a run continues where a killed one stopped, and a later
 * one writes only what has changed. A reader of the manifest never sees half an export: the run replaces the manifest last, in one step, and only
 * then removes the files that it no longer names.
 */

import type { Instant } from '../../clock.ts';
import { nameOfSeries } from '../../core/interval.ts';
import { withSnapshot } from '../../store/backup/source.ts';
import type { Database } from '../../store/connection/connect.ts';
import { withLockUnlessHeld } from '../../store/connection/lock.ts';
import { type CopyOut, openCopyOut } from '../../store/copy/copy-out.ts';
import { NOTHING_YET } from '../../views/attestation/attestation.ts';
import type { Destination } from '../destination/destination.ts';
import { createMonthBook } from '../digest/month-book.ts';
import type { PlannedFile } from '../layout/layout.ts';
import { noteBegun, noteFinished } from '../manifest/journal.ts';
import { isoOrNull, MANIFEST_FILE, type ManifestFile, type ManifestHead } from '../manifest/manifest.ts';
import { writeManifest } from '../manifest/write-manifest.ts';
import { ExportBusy, ExportRefused } from '../refused.ts';
import { addArchivedMonths, stayingArchive, stretchOf, stretchOfPlan } from './archived.ts';
import { type Done, type ElementInputs, elementsOf, readHead } from './elements.ts';
import { type ExistingExport, readExistingExport } from './existing-export.ts';
import { type Plan, planFiles } from './plan-files.ts';
import { readWithin, type SeriesWithin, seriesIn, versionOf } from './read-series.ts';
import { BY_HAND, type ExportRules } from './rules.ts';
import type { Selection } from './selection.ts';
import { readHistoryVersion, seriesStatements, tableStatement } from './statements.ts';
import { type WrittenFile, writeFile } from './write-file.ts';

export type ExportOptions = {
  readonly database: Pick<Database, 'sql' | 'url' | 'watchdog'>;
  readonly destination: Destination;
  readonly selection: Selection;
  readonly signal: AbortSignal;
  /** Called before anything is written. When it resolves to false, nothing is written. */
  readonly onPlan?: (plan: Plan) => Promise<boolean>;
  /** Called with the number of rows that were written to a file, or that a kept file has. */
  readonly onRows?: (rows: number) => void;
};

export type Exported = {
  readonly at: Instant;
  readonly root: string;
  /** The totals of all files of the export. */
  readonly files: number;
  readonly rows: number;
  readonly bytes: number;
  /** The totals of the files that this run wrote. The others existed already. */
  readonly written: { readonly files: number; readonly rows: number; readonly bytes: number };
  /** Paths of the removed files: they no longer belong to the export. */
  readonly removed: readonly string[];
  /** Paths of files that no manifest has named: somebody else's. The export does not touch them. */
  readonly foreign: readonly string[];
};

/**
 * Null when `onPlan` resolves to false. @throws ExportRefused when something else is at the destination, or is being written there; and the reason
 * of `signal` when it is aborted: finished files stay, and the same call continues from there
 */
export async function exportFiles(options: ExportOptions): Promise<Exported | null> {
  return withExportLock(options, () => writeExport(options, BY_HAND));
}

/** Does the work while nobody else writes to the destination. @throws ExportBusy when somebody does */
export async function withExportLock<T>(
  { database, destination }: Pick<ExportOptions, 'database' | 'destination'>,
  work: () => Promise<T>,
): Promise<T> {
  const ended = await withLockUnlessHeld(database.sql, lockOf(destination), async () => ({ result: await work() }));
  if (ended !== null) return ended.result;
  throw new ExportBusy(`another export is being written to ${destination.name}; wait until it has ended`);
}

/** The name of the lock that every writer to this destination holds. */
export function lockOf({ place }: Destination): string {
  return `export to ${place}`;
}

/** The caller holds the lock of the destination (`withExportLock`). */
export async function writeExport(options: ExportOptions, rules: ExportRules): Promise<Exported | null> {
  const { database, destination, selection, onPlan = async () => true } = options;
  const before = await readExistingExport(destination, selection, rules.kind);
  rules.check(before);
  const run = await withSnapshot(database.sql, async (tx, snapshot) => {
    const plan = await planFiles(tx, selection);
    if (!(await onPlan(plan))) return null;
    await destination.sweep();
    const copy = await openCopyOut({ url: database.url, snapshot, watchdog: database.watchdog });
    try {
      const archive = await stayingArchive(tx, destination, before, plan.files);
      const run = { ...options, rules, tx, copy, before, archive, months: createMonthBook() };
      const head = await readHead(tx, selection, rules);
      checkOrigin(before, head, destination);
      const done = await writeAll(run, plan);
      const beside = await rules.beforeManifest(before, done.files, Date.parse(head.at));
      const root = await writeManifest(destination, head, elementsOf(run, done, beside));
      return { at: Date.parse(head.at), root, done };
    } finally {
      await copy.close();
    }
  });
  if (run === null) return null;
  const { files, written } = run.done;
  const removed = await rules.afterManifest(before, files);
  return {
    at: run.at,
    root: run.root,
    ...totalsOf(files),
    written: totalsOf(written),
    removed,
    foreign: foreignOf(before, files),
  };
}

function foreignOf({ sizes, known, files: named, retired }: ExistingExport, files: readonly ManifestFile[]): string[] {
  const ours = new Set([MANIFEST_FILE, ...known, ...named.keys(), ...[...retired, ...files].map(({ path }) => path)]);
  return [...sizes.keys()].filter((path) => !ours.has(path)).sort();
}

/** A lake may hold data that Postgres no longer has. So data of another upstream must not be added to it. */
function checkOrigin({ head: before }: ExistingExport, head: ManifestHead, { name }: Destination): void {
  if (head.kind === 'export' || before === null || [head.origin, NOTHING_YET].includes(before.origin)) return;
  throw new ExportRefused(
    `${name} holds data of ${before.origin}, but this warehouse has data of ${head.origin}; name another place`,
  );
}

function totalsOf(files: readonly ManifestFile[]) {
  const sum = (of: 'rows' | 'bytes') => files.reduce((total, file) => total + file[of], 0);
  return { files: files.length, rows: sum('rows'), bytes: sum('bytes') };
}

type Run = ExportOptions & ElementInputs & { readonly rules: ExportRules; readonly copy: CopyOut };

async function writeAll(run: Run, { files }: Plan): Promise<Done> {
  const done: Done = { files: [...run.archive.files], written: [], seriesIds: new Set(), datasets: new Map() };
  addArchivedMonths(run.archive, run.months);
  const archived = new Set(run.archive.files.map(stretchOf));
  for (const file of files) {
    run.signal.throwIfAborted();
    const { dataset, span } = file;
    if (archived.has(stretchOfPlan(file))) continue;
    const isOfSeries = dataset.kind === 'series';
    const within = isOfSeries ? await readWithin(run.tx, seriesIn(file), span, run.selection.finalOnly) : [];
    if (isOfSeries && within.length === 0) continue;
    for (const { id } of within) done.seriesIds.add(id);
    if (!done.datasets.has(dataset)) done.datasets.set(dataset, file);
    const version = await versionOfFile(run, file, within);
    const path = run.rules.pathOf(file.path, version);
    const kept = await run.before.find(path, version);
    if (kept === null) {
      const entry = await writeOne(run, { ...file, path }, within, version);
      done.files.push(entry);
      done.written.push(entry);
      continue;
    }
    for (const one of within) {
      const months = kept.monthsOf(nameOfSeries(one));
      if (months !== null) run.months.addEncoded(nameOfSeries(one), months, one.interval, span);
    }
    run.onRows?.(kept.file.rows);
    done.files.push(kept.file);
  }
  return done;
}

/** Null: only the bytes show whether the file has changed. */
async function versionOfFile(
  { tx, selection, rules }: Run,
  file: PlannedFile,
  within: readonly SeriesWithin[],
): Promise<string | null> {
  const { dataset, span } = file;
  if (dataset.kind === 'table') return rules.versionOfTable(tx, dataset, { ...selection, span });
  if (dataset.kind === 'series') return versionOf(within, formOf(file, selection));
  return readHistoryVersion(tx, dataset, { ...selection, span });
}

/** Everything besides the rows on which the bytes of a file of series depend. */
export function formOf({ source, span, path }: PlannedFile, { finalOnly }: Pick<Selection, 'finalOnly'>): string {
  const columns = source.map(({ name, type }) => `${name} ${type}`);
  return JSON.stringify([path, columns, finalOnly, isoOrNull(span.from), isoOrNull(span.to)]);
}

async function writeOne(
  run: Run,
  file: PlannedFile,
  within: readonly SeriesWithin[],
  version: string | null,
): Promise<ManifestFile> {
  const { destination, selection, copy, signal, onRows = () => undefined } = run;
  const { dataset, span, place, path } = file;
  const narrowed = { ...selection, span };
  const statements =
    dataset.kind === 'series' ? seriesStatements(file.source, within, narrowed) : [tableStatement(dataset, narrowed)];
  // Withdraws what is known about an older file here. And if the run is killed before it notes the new one, a later run knows whose it is.
  await noteBegun(destination, path);
  const written = await writeFile(file, statements, within, { copy, destination, signal, onRows });
  const { months, ...counts } = written;
  for (const [name, found] of months) run.months.add(name, found);
  const [from, to] = dataset.kind === 'table' ? [null, null] : [isoOrNull(span.from), isoOrNull(span.to)];
  const { interval = null, quote = null } = place ?? {};
  const entry = { path, dataset: dataset.name, interval, quote, from, to, ...counts, version };
  await noteFinished(destination, { file: entry, months: encodedOf(months, within) });
  return entry;
}

function encodedOf(months: WrittenFile['months'], within: readonly SeriesWithin[]) {
  const book = createMonthBook();
  const encoded = within.map((one) => {
    const name = nameOfSeries(one);
    book.add(name, months.get(name) ?? []);
    return [name, book.encode(name, one.interval)] as const;
  });
  return Object.fromEntries(encoded.flatMap(([name, of]) => (of === null ? [] : [[name, of] as const])));
}
