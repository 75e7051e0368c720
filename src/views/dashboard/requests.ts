/** The requests to the upstream, newest first, one page at a time. Each page reads a bounded part of them, however many there are. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { HOUR, type Interval } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { DISORDER_MS, firstRequestSince } from './request-ids.ts';

export type RequestRow = {
  readonly id: number;
  readonly sentAt: Instant;
  readonly asOf: Instant;
  readonly accountId: string;
  readonly endpoint: string;
  /** The coin of its series, or the coin, exchange, tag … that it was about; null: neither. */
  readonly subject: string | null;
  readonly interval: Interval | null;
  readonly quote: Quote | null;
  readonly from: Instant | null;
  readonly to: Instant | null;
  readonly backfillId: number | null;
  readonly attempt: number;
  readonly status: number | null;
  readonly outcome: string;
  readonly message: string | null;
  readonly durationMs: number;
  readonly bytes: number;
  readonly rows: number;
  readonly stored: number;
  readonly revised: number;
  readonly quarantined: number;
  /** In hexadecimal digits. */
  readonly bodySha256: string | null;
};

/** `not stored` stands for every other outcome. */
export const NOT_STORED = 'not stored';

export type RequestFilter = {
  readonly outcome: string | null;
  readonly endpoint: string | null;
  /** The ids of one coin: requests for its candles and prices, and about the coin itself. */
  readonly coin: readonly string[] | null;
  /** The id of a coin, exchange, tag …: only requests about exactly that. */
  readonly about: string | null;
  readonly backfill: number | null;
  readonly from: Instant | null;
  readonly to: Instant | null;
};

export type RequestPage = {
  readonly rows: readonly RequestRow[];
  /** Older requests have numbers below this; null: there are none. */
  readonly next: number | null;
  /** How many requests were read, and when the oldest of them was sent; null: no older request matches. */
  readonly looked: { readonly requests: number; readonly backTo: Instant } | null;
};

const PAGE = 50;
/** A page searches at most this many requests for matches. */
export const MOST_SEARCHED = 100_000;
/** The requests of one series are read in the order of their as-of times. At most this many of them may be in another order than their numbers. */
const UNORDERED = 200;

/** `before`: the page has requests with lower numbers; null: it begins with the newest. */
export async function readRequests(sql: Sql, filter: RequestFilter, before: number | null): Promise<RequestPage> {
  const [ends] = await sql<{ first: number | null; last: number | null }[]>`
    select (select min(id) from ops.fetch) as first, (select max(id) from ops.fetch) as last`;
  const { first, last } = ends!;
  if (first === null || last === null) return { rows: [], next: null, looked: null };
  const { from, to, coin } = filter;
  const end = to === null ? last + 1 : await firstRequestSince(sql, to + DISORDER_MS);
  const begin = from === null ? first : await firstRequestSince(sql, from - DISORDER_MS);
  const top = Math.min(before ?? last + 1, end);
  const floor = Math.max(begin, top - MOST_SEARCHED);
  const range: Range = { top, floor, begin };
  const ids = coin === null ? idsInRange(sql, range, filter) : idsOfCoin(sql, range, filter, coin);
  const found = (await ids).map(({ id }) => id);
  const rows = await readRows(sql, found.slice(0, PAGE));
  if (found.length > PAGE) return { rows, next: rows.at(-1)!.id, looked: null };
  if (floor <= begin) return { rows, next: null, looked: null };
  const [oldest] = await sql<{ at: Instant }[]>`
    select sent_at as at from ops.fetch where id >= ${floor} order by id limit 1`;
  const looked = { requests: top - floor, backTo: oldest!.at };
  // The search for the candles of a coin covered all requests. Only the search for requests about the coin itself did not.
  return { rows, next: coin === null ? floor : null, looked };
}

/** Numbers below `top`, from `floor` on (for the series of one coin: from `begin` on). */
type Range = { readonly top: number; readonly floor: number; readonly begin: number };
type Ids = Promise<readonly { readonly id: number }[]>;

function idsInRange(sql: Sql, { top, floor }: Range, filter: RequestFilter): Ids {
  return sql<{ id: number }[]>`
    select id from ops.fetch f where id < ${top} and id >= ${floor} ${matching(sql, filter)} order by id desc limit ${PAGE + 1}`;
}

/** Uses the index of series, however long ago the requests were sent. Requests about the coin itself have no index. */
async function idsOfCoin(sql: Sql, range: Range, filter: RequestFilter, coin: readonly string[]): Ids {
  const { top, floor, begin } = range;
  const [newest] = await sql<{ at: Instant }[]>`
    select as_of as at from ops.fetch where id < ${top} order by id desc limit 1`;
  if (newest === undefined) return [];
  return sql<{ id: number }[]>`
    select id from (
      select f.id from market.series s cross join lateral (
        select id from ops.fetch f
        where series_id = s.id and as_of <= ${newest.at + HOUR} and id < ${top} and id >= ${begin} ${matching(sql, filter)}
        order by as_of desc limit ${PAGE + UNORDERED}
      ) f where s.coin_id = any(${coin as string[]}::text[])
      union all
      select id from ops.fetch f
      where id < ${top} and id >= ${floor} and series_id is null and subject = any(${coin as string[]}::text[]) ${matching(sql, filter)}
    ) f order by id desc limit ${PAGE + 1}`;
}

function matching(sql: Sql, { outcome, endpoint, about, backfill, from, to }: RequestFilter) {
  return sql`
    ${outcome === null ? sql`` : outcome === NOT_STORED ? sql`and f.outcome <> 'stored'` : sql`and f.outcome = ${outcome}`}
    ${endpoint === null ? sql`` : sql`and f.endpoint = ${endpoint}`}
    ${about === null ? sql`` : sql`and f.series_id is null and f.subject = ${about}`}
    ${backfill === null ? sql`` : sql`and f.backfill_id = ${backfill}::bigint`}
    ${from === null ? sql`` : sql`and f.sent_at >= ${from}`}
    ${to === null ? sql`` : sql`and f.sent_at < ${to}`}`;
}

/** Null: there is no request of this number, or retention has removed it. */
export async function readRequest(sql: Sql, id: number): Promise<RequestRow | null> {
  const [row] = await readRows(sql, [id]);
  return row ?? null;
}

async function readRows(sql: Sql, ids: readonly number[]): Promise<readonly RequestRow[]> {
  if (ids.length === 0) return [];
  return sql<RequestRow[]>`
    select f.id, f.sent_at, f.as_of, f.account_id, f.endpoint, coalesce(s.coin_id, f.subject) as subject, s.interval, s.quote,
      lower(f.span) as from, upper(f.span) as to, f.backfill_id, f.attempt, f.status, f.outcome, f.message, f.duration_ms,
      f.bytes, f.rows, f.stored, f.revised, f.quarantined, encode(f.body_sha256, 'hex') as body_sha256
    from ops.fetch f left join market.series s on s.id = f.series_id
    where f.id = any(${ids as number[]}::bigint[]) order by f.id desc`;
}
