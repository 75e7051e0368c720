/**
 * The lake must hold candles before retention removes them from Postgres. A file that holds all current candles of a partition, and whose bytes
 * match the manifest, is marked as archived in the manifest. From then on, the file stays as it is.
 */
import type { CandleInterval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import { withSnapshot } from '../../store/backup/source.ts';
import { storedRows } from '../../store/candle/stored.ts';
import type { Database, SqlOrTransaction } from '../../store/connection/connect.ts';
import { openCopyOut } from '../../store/copy/copy-out.ts';
import type { CandleArchive, HeldPartition } from '../../store/upkeep/retention.ts';
import { readLake } from '../../store/work/lake.ts';
import { CANDLES } from '../dataset/series-datasets.ts';
import { type Destination, hashOf } from '../destination/destination.ts';
import { DestinationError } from '../destination/destination-error.ts';
import { stretchOf, stretchOfPlan } from '../export/archived.ts';
import { type ExistingExport, readExistingExport } from '../export/existing-export.ts';
import { formOf } from '../export/export.ts';
import { readSeries, readWithin, type SeriesWithin, seriesIn, versionOf } from '../export/read-series.ts';
import { ALL_TIME, groupsOf, hiveFiles, type PlannedFile } from '../layout/layout.ts';
import type { ManifestFile } from '../manifest/manifest.ts';
import { ExportRefused } from '../refused.ts';
import { olderManifest, otherLake, readHeadOf } from './identity.ts';
import { markArchived } from './mark-archived.ts';
import { missingRow } from './missing-row.ts';
import { lakeSelection } from './sync.ts';

type ArchiveOptions = {
  readonly database: Pick<Database, 'sql' | 'url' | 'watchdog'>;
  readonly destination: Destination;
  /** Called with the reason why candles that are old enough stay in Postgres. */
  readonly onRefused: (why: string) => void;
};

/** Nobody else may write to the lake meanwhile. @throws ExportRefused when it is not the lake of this warehouse, or not whole */
export async function openArchive({ database, destination, onRefused }: ArchiveOptions): Promise<CandleArchive> {
  await requireOurs(database.sql, destination);
  const before = await readExistingExport(destination, lakeSelection([CANDLES.name]), 'lake');
  const files = new Map([...before.files.values()].map((file) => [stretchOf(file), file]));
  /** Resolves to the state of each series that was compared; null: the lake does not have the whole partition. */
  const check = async (interval: CandleInterval, partition: Span) => {
    const seen = new Map<number, string>();
    const held = await withSnapshot(database.sql, async (tx, snapshot) => {
      const found: ManifestFile[] = [];
      for (const planned of await plannedFiles(tx, interval, partition)) {
        const within = await readWithin(tx, seriesIn(planned), planned.span, false);
        if (within.length === 0) continue;
        for (const one of within) seen.set(one.id, versionOf([one], ''));
        const file = files.get(stretchOfPlan(planned));
        const why = await whyNot({ database, destination, before, snapshot }, planned, within, file);
        if (why !== null) {
          onRefused(why);
          return null;
        }
        found.push(file!);
      }
      return found;
    });
    if (held === null) return null;
    await markArchived(destination, held);
    for (const file of held) files.set(stretchOf(file), { ...file, isArchived: true });
    return seen;
  };
  return {
    hold: async (interval, partition) => {
      try {
        const seen = await check(interval, partition);
        return seen === null ? null : heldPartition(interval, partition, seen);
      } catch (error) {
        // Retention of the other tables does not wait for the lake.
        if (!(error instanceof DestinationError) && !(error instanceof ExportRefused)) throw error;
        onRefused(error.message);
        return null;
      }
    },
  };
}

async function requireOurs(sql: Database['sql'], destination: Destination): Promise<void> {
  const [head, known] = [await readHeadOf(destination), await readLake(sql)];
  const problem = otherLake(destination, head, known);
  if (problem !== null) throw new ExportRefused(problem);
  if (head === null) return;
  if (known?.at == null) throw new ExportRefused(`this warehouse has not written the lake ${destination.name} yet`);
  if (Date.parse(head.at) < known.at)
    throw new ExportRefused(`${olderManifest(destination, head, known.at)}; the schedule lake brings it up to date`);
}

/** The files to which the partition would be written. */
async function plannedFiles(
  tx: SqlOrTransaction,
  interval: CandleInterval,
  { from, to }: Span,
): Promise<PlannedFile[]> {
  const series = await readSeries(tx, CANDLES, { coinIds: null, intervals: [interval] });
  return groupsOf(series)
    .flatMap((group) => hiveFiles(CANDLES, group, 'parquet', ALL_TIME))
    .filter(({ span }) => span.from === from && span.to === to);
}

type Where = {
  readonly database: ArchiveOptions['database'];
  readonly destination: Destination;
  readonly before: ExistingExport;
  readonly snapshot: string;
};

/** Why the file does not hold the whole partition; null: it does. */
async function whyNot(
  { database, destination, before, snapshot }: Where,
  planned: PlannedFile,
  within: readonly SeriesWithin[],
  file: ManifestFile | undefined,
): Promise<string | null> {
  if (file === undefined) return `the lake has no file for ${planned.path} yet`;
  const { path, bytes, sha256 } = file;
  if (before.sizes.get(path) !== bytes) return `${path} of the lake is missing, or has a different size`;
  if (!file.isArchived && file.version !== versionOf(within, formOf(planned, { finalOnly: false })))
    return `${path} of the lake is not up to date`;
  if ((await hashOf(destination, path)) !== sha256)
    return `the SHA-256 of ${path} of the lake differs from its manifest`;
  if (!file.isArchived) return null;
  // Postgres no longer has the rows that were removed once, so only a comparison of the rows themselves can decide.
  const columns = before.datasets.find(({ name }) => name === CANDLES.name)?.columns;
  if (columns == null) return `the manifest of the lake lists no columns for ${path}`;
  const copy = await openCopyOut({ url: database.url, snapshot, watchdog: database.watchdog });
  try {
    const missing = await missingRow({ copy, destination, planned, within, file, columns });
    return missing === null
      ? null
      : `${path} of the lake is archived, but Postgres has a row that it lacks: ${missing}`;
  } finally {
    await copy.close();
  }
}

/** `seen`: the state of each series when it was compared with the file. */
function heldPartition(interval: CandleInterval, partition: Span, seen: ReadonlyMap<number, string>): HeldPartition {
  return {
    holds: async (tx, id) => {
      const [now] = await readWithin(tx, [{ id, interval }], partition, false);
      if (now === undefined || seen.get(id) === versionOf([now], '')) return true;
      if (seen.has(id)) return false;
      const [row] = await tx<{ hasRows: boolean }[]>`
        select exists (select from ${storedRows(tx, tx`${id}::int`, interval)} c
          where c.open_time >= ${partition.from} and c.open_time < ${partition.to}) as has_rows`;
      return !row!.hasRows;
    },
  };
}
