/**
 * Imports an export of one warehouse into another one. It recounts the files against their manifest first. Before the commit, it recounts the
 * stored rows against the same digests.
 */
import path from 'node:path';
import { monthReset } from '../../core/calendar.ts';
import { formatCounted, shellWord } from '../../core/format.ts';
import { type Interval, isCandleInterval, isPriceInterval } from '../../core/interval.ts';
import { intersect } from '../../core/span.ts';
import type { ImportTransaction } from '../../store/imported/import-transaction.ts';
import { SHA256_OF_CANDLES } from '../../views/attestation/read-series.ts';
import { nameOf } from '../../views/attestation/series-line.ts';
import { type MonthOfCandles, monthsOf } from '../../views/attestation/series-state.ts';
import type { Destination } from '../destination/destination.ts';
import { MANIFEST_FILE } from '../manifest/manifest.ts';
import { DamagedManifest } from '../manifest/read-manifest.ts';
import { ImportRefused } from '../refused.ts';
import { type Recounted, recount } from '../verify/recount.ts';
import type { InputFile } from './input-files.ts';
import type { SeriesBook } from './series-book.ts';

export type ExportToImport = {
  readonly name: string;
  readonly recounted: Recounted;
  readonly files: readonly InputFile[];
  /** Datasets that are not candles. */
  readonly leftOut: readonly string[];
};

/** @throws ImportRefused when the files do not match the manifest, or have a form from which rows cannot be read back exactly */
export async function openExport(
  destination: Destination,
  options: { readonly signal: AbortSignal },
): Promise<ExportToImport> {
  const recounted = await recount(destination, options).catch((error: unknown) => {
    if (!(error instanceof DamagedManifest)) throw error;
    throw new ImportRefused(`${path.join(destination.name, MANIFEST_FILE)} ${error.message}`);
  });
  const { head, findings, datasets } = recounted;
  const [first] = findings;
  if (first !== undefined)
    throw new ImportRefused(
      `${destination.name} does not match its manifest: ${[first.path, first.series, first.month].find((part) => part !== null)} ${first.problem}` +
        ` (${formatCounted(findings.length, 'difference')}; chandler verify --files ${shellWord(destination.name)} lists all)`,
    );
  const candles = datasets.get('candles');
  if (candles === undefined) throw new ImportRefused(`the export in ${destination.name} has no candles`);
  if (candles.columns === null) {
    const instead =
      head.layout === 'freqtrade'
        ? 'import its files one by one, with --coin and --interval'
        : 'export again with --layout hive or single';
    throw new ImportRefused(
      `the export in ${destination.name} has the layout ${head.layout}, which does not keep all values of a candle, so its candles cannot be imported exactly; ${instead}`,
    );
  }
  const files = recounted.files
    .filter(({ dataset }) => dataset === 'candles')
    .map(({ path: file, bytes, interval, quote }): InputFile => {
      const place = { ...(interval === null ? {} : { interval }), ...(quote === null ? {} : { quote }) };
      return {
        destination,
        path: file,
        bytes,
        isGzip: false,
        name: path.join(destination.name, file),
        format: head.format,
        place,
      };
    });
  return {
    name: destination.name,
    recounted,
    files,
    leftOut: [...datasets.keys()].filter((name) => name !== 'candles'),
  };
}

/** How many series and months were recounted. */
export type Proved = { readonly series: number; readonly months: number };

/** Recounts the stored rows. @throws ImportRefused when a month has other final rows than in the export */
export async function proveExport(
  { query }: Pick<ImportTransaction, 'query'>,
  book: SeriesBook,
  { recounted, name }: ExportToImport,
): Promise<Proved> {
  let [proved, months] = [0, 0];
  for (const [seriesName, { coinId, quote, interval, covered }] of recounted.series) {
    if (isPriceInterval(interval)) continue;
    const told = recounted.months.months(seriesName).filter(({ slots }) => slots > 0);
    if (told.length === 0) continue;
    // The rows of this coin are left out, and counted.
    if (book.coins.problemOf(coinId) !== undefined) continue;
    const id = await idOf(book, { coinId, quote, interval });
    const stored = id === null ? [] : await readMonths({ query }, id);
    for (const month of told) {
      const spans = intersect(covered, [{ from: month.from, to: monthReset(month.from) }]);
      const [found] = monthsOf(spans, stored, interval);
      if (found?.digest.equals(month.digest)) continue;
      const counts = `${formatCounted(found?.candles ?? 0, 'final candle')}, but the export has ${month.candles}`;
      throw new ImportRefused(
        `after the import ${seriesName} would have other candles in ${nameOf(month.from)} than the export in ${name}: ${counts}. ` +
          'This source already has rows of another import, or this import left rows out; give another --source, or drop this source first',
      );
    }
    proved++;
    months += told.length;
  }
  return { series: proved, months };
}

/** Null when no row of the series was read. */
async function idOf(
  book: SeriesBook,
  { coinId, quote, interval }: { readonly coinId: string; readonly quote: string; readonly interval: Interval },
): Promise<number | null> {
  if (!isCandleInterval(interval)) return null;
  // The coin may have another id in this warehouse.
  const here = await book.coins.coinOf(coinId);
  const found = book.all.find((one) => one.coinId === here && one.quote === quote && one.interval === interval);
  return found?.before.id ?? null;
}

async function readMonths({ query }: Pick<ImportTransaction, 'query'>, id: number): Promise<MonthOfCandles[]> {
  return query<MonthOfCandles>(
    `select (extract(epoch from month) * 1000)::float8 as "from", candles, sha256 from (
       select date_trunc('month', c.open_time at time zone 'UTC') as month, count(*)::int as candles,
         encode(${SHA256_OF_CANDLES}, 'hex') as sha256
       from market.imported_candle c where c.series_id = $1 and c.is_final group by 1
     ) found order by month`,
    [id],
  );
}
