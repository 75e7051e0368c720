/**
 * The partitions of `market.candle`: a year each for wide candles, a quarter for 1h, a month below; made when first needed.
 *
 * A new partition is made as a table of its own and then attached. Attaching takes a lock on the parent that neither readers
 * nor writers feel, and nothing has to be scanned, because the new table is empty. (`create table … partition of` would lock
 * everybody out of the parent.)
 */
import type { Instant } from '../clock.ts';
import type { Interval } from '../core/interval.ts';
import type { Span } from '../core/span.ts';
import type { Sql } from './connect.ts';

type Partition = { readonly name: string; readonly from: Instant; readonly to: Instant };

const MONTHS_EACH: Readonly<Record<Interval, 1 | 3 | 12>> = {
  '5m': 1,
  '15m': 1,
  '30m': 1,
  '1h': 3,
  '6h': 12,
  '12h': 12,
  '24h': 12,
};

/** More than this is a mistake in the span, not a wish. */
const MOST = 2_000;

/** First half of the key of the advisory lock under which partitions are made; the second is the interval. */
const LOCK = 4_242_003;

/** Makes the partitions that `span` needs and that do not exist. Safe for any number of callers at once; blocks no reader or writer. */
export async function ensurePartitions(sql: Sql, interval: Interval, span: Span): Promise<void> {
  const needed = partitionsOf(interval, span);
  if ((await missing(sql, needed)).length === 0) return;
  await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${LOCK}, hashtext(${interval}))`;
    // Again, under the lock: another process may have made them while we waited.
    for (const partition of await missing(tx as unknown as Sql, needed)) {
      const from = new Date(partition.from).toISOString();
      const to = new Date(partition.to).toISOString();
      await tx.unsafe(`
        create table market.${partition.name} (like market.candle_${interval} including all);
        comment on table market.${partition.name} is 'A stretch of time of market.candle_${interval}.';
        alter table market.candle_${interval} attach partition market.${partition.name} for values from ('${from}') to ('${to}')`);
    }
  });
}

export type PartitionKeeper = (interval: Interval, span: Span) => Promise<void>;

/** `ensurePartitions` that remembers which it has seen: for who writes again and again into the same few. */
export function createPartitionKeeper(sql: Sql): PartitionKeeper {
  const seen = new Set<string>();
  return async (interval, span) => {
    const names = partitionsOf(interval, span).map((partition) => partition.name);
    if (names.every((name) => seen.has(name))) return;
    await ensurePartitions(sql, interval, span);
    for (const name of names) seen.add(name);
  };
}

/** @throws RangeError when `span` is open-ended or absurdly long */
function partitionsOf(interval: Interval, span: Span): Partition[] {
  if (span.from >= span.to) return [];
  if (!Number.isFinite(span.from)) throw new RangeError('a span without a beginning has no first partition');
  const months = MONTHS_EACH[interval];
  const out: Partition[] = [];
  const start = new Date(span.from);
  for (
    let from = Date.UTC(start.getUTCFullYear(), Math.floor(start.getUTCMonth() / months) * months);
    from < span.to;
    from = out.at(-1)!.to
  ) {
    if (out.length === MOST)
      throw new RangeError(`the span ${span.from} to ${span.to} needs more than ${MOST} partitions`);
    const date = new Date(from);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    out.push({ name: nameOf(interval, year, month), from, to: Date.UTC(year, month + months) });
  }
  return out;
}

function nameOf(interval: Interval, year: number, month: number): string {
  const prefix = `candle_${interval}_${year}`;
  switch (MONTHS_EACH[interval]) {
    case 12:
      return prefix;
    case 3:
      return `${prefix}q${Math.floor(month / 3) + 1}`;
    case 1:
      return `${prefix}m${String(month + 1).padStart(2, '0')}`;
  }
}

async function missing(sql: Sql, partitions: readonly Partition[]): Promise<Partition[]> {
  // Reads pg_class rather than ask to_regclass(), which may answer from a cache older than the lock we hold.
  const rows = await sql<{ name: string }[]>`
    select name from unnest(${partitions.map((p) => p.name)}::text[]) name
    where not exists (select from pg_class where relname = name and relnamespace = 'market'::regnamespace)`;
  const names = new Set(rows.map((row) => row.name));
  return partitions.filter((p) => names.has(p.name));
}
