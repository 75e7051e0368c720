/** Whether the place that is set is the lake of this warehouse: for `chandler doctor` and `chandler lake accept`. */
import { randomUUID } from 'node:crypto';
import type { App } from '../../app.ts';
import { formatInstant } from '../../core/format.ts';
import { nameOfAddress, type S3Timing } from '../../lake/destination/address.ts';
import { openDestination } from '../../lake/destination/open-destination.ts';
import { otherLake, readHeadOf } from '../../lake/sync/identity.ts';
import type { KnownLake } from '../../store/work/lake.ts';
import { readLake } from '../../store/work/lake.ts';

export type OtherLake = {
  /** What is there, and what is missed; behind semicolons: what to do. */
  readonly problem: string;
  /** Null: no place is set. */
  readonly place: string | null;
  /** What `replaceLake` takes to go on with it. */
  readonly next: Omit<KnownLake, 'at'> | null;
};

/** Null: it is the lake of this warehouse, or becomes it with the next run. @throws DestinationError, ExportRefused when that cannot be told */
export async function readOtherLake(
  { config: { lake, s3 }, database: { sql } }: Pick<App, 'config' | 'database'>,
  timing: S3Timing = {},
): Promise<OtherLake | null> {
  const known = await readLake(sql);
  if (lake === null) {
    if (known === null) return null;
    const problem = `CHANDLER_LAKE_URL is not set, and this warehouse has the lake ${known.place}${asOf(known)}; set it: until then retention removes no candles; if that lake is given up: chandler lake accept`;
    return { problem, place: null, next: null };
  }
  const destination = await openDestination(lake.address, s3, timing);
  const head = await readHeadOf(destination);
  const problem = otherLake(destination, head, known);
  const next = { id: head?.id ?? randomUUID(), place: destination.place };
  return problem === null ? null : { problem, place: nameOfAddress(lake.address), next };
}

function asOf({ at }: KnownLake): string {
  return at === null ? '' : ` (as of ${formatInstant(at)})`;
}
