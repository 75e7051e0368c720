/**
 * Compares archived files of a lake, whose rows retention has removed from Postgres since, with the evidence that stays there. For each removal,
 * the evidence has the number of final rows and the sum of their hashes.
 */

import { createHash } from 'node:crypto';
import { formatCounted } from '../../core/format.ts';
import { contains, intersect, type Spans } from '../../core/span.ts';
import { CANDLE_VALUES } from '../../store/candle/coarse-candle.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { Batch, Column } from '../../store/copy/columns.ts';
import { type Finding, finding } from '../../views/attestation/finding.ts';
import { nameOf } from '../../views/attestation/series-line.ts';
import { CANDLES } from '../dataset/series-datasets.ts';
import type { Destination } from '../destination/destination.ts';
import { rowBytes } from '../digest/series-digests.ts';
import { NotReadable } from '../format/not-readable.ts';
import { READERS } from '../format/open-format.ts';
import { type ManifestFile, spanOfFile } from '../manifest/manifest.ts';
import type { Recounted, RecountedSeries } from './recount.ts';
import type { SlotReader } from './slots.ts';

/** A removal by retention, and the rows of its slots that the files have. */
type Removal = {
  readonly slots: Spans;
  readonly candles: number;
  /** Modulo 2^64. */
  readonly digest: bigint;
  found: { candles: number; digest: bigint };
};

/** A series of the warehouse. */
type Known = {
  /** The first of its names in the manifest. */
  readonly name: string;
  readonly removals: readonly Removal[];
  readonly covered: Spans;
  /** Number of final rows that no removal explains, of a time that Postgres does not have either. */
  unexplained: number;
  /** Whether there are rows of a time that Postgres still has, or has again. */
  isStillThere: boolean;
};

/** Checks only archived files. */
export async function* compareArchived(
  sql: Sql,
  destination: Destination,
  recounted: Recounted,
  slots: SlotReader,
): AsyncGenerator<Finding> {
  const files = recounted.files.filter(({ isArchived }) => isArchived);
  const places = new Set(files.map(({ interval, quote }) => `${quote} ${interval}`));
  for (const place of places) {
    const inPlace = files.filter(({ interval, quote }) => `${quote} ${interval}` === place);
    const series = [...recounted.series].filter(([name]) => name.endsWith(` ${place}`));
    const known = await readKnown(sql, series, inPlace, slots);
    let isWhole = true;
    for (const file of inPlace) isWhole = (await addRows(destination, recounted, file, known)) && isWhole;
    // The recount has already reported the file that cannot be read.
    if (isWhole) for (const one of new Set(known.values())) yield* judge(one);
  }
}

/** By the names in the manifest. A coin that was given another id has several names for one series. */
async function readKnown(
  sql: Sql,
  series: readonly (readonly [string, RecountedSeries])[],
  files: readonly ManifestFile[],
  slots: SlotReader,
): Promise<Map<string, Known>> {
  const ids = await slots.idsOf(series.map(([, one]) => one));
  const rows = await sql<{ id: number; slots: Spans | null; candles: number; digest: string | null; covered: Spans }[]>`
    select s.id, e.slots, e.candles, e.digest::text as digest, s.covered
    from market.series s left join market.evidence e on e.series_id = s.id and e.kind = 'retention'
    where s.id = any(${ids}::int[]) order by s.id, e.number`;
  const spans = files.map(spanOfFile);
  const byId = new Map<number, Known & { readonly removals: Removal[] }>();
  for (const { id, covered, slots: gone, candles, digest } of rows) {
    const [name] = series[ids.indexOf(id)]!;
    const one = byId.get(id) ?? { name, removals: [], covered, unexplained: 0, isStillThere: false };
    byId.set(id, one);
    // A removal from before the lake existed is about other times.
    if (gone === null || intersect(gone, spans).length === 0) continue;
    const removed = { slots: gone, candles, digest: BigInt.asUintN(64, BigInt(digest ?? 0)) };
    one.removals.push({ ...removed, found: { candles: 0, digest: 0n } });
  }
  return new Map(
    series.flatMap(([name], i) => {
      const one = byId.get(ids[i] ?? 0);
      return one === undefined ? [] : [[name, one] as const];
    }),
  );
}

