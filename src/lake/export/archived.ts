/** The archived files of a lake: they stay as they are, because Postgres may no longer have their rows. */
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import { intersect, type Spans } from '../../core/span.ts';
import { pagesOf } from '../../store/candle/series.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { findSeries, readFormerNames } from '../../views/attestation/read-series.ts';
import { CANDLES } from '../dataset/series-datasets.ts';
import type { Destination } from '../destination/destination.ts';
import type { MonthBook } from '../digest/month-book.ts';
import type { PlannedFile } from '../layout/layout.ts';
import { isoOrNull, type ManifestFile, type ManifestSeries, spanOfFile } from '../manifest/manifest.ts';
import type { Archive, ExistingExport } from './existing-export.ts';
import { hasAllRows } from './has-all-rows.ts';

/** Maximum number of series in one statement. */
const MOST = { series: 1_000, rows: Number.POSITIVE_INFINITY };

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
 * The files that stay as they are. A file does not stay if Postgres has all of its rows again, for example because retention keeps more now: it is
 * written like any other. Files whose rows retention has removed since the manifest stay even if the manifest does not call them archived, as in an
 * older copy of the lake: they may be the last copy.
 */
export async function stayingArchive(
  tx: SqlOrTransaction,
  destination: Destination,
  before: ExistingExport,
  planned: readonly PlannedFile[],
): Promise<Archive> {
  if (before.head?.kind !== 'lake') return before.archive;
  const plans = new Map(planned.map((plan) => [stretchOfPlan(plan), plan]));
  const known = await readKnown(tx, before);
  const removed = await readRemoved(tx, known);
  const isRemoved = (file: ManifestFile) =>
    file.dataset === CANDLES.name && intersect(removed.get(placeOf(file)) ?? [], [spanOfFile(file)]).length > 0;
  const ids = new Map(known.map(({ series, id }) => [series, id]));
  const stay: ManifestFile[] = [];
  for (const file of before.files.values()) {
    if (!file.isArchived && !isRemoved(file)) continue;
    const plan = plans.get(stretchOf(file));
    const isWhole = plan !== undefined && (await hasAllRows({ tx, destination, before, ids }, plan, file));
    if (!isWhole) stay.push({ ...file, isArchived: true });
  }
  return before.narrowArchive(stay);
}

type Known = Pick<ManifestSeries, 'series' | 'steps'> & { readonly id: number };

/** The series of the manifest that Postgres has, perhaps with another name now. */
async function readKnown(tx: SqlOrTransaction, before: ExistingExport): Promise<Known[]> {
  const former = await readFormerNames(tx);
  const elements = before.narrowArchive([...before.files.values()]).series.values();
  const named = [...elements].map(({ series, steps, link }) => {
    const [coinId, quote, interval] = series.split(' ') as [string, Quote, Interval];
    return { series, coinId, quote, interval, steps, link: Buffer.from(link, 'hex') };
  });
  const known: Known[] = [];
  for await (const page of pagesOf(named, MOST, () => 0)) {
    const found = await findSeries(tx, page, former);
    for (const [i, { series, steps }] of page.entries()) {
      const id = found[i]?.id;
      if (id !== undefined) known.push({ series, steps, id });
    }
  }
  return known;
}

/** `usd 24h`. */
function placeOf({ quote, interval }: Pick<ManifestFile, 'quote' | 'interval'>): string {
  return `${quote} ${interval}`;
}

/** The slots that retention has removed from any series since the manifest, by place. What it removed before may be in Postgres again. */
async function readRemoved(tx: SqlOrTransaction, known: readonly Known[]): Promise<Map<string, Spans>> {
  const rows = await tx<{ quote: string; interval: string; slots: Spans }[]>`
    select s.quote, s.interval, range_agg(e.slots) as slots
    from unnest(${known.map(({ id }) => id)}::int[], ${known.map(({ steps }) => steps)}::int[]) as k (id, steps)
    join market.series s on s.id = k.id
    join market.evidence e on e.series_id = k.id and e.kind = 'retention' and e.number > k.steps group by 1, 2`;
  return new Map(rows.map((row) => [placeOf(row), row.slots]));
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
