/** The archived files of a lake: they stay as they are, because Postgres may no longer have their rows. */
import { type Interval, nameOfSeries } from '../../core/interval.ts';
import { intersect, type Spans, subtract } from '../../core/span.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { CANDLES } from '../dataset/series-datasets.ts';
import type { MonthBook } from '../digest/month-book.ts';
import type { PlannedFile } from '../layout/layout.ts';
import { isoOrNull, type ManifestFile, type ManifestSeries, spanOfFile, spansOf } from '../manifest/manifest.ts';
import type { Archive, ExistingExport } from './existing-export.ts';
import { readWithin, seriesIn } from './read-series.ts';

type Stretch = Pick<ManifestFile, 'dataset' | 'interval' | 'quote' | 'from'>;

/** The same for a file and for its plan, whatever their paths are. */
export function stretchOf({ dataset, interval, quote, from }: Stretch): string {
  return [dataset, interval, quote, from].join(' ');
}

export function stretchOfPlan({ dataset, place, span }: PlannedFile): string {
  const { interval = null, quote = null } = place ?? {};
  return stretchOf({ dataset: dataset.name, interval, quote, from: isoOrNull(span.from) });
}

/**
 * The files that stay as they are. A file does not stay if Postgres has all of it again, for example because retention keeps more now: it is
 * written like any other. Files whose rows retention has removed stay even if the manifest does not call them archived, as in an older copy of the
 * lake: they may be the last copy.
 */
export async function stayingArchive(
  tx: SqlOrTransaction,
  before: ExistingExport,
  planned: readonly PlannedFile[],
): Promise<Archive> {
  if (before.head?.kind !== 'lake') return before.archive;
  const plans = new Map(planned.map((plan) => [stretchOfPlan(plan), plan]));
  const removed = await readRemoved(tx);
  const isRemoved = (file: ManifestFile) =>
    file.dataset === CANDLES.name && intersect(removed.get(placeOf(file)) ?? [], [spanOfFile(file)]).length > 0;
  const files = [...before.files.values()].filter((file) => file.isArchived || isRemoved(file));
  const inPlace = byPlace(before.narrowArchive(files));
  const stay: ManifestFile[] = [];
  for (const file of files) {
    const plan = plans.get(stretchOf(file));
    const isWhole = plan !== undefined && (await hasAll(tx, plan, inPlace.get(placeOf(file)) ?? []));
    if (!isWhole) stay.push({ ...file, isArchived: true });
  }
  return before.narrowArchive(stay);
}

/** `usd 24h`. */
function placeOf({ quote, interval }: Pick<ManifestFile, 'quote' | 'interval'>): string {
  return `${quote} ${interval}`;
}

/** The slots that retention has removed from any series, by place. */
async function readRemoved(tx: SqlOrTransaction): Promise<Map<string, Spans>> {
  const rows = await tx<{ quote: string; interval: string; slots: Spans }[]>`
    select s.quote, s.interval, range_agg(e.slots) as slots
    from market.evidence e join market.series s on s.id = e.series_id where e.kind = 'retention' group by 1, 2`;
  return new Map(rows.map((row) => [placeOf(row), row.slots]));
}

/** Whether Postgres covers everything that the archived file covers. */
async function hasAll(
  tx: SqlOrTransaction,
  planned: PlannedFile,
  archived: readonly ManifestSeries[],
): Promise<boolean> {
  const { span } = planned;
  const within = await readWithin(tx, seriesIn(planned), span, false);
  const covered = new Map(within.map((one) => [nameOfSeries(one), one.covered]));
  return archived.every((one) => {
    const held = intersect(spansOf(one.covered), [span]);
    return subtract(held, covered.get(one.series) ?? []).length === 0;
  });
}

/** Adds the months of the files that stay. They are the oldest of their series. */
export function addArchivedMonths(archive: Archive, months: MonthBook): void {
  const inPlace = byPlace(archive);
  for (const file of archive.files)
    for (const { series, months: encoded } of inPlace.get(placeOf(file)) ?? [])
      if (encoded !== null) months.addEncoded(series, encoded, file.interval as Interval, spanOfFile(file));
}

/** The series by place: `usd 24h`. */
function byPlace({ series }: Archive): Map<string, ManifestSeries[]> {
  const found = new Map<string, ManifestSeries[]>();
  for (const one of series.values()) {
    const place = one.series.slice(one.series.indexOf(' ') + 1);
    const others = found.get(place);
    if (others === undefined) found.set(place, [one]);
    else others.push(one);
  }
  return found;
}
