/** Builds the manifest of an export: its head, and the elements of its lists. */
import type { Instant } from '../../clock.ts';
import type { Interval } from '../../core/interval.ts';
import { normalize, type Spans, subtract } from '../../core/span.ts';
import { VERSION } from '../../core/version.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { NOTHING_YET } from '../../views/attestation/attestation.ts';
import type { Dataset } from '../dataset/dataset.ts';
import type { MonthBook } from '../digest/month-book.ts';
import type { PlannedFile } from '../layout/layout.ts';
import {
  isoOrNull,
  type ManifestElement,
  type ManifestFile,
  type ManifestHead,
  type ManifestSeries,
  spanOfFile,
  spansAsIso,
  spansOf,
} from '../manifest/manifest.ts';
import { type Archive, describeSelection, type ExistingExport } from './existing-export.ts';
import type { ExportRules } from './rules.ts';
import type { Selection } from './selection.ts';
import { readStates } from './series-states.ts';

export type ElementInputs = {
  readonly tx: SqlOrTransaction;
  readonly selection: Selection;
  readonly before: ExistingExport;
  readonly archive: Archive;
  readonly months: MonthBook;
};

export type Done = {
  readonly files: ManifestFile[];
  readonly written: ManifestFile[];
  /** The series of all files, in their order. */
  readonly seriesIds: Set<number>;
  readonly datasets: Map<Dataset, PlannedFile>;
};

export async function readHead(
  tx: SqlOrTransaction,
  selection: Selection,
  { kind, id }: Pick<ExportRules, 'kind' | 'id'>,
): Promise<ManifestHead> {
  const [row] = await tx<{ at: Instant; simulator: string | null; isKnown: boolean }[]>`
    select now() as at, (select simulator from ops.origin) as simulator, exists (select from ops.origin) as is_known`;
  const { at, simulator, isKnown } = row!;
  return {
    kind,
    at: isoOrNull(at)!,
    chandler: VERSION,
    origin: isKnown ? (simulator ?? 'upstream') : NOTHING_YET,
    ...(id === undefined ? {} : { id }),
    ...describeSelection(selection),
    from: isoOrNull(selection.span.from),
    to: isoOrNull(selection.span.to),
  };
}

export async function* elementsOf(
  { tx, selection, months, before, archive }: ElementInputs,
  done: Done,
  beside: readonly ManifestElement[],
): AsyncGenerator<ManifestElement> {
  const datasets = new Set<string>();
  for (const [{ name }, { columns }] of done.datasets) {
    datasets.add(name);
    yield { list: 'datasets', element: { name, columns } };
  }
  const needed = new Set(archive.files.map(({ dataset }) => dataset));
  for (const element of before.datasets)
    if (needed.has(element.name) && !datasets.has(element.name)) yield { list: 'datasets', element };
  const archived = new Map(archive.series);
  for await (const element of readStates(tx, [...done.seriesIds], selection.span, months)) {
    const older = archived.get(element.series);
    archived.delete(element.series);
    yield { list: 'series', element: joined(older, element, archivedSpans(archive, element)) };
  }
  // All data of these series are in archived files.
  for (const element of archived.values()) {
    const interval = element.series.split(' ')[2] as Interval;
    yield { list: 'series', element: { ...element, months: months.encode(element.series, interval) } };
  }
  for (const element of done.files) yield { list: 'files', element };
  yield* beside;
}

/** `elsewhere`: the time of archived files. For it, the files have only the archived data, whatever Postgres has. */
function joined(older: ManifestSeries | undefined, now: ManifestSeries, elsewhere: Spans): ManifestSeries {
  if (elsewhere.length === 0) return now;
  const present = subtract(spansOf(now.covered), elsewhere);
  const covered = spansAsIso(normalize([...spansOf(older?.covered ?? []), ...present]));
  return { ...now, covered, gaps: [...(older?.gaps ?? []), ...now.gaps] };
}

function archivedSpans({ files }: Archive, { series }: ManifestSeries): Spans {
  const inPlace = files.filter(({ quote, interval }) => series.endsWith(` ${quote} ${interval}`));
  return normalize(inPlace.map(spanOfFile));
}