/** False: the file cannot be read. */
async function addRows(
  destination: Destination,
  { datasets, head }: Recounted,
  { path, bytes, interval, quote }: ManifestFile,
  known: ReadonlyMap<string, Known>,
): Promise<boolean> {
  const columns = datasets.get(CANDLES.name)?.columns ?? null;
  if (columns === null) return false;
  const read = await READERS[head.format]();
  const names = columns.map(({ name }) => name);
  try {
    for await (const batch of read({ destination, path, bytes, columns }))
      addBatch(batch, names, (coinId) => known.get(`${coinId} ${quote} ${interval}`));
    return true;
  } catch (error) {
    if (error instanceof NotReadable) return false;
    throw error;
  }
}

function addBatch(batch: Batch, names: readonly string[], knownOf: (coinId: string) => Known | undefined): void {
  const column = (name: string) => batch.columns[names.indexOf(name)]!;
  const coins = column('coin_id').values as string[];
  const times = column('open_time').values as BigInt64Array;
  const isFinal = column('is_final').values as Uint8Array;
  const values = CANDLE_VALUES.map(column);
  for (let i = 0; i < batch.rows; i++) {
    const known = isFinal[i] === 1 ? knownOf(coins[i]!) : undefined;
    if (known === undefined) continue;
    const micros = times[i]!;
    const at = Number(micros / 1_000n);
    const removals = known.removals.filter((one) => contains(one.slots, at));
    if (removals.length > 0) {
      const hash = hashOf(micros, values, i);
      for (const { found } of removals) {
        found.candles++;
        found.digest = BigInt.asUintN(64, found.digest + hash);
      }
    } else if (contains(known.covered, at)) known.isStillThere = true;
    else known.unexplained++;
  }
}

/** The same as `market.candle_hash`: the first eight bytes of the SHA-256 of time and values. */
function hashOf(microseconds: bigint, values: readonly Column[], row: number): bigint {
  return createHash('sha256')
    .update(rowBytes(microseconds, values, row))
    .digest()
    .readBigUInt64BE(0);
}

function isEqual({ candles, digest, found }: Removal): boolean {
  return found.candles === candles && found.digest === digest;
}

/**
 * Slots may be removed, fetched again, and removed again. If the file was written in between, it has the rows of the newer removal, and an older
 * one cannot be compared. If the file stayed, because the new answers left out some of its rows, it has the rows of the older removal.
 */
function isExplained({ slots }: Removal, older: readonly Removal[], newer: readonly Removal[]): boolean {
  const isShared = (other: Removal) => intersect(slots, other.slots).length > 0;
  return newer.some(isShared) || older.some((other) => isShared(other) && isEqual(other));
}

function* judge({ name, removals, unexplained, isStillThere }: Known): Generator<Finding> {
  for (const [i, removal] of removals.entries()) {
    const { slots, candles, found } = removal;
    const month = nameOf(slots[0]!.from);
    if (isEqual(removal)) yield finding(name, month, 'equal', '');
    else if (!isExplained(removal, removals.slice(0, i), removals.slice(i + 1))) {
      const counts = `${formatCounted(found.candles, 'final row')}, but retention removed ${candles}`;
      yield finding(name, month, 'tampered', `its archived rows differ from those that retention removed: ${counts}`);
    }
  }
  if (isStillThere) yield finding(name, null, 'changed', 'Postgres still has a part of the archived rows');
  if (unexplained > 0)
    yield finding(
      name,
      null,
      'tampered',
      `${formatCounted(unexplained, 'archived row')} that retention never removed, but Postgres does not have`,
    );
}
