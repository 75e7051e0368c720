/**
 * How an account spent its requests over time, and on what. The ledger has only sums, so this reads the requests themselves. It reads a bounded
 * number of them: all, or every n-th.
 */
import type { Instant } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { DISORDER_MS, firstRequestSince } from './request-ids.ts';

export type SpentOverTime = {
  /** `backfill 12`, the most expensive ones; `other backfills`; `schedules and commands`. */
  readonly spenders: readonly string[];
  /** Oldest first, including buckets without a request. `counts`: one for each spender. */
  readonly buckets: readonly { readonly from: Instant; readonly counts: readonly number[] }[];
  /** 1: every request was counted; n: every n-th was counted, and the counts are multiplied by n. */
  readonly every: number;
};

/** Up to this many requests are counted one by one. */
const MOST_COUNTED = 50_000;
/** If there are more, this many are read. */
const SAMPLE = 6_000;
const MOST_BACKFILLS = 3;
const OTHERS = 'schedules and commands';
const OTHER_BACKFILLS = 'other backfills';

type Row = { readonly bucket: number; readonly backfillId: number | null; readonly requests: number };

export async function readSpentOverTime(
  sql: Sql,
  window: { readonly accountId: string; readonly from: Instant; readonly to: Instant; readonly bucketMs: number },
): Promise<SpentOverTime> {
  const { accountId, from, to, bucketMs } = window;
  const first = await firstRequestSince(sql, from - DISORDER_MS);
  const [end] = await sql<{ last: number | null }[]>`select max(id) as last from ops.fetch`;
  const n = (end!.last ?? 0) + 1 - first;
  const every = n <= MOST_COUNTED ? 1 : n / SAMPLE;
  const ids = every === 1 ? sql`` : sql`generate_series(0, ${SAMPLE - 1}::int) g join`;
  const condition =
    every === 1
      ? sql`where f.id >= ${first}`
      : sql`on f.id = ${first}::bigint + floor(g * ${every}::float8)::bigint where true`;
  const rows = await sql<Row[]>`
    select floor(extract(epoch from f.sent_at - ${from}::timestamptz) * 1000 / ${bucketMs})::int as bucket, f.backfill_id,
      count(*)::float8 as requests
    from ${ids} ops.fetch f ${condition} and f.account_id = ${accountId} and f.sent_at >= ${from} and f.sent_at < ${to}
    group by 1, 2`;
  return { ...arranged(rows, { from, to, bucketMs, every }), every: Math.round(every) };
}

function arranged(
  rows: readonly Row[],
  {
    from,
    to,
    bucketMs,
    every,
  }: { readonly from: Instant; readonly to: Instant; readonly bucketMs: number; readonly every: number },
): Omit<SpentOverTime, 'every'> {
  const sums = new Map<number, number>();
  for (const { backfillId, requests } of rows)
    if (backfillId !== null) sums.set(backfillId, (sums.get(backfillId) ?? 0) + requests);
  const dearest = [...sums].sort((a, b) => b[1] - a[1]).map(([id]) => id);
  const named = dearest.slice(0, MOST_BACKFILLS);
  const spenders = [
    OTHERS,
    ...named.map((id) => `backfill ${id}`),
    ...(dearest.length > named.length ? [OTHER_BACKFILLS] : []),
  ];
  const buckets = Array.from({ length: Math.max(1, Math.ceil((to - from) / bucketMs)) }, (_, i) => ({
    from: from + i * bucketMs,
    counts: spenders.map(() => 0),
  }));
  for (const { bucket, backfillId, requests } of rows) {
    const place =
      backfillId === null ? 0 : named.includes(backfillId) ? 1 + named.indexOf(backfillId) : spenders.length - 1;
    const counts = buckets[bucket]?.counts;
    if (counts !== undefined) counts[place]! += requests * every;
  }
  return { spenders, buckets };
}
