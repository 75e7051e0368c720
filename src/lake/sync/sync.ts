/** Brings the lake up to date: writes the files whose rows have changed, and then the manifest that names them. */
import type { Clock } from '../../clock.ts';
import type { Database } from '../../store/connection/connect.ts';
import { completeLake } from '../../store/work/lake.ts';
import { DATASETS } from '../dataset/datasets.ts';
import type { Destination } from '../destination/destination.ts';
import { type Exported, withExportLock, writeExport } from '../export/export.ts';
import type { Selection } from '../export/selection.ts';
import { identify } from './identity.ts';
import { lakeRules } from './lake-rules.ts';

type SyncOptions = {
  readonly database: Pick<Database, 'sql' | 'url' | 'watchdog'>;
  readonly destination: Destination;
  /** Names of datasets. */
  readonly datasets: readonly string[];
  readonly clock: Clock;
  readonly signal: AbortSignal;
};

/** Selects the whole datasets, in the one format that every engine reads. */
export function lakeSelection(datasets: readonly string[]): Selection {
  return {
    datasets: DATASETS.filter(({ name }) => datasets.includes(name)),
    coinIds: null,
    intervals: null,
    span: { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY },
    finalOnly: false,
    format: 'parquet',
    layout: 'hive',
  };
}

/**
 * May be killed at any time: the next run continues from the finished files. @throws ExportRefused when something else is at the destination, or is
 * being written there, or when the lake that was written before is missing
 */
export async function syncLake({ database, destination, datasets, clock, signal }: SyncOptions): Promise<Exported> {
  const options = { database, destination, selection: lakeSelection(datasets), signal };
  // The lock is taken before the first read. Otherwise another run could end meanwhile, and its manifest would look like another database's.
  return withExportLock(options, async () => {
    const known = await identify(database.sql, destination);
    const exported = await writeExport(options, lakeRules(database.sql, destination, known, clock.now));
    // There is no `onPlan` that could decline the plan.
    if (exported === null) throw new Error('the lake was not written');
    await completeLake(database.sql, { id: known.id, place: destination.place, at: exported.at });
    return exported;
  });
}
