/** The run of the schedule `lake`, and the part that the lake plays in `retention`. */
import type { App } from '../../app.ts';
import type { Config } from '../../config.ts';
import { ConfigurationError } from '../../ingest/outcome.ts';
import { DestinationError } from '../../lake/destination/destination-error.ts';
import { openDestination } from '../../lake/destination/open-destination.ts';
import { lockOf } from '../../lake/export/export.ts';
import { ExportBusy, ExportRefused } from '../../lake/refused.ts';
import { openArchive } from '../../lake/sync/archive.ts';
import { syncLake } from '../../lake/sync/sync.ts';
import { withLockUnlessHeld } from '../../store/connection/lock.ts';
import type { CandleArchive } from '../../store/upkeep/retention.ts';
import { readLake } from '../../store/work/lake.ts';

type LakeSettings = NonNullable<Config['lake']>;

/** The result of a run, for the log. */
type LakeWritten = {
  readonly root: string;
  readonly files: number;
  readonly bytes: number;
  readonly writtenFiles: number;
  readonly writtenBytes: number;
  readonly removedFiles: number;
};

/** @throws ConfigurationError when only another setting would help, another error when a later attempt may succeed */
export async function writeLake(
  { config, database, clock }: Pick<App, 'config' | 'database' | 'clock'>,
  { address, datasets }: LakeSettings,
  signal: AbortSignal,
): Promise<LakeWritten> {
  const destination = await openDestination(address, config.s3);
  const synced = syncLake({ database, destination, datasets, clock, signal });
  const { root, files, bytes, written, removed } = await synced.catch((error: unknown) => {
    throw explained(error);
  });
  return {
    root,
    files,
    bytes,
    writtenFiles: written.files,
    writtenBytes: written.bytes,
    removedFiles: removed.length,
  };
}

function explained(error: unknown): unknown {
  if (error instanceof DestinationError) {
    const message = `${error.message}; ${error.remedy}`;
    return error.fault === 'refused' ? new ConfigurationError(message) : new Error(message, { cause: error });
  }
  return error instanceof ExportRefused && !(error instanceof ExportBusy)
    ? new ConfigurationError(error.message)
    : error;
}

const KEPT = 'candles past their retention stay in Postgres';

/** Retention then removes no candles. The reason was already logged. */
const HOLDS_NOTHING: CandleArchive = { hold: async () => null };

/** Retention with a lake: it may remove only candles that are in the lake. While the lake is unreadable or being written, all candles stay. */
export async function withArchive<T>(
  { config, database, log }: Pick<App, 'config' | 'database' | 'log'>,
  { address }: LakeSettings,
  remove: (archive: CandleArchive) => Promise<T>,
): Promise<T> {
  const onRefused = (why: string) => log.warn({ why }, KEPT);
  const destination = await openDestination(address, config.s3);
  const ended = await withLockUnlessHeld(database.sql, lockOf(destination), async () => {
    const archive = await openArchive({ database, destination, onRefused }).catch((error: unknown) => {
      if (!(error instanceof DestinationError) && !(error instanceof ExportRefused)) throw error;
      onRefused(error.message);
      return HOLDS_NOTHING;
    });
    return { removed: await remove(archive) };
  });
  if (ended !== null) return ended.removed;
  onRefused('another process is writing the lake; the next run tries again');
  return remove(HOLDS_NOTHING);
}

/** Retention, as the schedule runs it. */
export async function removeWithLake<T>(
  app: Pick<App, 'config' | 'database' | 'log'>,
  remove: (archive?: CandleArchive) => Promise<T>,
): Promise<T> {
  const { lake, keep } = app.config;
  // Without candles to remove, there is no need to take the lock that blocks writing the lake.
  if (Object.values(keep.candles).every((ms) => ms === null)) return remove();
  return lake === null ? withoutAddress(app, remove) : withArchive(app, lake, remove);
}

/** Retention removes candles for good, unless this warehouse has written a lake before. */
async function withoutAddress<T>(
  { database, log }: Pick<App, 'database' | 'log'>,
  remove: (archive?: CandleArchive) => Promise<T>,
): Promise<T> {
  const known = await readLake(database.sql);
  if (known?.at == null) return remove();
  const why = `CHANDLER_LAKE_URL is not set, and this warehouse wrote its lake to ${known.place}; set it, or give that lake up: chandler lake accept`;
  log.warn({ why }, KEPT);
  return remove(HOLDS_NOTHING);
}
