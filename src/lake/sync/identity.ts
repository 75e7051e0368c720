/**
 * Checks that a place is the lake of this warehouse: its manifest has an id, and Postgres stores the id. Otherwise a folder that is not mounted, or
 * a wrong address, would look like a place for a new lake, and two warehouses would remove each other's files.
 */
import { randomUUID } from 'node:crypto';
import type { Instant } from '../../clock.ts';
import { formatInstant } from '../../core/format.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { beginLake, completeLake, type KnownLake, readLake } from '../../store/work/lake.ts';
import type { Destination } from '../destination/destination.ts';
import { refusedDamage } from '../export/existing-export.ts';
import type { ManifestHead } from '../manifest/manifest.ts';
import { DamagedManifest, readManifestHead } from '../manifest/read-manifest.ts';
import { ExportRefused } from '../refused.ts';

type Place = Pick<Destination, 'name' | 'place'>;

/** Returns the lake to write next. @throws ExportRefused when another lake, or none, is where ours should be; nothing was written */
export async function identify(sql: SqlOrTransaction, destination: Destination): Promise<KnownLake> {
  const head = await readHeadOf(destination);
  const known = await readLake(sql);
  const problem = otherLake(destination, head, known);
  if (problem !== null) throw new ExportRefused(problem);
  // An earlier run ended right after it wrote this manifest. It is noted now, because announcing the next manifest overwrites its instant.
  if (head !== null && known?.nextAt != null && Date.parse(head.at) === known.nextAt)
    await completeLake(sql, { id: known.id, place: destination.place, at: known.nextAt });
  // Stored before the manifest is written, so that a run that is killed right after it finds its own lake.
  return beginLake(sql, { id: head?.id ?? randomUUID(), place: destination.place });
}

/** Null: there is no manifest. @throws ExportRefused when it cannot be trusted */
export async function readHeadOf(destination: Destination): Promise<ManifestHead | null> {
  try {
    return await readManifestHead(destination);
  } catch (error) {
    throw error instanceof DamagedManifest ? refusedDamage(destination, 'lake', error) : error;
  }
}

/** Why the lake at this place, or its absence, does not match the known lake; null: it matches. The text after the semicolon says what to do. */
export function otherLake({ name, place }: Place, head: ManifestHead | null, known: KnownLake | null): string | null {
  // Another check refuses an export by hand.
  if (head?.kind === 'export') return null;
  const written = known?.at == null ? null : { ...known, at: known.at };
  if (head === null) return written === null ? null : `${name} has no manifest of a lake, but ${elsewhere(written)}`;
  // Earlier versions wrote no id.
  if (head.id === undefined && (written === null || written.place === place)) return null;
  if (head.id === undefined || head.id !== known?.id) {
    const found = `${name} has the lake of another warehouse`;
    return written === null ? `${found}; ${TAKE_OVER}` : `${found}, and ${elsewhere(written)}`;
  }
  const at = Date.parse(head.at);
  if (written === null || at <= written.at || at === written.nextAt) return null;
  return `another database wrote ${name} as of ${formatInstant(at)}, and this one wrote it as of ${formatInstant(written.at)}: one of them is a copy of the other, or this one was restored or has lost its last commits; ${TAKE_OVER}`;
}

const TAKE_OVER =
  'name another place in CHANDLER_LAKE_URL; or, if no other database writes this lake any more, take it over: chandler lake accept';

function elsewhere({ place, at }: { readonly place: string; readonly at: Instant }): string {
  return `this warehouse wrote its lake to ${place} (as of ${formatInstant(at)}). That lake may be the only place with candles that retention removed; mount or restore it, or correct CHANDLER_LAKE_URL; to continue without it: chandler lake accept`;
}

export function olderManifest({ name }: Pick<Place, 'name'>, head: Pick<ManifestHead, 'at'>, at: Instant): string {
  return `the manifest of ${name} is as of ${formatInstant(Date.parse(head.at))}, but this warehouse wrote one as of ${formatInstant(at)}`;
}
