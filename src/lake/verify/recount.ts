/** Recounts files against their manifest: their bytes, their rows, and the digests of their series. Needs no warehouse. */
import { monthReset, monthStart } from '../../core/calendar.ts';
import type { Quote } from '../../core/candle.ts';
import { formatBytes, formatCount, formatCounted } from '../../core/format.ts';
import { type Interval, isInterval, nameOfSeries } from '../../core/interval.ts';
import { intersect, type Span, type Spans, subtract } from '../../core/span.ts';
import { nameOf, SHORT_BYTES } from '../../views/attestation/series-line.ts';
import { type Month, monthsOf, SHA256_OF_NOTHING } from '../../views/attestation/series-state.ts';
import { datasetNamed } from '../dataset/datasets.ts';
import { type Destination, hashOf, isHiddenFile } from '../destination/destination.ts';
import { createMonthBook, decodeMonths, type EncodedMonths, type MonthBook } from '../digest/month-book.ts';
import { createSeriesDigests } from '../digest/series-digests.ts';
import { wholeMonths } from '../export/write-file.ts';
import { NotReadable } from '../format/not-readable.ts';
import { READERS } from '../format/open-format.ts';
import { pathOfEntry } from '../manifest/journal.ts';
import {
  MANIFEST_FILE,
  type ManifestDataset,
  type ManifestFile,
  type ManifestHead,
  spanOfFile,
  spansOf,
} from '../manifest/manifest.ts';
import { DamagedManifest, readManifest } from '../manifest/read-manifest.ts';
import { type FileFinding, fileFinding } from './finding.ts';
import { findUnnamedFiles } from './unnamed-files.ts';

/** A series in the manifest, and what the files have of it. */
export type RecountedSeries = {
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: Interval;
  readonly steps: number;
  readonly link: Buffer;
  readonly records: Buffer;
  /** The coverage within the export. */
  readonly covered: Spans;
  readonly encoded: EncodedMonths | null;
  /** The spans of files that cannot be read. Nothing is known about their months. */
  readonly unread: Span[];
  /** The spans of archived files. Postgres may no longer have these rows. */
  readonly archived: Span[];
};

/** A month of which only a part was exported. */
type Edge = { readonly series: string; readonly part: Span; readonly sha256: string };

export type Recounted = {
  readonly head: ManifestHead;
  readonly root: string;
  readonly datasets: ReadonlyMap<string, ManifestDataset>;
  readonly files: readonly ManifestFile[];
  /** By name, in the order of the manifest. */
  readonly series: ReadonlyMap<string, RecountedSeries>;
  /** The whole digests, computed from the files. */
  readonly months: MonthBook;
  readonly edges: readonly Edge[];
  readonly rows: number;
  readonly bytes: number;
  readonly findings: readonly FileFinding[];
};

const WHOLE_BYTES = 32;

/** `onFile` is called with the bytes of each recounted file. @throws DamagedManifest when there is no manifest, or when it cannot be trusted */
export async function recount(
  destination: Destination,
  { signal, onFile = () => undefined }: { readonly signal: AbortSignal; readonly onFile?: (bytes: number) => void },
): Promise<Recounted> {
  const manifest = await readWhole(destination);
  const sizes = await readSizes(destination);
  const findings: FileFinding[] = [];
  const months = createMonthBook(WHOLE_BYTES);
  const edges: Edge[] = [];
  let [rows, bytes] = [0, 0];
  for (const file of manifest.files) {
    signal.throwIfAborted();
    if (file.isArchived)
      for (const known of manifest.series.values()) if (isIn(known, file)) known.archived.push(spanOfFile(file));
    const found = sizes.get(file.path);
    sizes.delete(file.path);
    if (found === undefined) {
      findings.push(fileFinding(file.path, 'is missing'));
      leaveOut(file, manifest.series);
      continue;
    }
    const problems = await recountFile({ destination, file, bytes: found, ...manifest, months, edges });
    findings.push(...problems.findings);
    rows += problems.rows;
    bytes += found;
    onFile(found);
  }
  findings.push(...(await findUnnamedFiles(destination, manifest, sizes)));
  return { ...manifest, months, edges, rows, bytes, findings };
}

async function readWhole(destination: Destination) {
  const manifest = await readManifest(destination);
  if (manifest === null) throw new DamagedManifest('is missing');
  const datasets = new Map<string, ManifestDataset>();
  const series = new Map<string, RecountedSeries>();
  const files: ManifestFile[] = [];
  const retired = new Set<string>();
  for (;;) {
    const { value, done } = await manifest.elements.next();
    if (done) return { head: manifest.head, root: value.root, datasets, series, files, retired };
    if (value.list === 'datasets') datasets.set(value.element.name, value.element);
    else if (value.list === 'files') files.push(value.element);
    else if (value.list === 'retired') retired.add(value.element.path);
    else {
      const { series: name, steps, link, records, covered, months: encoded } = value.element;
      const [coinId, quote, interval] = name.split(' ') as [string, Quote, string];
      if (!isInterval(interval)) throw new DamagedManifest(`names the series ${name}, which has an unknown interval`);
      const digests = { link: Buffer.from(link, 'hex'), records: Buffer.from(records, 'hex') };
      series.set(name, {
        coinId,
        quote,
        interval,
        steps,
        ...digests,
        covered: spansOf(covered),
        encoded,
        unread: [],
        archived: [],
      });
    }
  }
}

