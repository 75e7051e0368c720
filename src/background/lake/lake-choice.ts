/** Whether the configured place contains the lake of this warehouse: for `chandler doctor` and `chandler lake accept`. */
import { randomUUID } from 'node:crypto';
import type { App } from '../../app.ts';
import { formatInstant } from '../../core/format.ts';
import { nameOfAddress, type S3Timing } from '../../lake/destination/address.ts';
import { openDestination } from '../../lake/destination/open-destination.ts';
import { refusedAsLake } from '../../lake/export/existing-export.ts';
import { olderManifest, otherLake, readHeadOf } from '../../lake/sync/identity.ts';
import { type NewLake, readLake } from '../../store/work/lake.ts';

export type OtherLake = {
  /** What the place contains, and what is missing. After a semicolon: what to do. */
  readonly problem: string;
  /** Whether Chandler refuses the next run. */
  readonly isRefused: boolean;
  /** Null when no place is configured. */
  readonly place: string | null;
  /** The argument of `replaceLake` to continue with this lake. */
  readonly next: NewLake | null;
};

/** Null when it is this warehouse's lake, or becomes it with the next run. @throws DestinationError, ExportRefused when that is unknown */
export async function readOtherLake(
  { config: { lake, s3 }, database: { sql } }: Pick<App, 'config' | 'database'>,
  timing: S3Timing = {},
): Promise<OtherLake | null> {
  const known = await readLake(sql);
  if (lake === null) {
    if (known?.at == null) return null;
    const problem = `CHANDLER_LAKE_URL is not set, and this warehouse wrote its lake to ${known.place} (as of ${formatInstant(known.at)}); set it: until then retention removes no candles; to give that lake up: chandler lake accept`;
    return { problem, isRefused: false, place: null, next: null };
  }
  const destination = await openDestination(lake.address, s3, timing);
  const head = await readHeadOf(destination);
  if (head?.kind === 'export') throw refusedAsLake(destination.name);
  const told = {
    place: nameOfAddress(lake.address),
    next: { id: head?.id ?? randomUUID(), place: destination.place },
  };
  const problem = otherLake(destination, head, known);
  if (problem !== null) return { ...told, problem, isRefused: true };
  if (head === null || known?.at == null || Date.parse(head.at) >= known.at) return null;
  const older = olderManifest(destination, head, known.at);
  return {
    ...told,
    problem: `${older}; the next run brings it up to date, unless it finds files that only the newer one can name`,
    isRefused: false,
  };
}
