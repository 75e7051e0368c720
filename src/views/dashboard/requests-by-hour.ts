/** How many requests were sent in each of the last hours, and how they ended. */
import type { Instant } from '../../clock.ts';
import { HOUR } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { DISORDER_MS, firstRequestSince } from './request-ids.ts';

type HourOfRequests = {
  readonly from: Instant;
  readonly stored: number;
  /** The answer had no data: not found, no more quota, refused. */
  readonly refused: number;
  /** There was no usable answer. */
  readonly failed: number;
};

/** Outcomes after which the same request is sent again. */
const FAILURES: readonly string[] = ['unavailable', 'limited', 'malformed', 'implausible'];

const HOURS = 24;
/** Maximum number of requests that are read at once, for the hours that are over. */
const MOST = 1_000_000;

export type RequestsByHour = {
  /** Oldest first, including hours without a request. */
  readonly hours: readonly HourOfRequests[];
  /** The hours before this one are not counted, because too many requests were sent since. Null: all hours are counted. */
  readonly uncountedBefore: Instant | null;
  /** Maximum number of requests that are counted. Those of the current hour always are. */
  readonly most: number;
};

/** Caches the counts of the hours that are over, and counts only the others anew. `most`: for tests. */
export function createRequestsByHour(sql: Sql, most = MOST): (now: Instant) => Promise<RequestsByHour> {
  let kept: ReadonlyMap<Instant, HourOfRequests> = new Map();
  let uncountedBefore = 0;

  return async (now) => {
    const current = Math.floor(now / HOUR) * HOUR;
    const hours = Array.from({ length: HOURS }, (_, i) => current - (HOURS - 1 - i) * HOUR);
    const from = hours.find((hour) => hour >= uncountedBefore && !kept.has(hour)) ?? current;
    const { rows, wholeFrom } = await countFrom(sql, { from, current, most });
    // The current hour is complete, even if the first row that was read lies just after its start.
    if (wholeFrom !== null) uncountedBefore = Math.max(uncountedBefore, Math.min(wholeFrom, current));
    const counted = new Map(rows.map((row) => [row.from, row]));
    const hoursNow = hours.map((hour): HourOfRequests => {
      const none = { from: hour, stored: 0, refused: 0, failed: 0 };
      if (hour < uncountedBefore) return none;
      return (hour < from ? kept.get(hour) : counted.get(hour)) ?? none;
    });
    // A request is recorded when it has been answered, so an hour is over some minutes after its end.
    kept = new Map(
      hoursNow
        .filter((hour) => hour.from >= uncountedBefore && hour.from + HOUR + DISORDER_MS <= now)
        .map((hour) => [hour.from, hour]),
    );
    return { hours: hoursNow, uncountedBefore: uncountedBefore > hours[0]! ? uncountedBefore : null, most };
  };
}

/** `wholeFrom`: the first hour whose requests were all read; null: those of all hours were. */
async function countFrom(
  sql: Sql,
  { from, current, most }: { readonly from: Instant; readonly current: Instant; readonly most: number },
): Promise<{ readonly rows: readonly HourOfRequests[]; readonly wholeFrom: Instant | null }> {
  const first = await firstRequestSince(sql, from - DISORDER_MS);
  const [end] = await sql<{ last: number | null }[]>`select max(id)::float8 as last from ops.fetch`;
  const newest = (end!.last ?? 0) + 1 - most;
  // No setting limits the requests of an account in an hour, so the current hour is never cut.
  const least = newest <= first ? first : Math.min(newest, await firstRequestSince(sql, current - DISORDER_MS));
  const rows = await sql<HourOfRequests[]>`
    select date_bin('1 hour', sent_at, 'epoch') as "from", count(*) filter (where outcome = 'stored')::int as stored,
      count(*) filter (where outcome <> all(${FAILURES as string[]}) and outcome <> 'stored')::int as refused,
      count(*) filter (where outcome = any(${FAILURES as string[]}))::int as failed
    from ops.fetch where id >= ${least}::bigint and sent_at >= ${from} group by 1`;
  if (least === first) return { rows, wholeFrom: null };
  const [cut] = await sql<
    { sentAt: Instant }[]
  >`select sent_at from ops.fetch where id >= ${least}::bigint order by id limit 1`;
  const wholeFrom = cut === undefined ? from : Math.ceil((cut.sentAt + DISORDER_MS) / HOUR) * HOUR;
  return { rows, wholeFrom: Math.max(from, wholeFrom) };
}
