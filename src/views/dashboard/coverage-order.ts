/**
 * Selects and orders the series of the coverage map. One statement reads all of them with multirange arithmetic, and returns only their ids. Pages
 * of the map are cut from that list, which is cached for some seconds.
 */
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type { Clock, Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import { TIERS } from '../../core/tier.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type GapReason, isRefusal } from '../operations/gaps.ts';
import { confirmedEmptySlots } from './confirmed-empty.ts';

export const COVERAGE_SORTS = ['rank', 'name', 'worst'] as const;
type CoverageSort = (typeof COVERAGE_SORTS)[number];

/** The reasons of `market.gaps`, and final slots without a candle, by how many answers reported this. */
export type CoverageReason = GapReason | Empty;
type Empty = 'told once' | 'told twice';

function isEmpty(reason: CoverageReason | undefined): reason is Empty {
  return reason === 'told once' || reason === 'told twice';
}

/** An absent field does not filter. */
export type CoverageFilter = {
  /** `worst`: the series that miss the longest time first. Slots that are too young to be final do not count. */
  readonly sort: CoverageSort;
  /** Series of named coins first, then of the top coins, then of all coins, then those that no rule tracks. */
  readonly byTier: boolean;
  /** Only series that have this reason somewhere. */
  readonly reason?: CoverageReason | undefined;
  readonly interval?: Interval | undefined;
  readonly quote?: Quote | undefined;
  /** A part of the id, the name or the symbol of the coin, in any case. */
  readonly coin?: string | undefined;
};

/** The ids of the series that match, in order. */
async function readCoverageOrder(sql: Sql, filter: CoverageFilter): Promise<Int32Array> {
  const { sort, byTier, reason, interval, quote, coin } = filter;
  const looksInside = sort === 'worst' || (reason !== undefined && !isEmpty(reason));
  const tiers = sql`array_position(${TIERS as readonly string[] as string[]}::text[], k.tier)`;
  const [row] = await sql<{ ids: string | null }[]>`
    with coins as materialized (
      select id, first_data_at as began, row_number() over (order by ${
        sort === 'name' ? sql`lower(name), id` : sql`nullif(rank, 0) nulls last, id`
      }) as place
      from market.coin
      where ${coin === undefined ? sql`true` : sql`(position(lower(${coin}) in lower(id)) > 0 or position(lower(${coin}) in lower(name)) > 0 or position(lower(${coin}) in lower(symbol)) > 0)`}
    ), widths as materialized (
      select i as interval, ops.seconds_of(i) as width, ops.settled_until(i) as settled_until
      from unnest(enum_range(null::market.candle_interval)) i
    ) ${reason === undefined ? sql`` : reasonTables(sql, reason)}
    select string_agg(id::text, ',' order by ${byTier ? sql`tier nulls last,` : sql``} ${
      sort === 'worst' ? sql`missing desc, place` : sql`place`
    }, interval desc, quote desc) as ids
    from (
      select s.id, s.interval, s.quote, c.place
        ${byTier ? sql`, ${tiers} as tier` : sql``}
        ${sort === 'worst' ? sql`, ${missingTime(sql)} as missing` : sql``}
      from market.series s join coins c on c.id = s.coin_id join widths w on w.interval = s.interval
      ${byTier ? sql`left join ops.tracked t on t.series_id = s.id left join ops.tier k on k.id = t.tier_id` : sql``}
      ${looksInside ? missingOf(sql, reason) : sql``}
      ${reason === undefined ? sql`` : reasonJoins(sql, reason)}
      where true
        ${interval === undefined ? sql`` : sql`and s.interval = ${interval}::market.candle_interval`}
        ${quote === undefined ? sql`` : sql`and s.quote = ${quote}`}
        ${reason === undefined ? sql`` : sql`and ${hasReason(sql, reason)}`}
      -- Before sorting: otherwise Postgres would carry the multiranges through the sort.
      offset 0
    ) x`;
  return row!.ids === null ? new Int32Array() : Int32Array.from(row!.ids.split(','), Number);
}

/** The missing spans, as in `ops.series_now`. For the order alone, the first slot counts from the start of the data, not from its opening. */
function missingOf(sql: Sql, reason: CoverageReason | undefined) {
  const began =
    reason === undefined ? sql`c.began` : sql`to_timestamp(floor(date_part('epoch', c.began) / w.width) * w.width)`;
  return sql`cross join lateral (
    select s.wanted * tstzmultirange(tstzrange(b.began, greatest(now(), b.began))) - s.covered as missing
    from (select ${began} as began offset 0) b
    offset 0
  ) m`;
}

/** The missing time in seconds. Only the last span can have an end that is too young to be final. */
function missingTime(sql: Sql) {
  return sql`coalesce((select sum(date_part('epoch', least(upper(r), w.settled_until) - lower(r)))
    from unnest(m.missing) r where lower(r) < w.settled_until), 0)`;
}

/** Does the look-ups of `market.gaps` for all series at once. The comments of that view say which reason counts where several overlap. */
function reasonTables(sql: Sql, reason: CoverageReason) {
  if (isEmpty(reason)) return sql``;
  return sql`, own as materialized (
    select series_id, range_agg(spans) as spans, range_agg(spans - earlier) filter (where reason = ${reason}) as mine
    from (
      select series_id, reason, tstzmultirange(span) as spans, coalesce(range_agg(span) over (partition by series_id
        order by id desc rows between unbounded preceding and 1 preceding), '{}') as earlier
      from market.refusal where series_id is not null and account_plan = (select plan from ops.account where is_current)
    ) r group by series_id
  ), limits as materialized (
    select r.interval, r.reason = ${reason} as is_mine, tstzmultirange(case when r.depth is null then '(,)'
      else tstzrange(null, to_timestamp(ceil(date_part('epoch', now() - r.depth) / w.width) * w.width)) end) as spans
    from market.refusal r join widths w on w.interval = r.interval
    where r.series_id is null and r.account_plan = (select plan from ops.account where is_current)
  ), waiting as materialized (
    select series_id, range_agg(spans) as spans, range_agg(spans - earlier) filter (where claim = ${reason}) as mine
    from (
      select series_id, claim, tstzmultirange(span) as spans, coalesce(range_agg(span) over (partition by series_id
        order by requested_at desc, span rows between unbounded preceding and 1 preceding), '{}') as earlier
      from ops.second_opinion where series_id is not null
    ) o group by series_id
  )`;
}

function reasonJoins(sql: Sql, reason: CoverageReason) {
  if (isEmpty(reason)) return sql``;
  return sql`left join own on own.series_id = s.id left join limits on limits.interval = s.interval
    left join waiting on waiting.series_id = s.id`;
}

function hasReason(sql: Sql, reason: CoverageReason) {
  if (reason === 'told once') return sql`not isempty(s.empty_once)`;
  if (reason === 'told twice') return sql`${confirmedEmptySlots(sql, sql`w.width`)} > 0`;
  const none = sql`'{}'::tstzmultirange`;
  const allRefused = sql`(coalesce(own.spans, ${none}) + coalesce(limits.spans, ${none}))`;
  const spans =
    reason === 'not asked yet'
      ? sql`m.missing - coalesce(waiting.spans, ${none}) - ${allRefused}`
      : isRefusal(reason)
        ? sql`m.missing * (coalesce(own.mine, ${none})
            + case when limits.is_mine then limits.spans - coalesce(own.spans, ${none}) else ${none} end)`
        : sql`m.missing * coalesce(waiting.mine, ${none}) - ${allRefused}`;
  return sql`exists (select from unnest(${spans}) r
    where ceil(date_part('epoch', upper(r)) / w.width) > ceil(date_part('epoch', lower(r)) / w.width))`;
}

export type CoverageOrders = { readonly of: (filter: CoverageFilter) => Promise<Int32Array> };

/** Number of filters whose order is cached: 200 kB each with 50,000 series. */
const KEPT_ORDERS = 16;
/** More would delay all other pages: each keeps the database busy, and the pages share few connections. */
const MOST_AT_ONCE = 2;
const KEPT_AT_LEAST_MS = 5_000;
/** Maximum part of the time for which ordering keeps the database busy, while somebody turns the pages of a map. */
const ORDERING_SHARE = 0.05;

/** A list that is older than this is not shown while a new one is made. */
const SHOWN_AT_MOST_MS = 60_000;

type Kept = { readonly version: string; readonly at: Instant; tookMs: number; readonly ids: Promise<Int32Array> };

/**
 * The order for a filter, at most a minute old. It stays while somebody turns its pages, and is made anew in the background. Added series, and new
 * names and ranks of coins, appear at once. An order that depends only on these stays until they change.
 */
export function createCoverageOrders(sql: Sql, clock: Clock): CoverageOrders {
  const kept = new LRUCache<string, Kept>({ max: KEPT_ORDERS });
  const turns = pLimit(MOST_AT_ONCE);
  const isRenewing = new Set<string>();
  const make = async (key: string, filter: CoverageFilter, version: string): Promise<Int32Array> => {
    let began = clock.now();
    const ids = turns(() => {
      began = clock.now();
      return readCoverageOrder(sql, filter);
    });
    const mine: Kept = { version, at: began, tookMs: 0, ids };
    // Calls that come during the first reading wait for it, too.
    if (kept.get(key)?.version !== version) kept.set(key, mine);
    try {
      await ids;
      mine.tookMs = clock.now() - began;
      kept.set(key, mine);
      return ids;
    } catch (error) {
      // The next call queries the database again, and gets its error.
      kept.delete(key);
      throw error;
    }
  };
  return {
    async of(filter) {
      // Only Latin letters: how Postgres lower-cases others depends on its locale.
      const coin = filter.coin?.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
      const key = JSON.stringify({ ...filter, coin });
      const version = await readOrderVersion(sql);
      const last = kept.get(key);
      const age = last === undefined ? 0 : clock.now() - last.at;
      if (last?.version !== version || age < 0) return make(key, filter, version);
      if (!changesByItself(filter) || age < Math.max(KEPT_AT_LEAST_MS, last.tookMs / ORDERING_SHARE)) return last.ids;
      if (age > SHOWN_AT_MOST_MS) return make(key, filter, version);
      if (!isRenewing.has(key)) {
        isRenewing.add(key);
        const done = () => isRenewing.delete(key);
        make(key, filter, version).then(done, done);
      }
      return last.ids;
    },
  };
}

/** Whether the order changes with the stored data, or with what is tracked. */
function changesByItself({ sort, byTier, reason }: CoverageFilter): boolean {
  return sort === 'worst' || byTier || reason !== undefined;
}

/** Changes when series were added, when tracking was planned anew, or when coins changed. Index look-ups only. */
async function readOrderVersion(sql: Sql): Promise<string> {
  const [row] = await sql<{ version: string }[]>`
    select concat_ws(' ', (select max(id) from market.series), (select version from ops.version where topic = 'coin'),
      (select max(planned_at) from ops.tier)) as version`;
  return row!.version;
}