async function readSizes(destination: Destination): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  for await (const { path, bytes } of destination.list()) {
    const isHidden = pathOfEntry(path) !== null || isHiddenFile(path);
    if (path !== MANIFEST_FILE && !isHidden) sizes.set(path, bytes);
  }
  return sizes;
}

type Recount = {
  readonly destination: Destination;
  readonly file: ManifestFile;
  readonly bytes: number;
  readonly head: ManifestHead;
  readonly datasets: ReadonlyMap<string, ManifestDataset>;
  readonly series: ReadonlyMap<string, RecountedSeries>;
  readonly months: MonthBook;
  readonly edges: Edge[];
};

async function recountFile(given: Recount): Promise<{ readonly rows: number; readonly findings: FileFinding[] }> {
  const { destination, file, bytes, series } = given;
  const findings: FileFinding[] = [];
  const report = (problem: string) => findings.push(fileFinding(file.path, problem));
  if (bytes !== file.bytes)
    report(`has ${formatBytes(bytes)} (${formatCount(bytes)}), but ${formatCount(file.bytes)} in the manifest`);
  else if ((await hashOf(destination, file.path)) !== file.sha256) report('has another SHA-256 than in the manifest');
  try {
    const rows = await recountRows(given, findings);
    if (rows === null) return { rows: file.rows, findings };
    if (rows !== file.rows) report(`has ${formatCounted(rows, 'row')}, but ${formatCount(file.rows)} in the manifest`);
    return { rows, findings };
  } catch (error) {
    if (!(error instanceof NotReadable)) throw error;
    report(error.message);
    leaveOut(file, series);
    return { rows: 0, findings };
  }
}

/** Null: the file has the format of a tool, from which rows cannot be read back exactly. */
async function recountRows(
  { destination, file, bytes, head, datasets, series, months, edges }: Recount,
  findings: FileFinding[],
): Promise<number | null> {
  const columns = datasets.get(file.dataset)?.columns ?? null;
  if (columns === null) return null;
  const read = await READERS[head.format]();
  const dataset = datasetNamed(file.dataset);
  const names = columns.map(({ name }) => name);
  const digests = dataset.kind === 'series' ? createSeriesDigests(dataset, names, placeOfFile(file)) : null;
  let rows = 0;
  for await (const batch of read({ destination, path: file.path, bytes, columns })) {
    digests?.add(batch);
    rows += batch.rows;
  }
  if (digests === null) return rows;
  const found = new Map(digests.finish().map((one) => [nameOfSeries(one), one]));
  for (const name of found.keys())
    if (!series.has(name))
      findings.push(fileFinding(file.path, `has rows of ${name}, which the manifest does not name`));
  const whole = wholeMonths(spanOfFile(file));
  const parts = subtract([spanOfFile(file)], whole).flatMap(monthsOfPart);
  for (const [name, known] of series) {
    if (!isIn(known, file)) continue;
    for (const part of parts) {
      if (intersect(known.covered, [part]).length === 0) continue;
      const month = found.get(name)?.months.find(({ from }) => from === monthStart(part.from));
      edges.push({ series: name, part, sha256: month?.sha256 ?? SHA256_OF_NOTHING });
    }
    const recounted = monthsOf(intersect(known.covered, whole), found.get(name)?.months ?? [], known.interval);
    months.add(name, recounted);
    findings.push(...compareMonths(file, name, known, recounted));
  }
  return rows;
}

/** Splits a part of a file that is not made of whole months at the ends of months. */
function monthsOfPart({ from, to }: Span): Span[] {
  const end = monthReset(from);
  return end >= to ? [{ from, to }] : [{ from, to: end }, ...monthsOfPart({ from: end, to })];
}

function compareMonths(
  file: ManifestFile,
  series: string,
  { encoded, interval }: RecountedSeries,
  recounted: readonly Month[],
): FileFinding[] {
  const told = encoded === null ? [] : decodeMonths(encoded, interval);
  const byMonth = new Map(told.map((month) => [month.from, month]));
  return recounted.flatMap(({ from, candles, digest }) => {
    const month = byMonth.get(from);
    if (month !== undefined && digest.subarray(0, SHORT_BYTES).equals(month.digest)) return [];
    const counts = `${formatCounted(candles, 'final row')}, but ${formatCount(month?.candles ?? 0)} in the manifest`;
    const problem = `has other rows of ${series} in ${nameOf(from)} than the manifest: ${counts}`;
    return [fileFinding(file.path, problem, { series, month: nameOf(from) })];
  });
}

/** Whether the file would have the rows of the series. */
export function isIn({ interval, quote }: Pick<RecountedSeries, 'interval' | 'quote'>, file: ManifestFile): boolean {
  if (file.interval !== null) return file.interval === interval && file.quote === quote;
  const isPrice = interval.startsWith('prices-');
  return file.dataset === (isPrice ? 'prices' : 'candles');
}

function placeOfFile({ interval, quote }: ManifestFile) {
  if (interval === null || quote === null) return null;
  return isInterval(interval) ? { interval, quote: quote as Quote } : null;
}

function leaveOut(file: ManifestFile, series: ReadonlyMap<string, RecountedSeries>): void {
  for (const known of series.values()) if (isIn(known, file)) known.unread.push(spanOfFile(file));
}
