/** A coin and its series for the dashboard: what is stored, what is missing, and how fresh it is kept. It counts no rows. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { Tier } from '../../core/tier.ts';
import type { Sql } from '../../store/connection/connect.ts';

export type CoinFacts = {
  readonly id: string;
  readonly name: string;
  readonly symbol: string;
  /** 0: the coin has no rank. */
  readonly rank: number;
  readonly isActive: boolean;
  /** The start of the upstream's data; null: the upstream has not sent it. */
  readonly firstDataAt: Instant | null;
  readonly lastSeenAt: Instant;
  /** When the upstream gave the coin this id instead of the requested one; null: the requested id is the current one. */
  readonly renamedAt: Instant | null;
};

/** Finds a coin by its id, or by an id that it had before. Null: no coin has or had this id. */
export async function readCoinFacts(sql: Sql, id: string): Promise<CoinFacts | null> {
  const [row] = await sql<CoinFacts[]>`
    select c.id, c.name, c.symbol, c.rank, c.is_active, c.first_data_at, c.last_seen_at,
      case when c.id <> ${id} then (select r.renamed_at from market.coin_rename r where r.old_id = ${id}) end as renamed_at
    from market.coin c
    where c.id = (select market.coin_of(given.id) from (
      select c.id from market.coin c where c.id = ${id}
      union select r.old_id from market.coin_rename r where r.old_id = ${id} and exists (select from market.coin c where c.id = r.new_id)) given)`;
  return row ?? null;
}

export type SeriesFacts = {
  readonly id: number;
  readonly interval: Interval;
  readonly quote: Quote;
  /** Number of final rows. */
  readonly candles: number;
  /** The start of the stretch that is wanted or stored; null: there is none. */
  readonly from: Instant | null;
  /** Infinite while the series is tracked up to now. */
  readonly to: Instant | null;
  /** The first final slot; null: there is none. */
  readonly finalFrom: Instant | null;
  /** Slots that open before this have a final answer, if they have one. */
  readonly settledUntil: Instant;
  /** Number of wanted slots that are not final, including those that are too young. */
  readonly missing: number;
  readonly unsettled: number;
  readonly firstMissingAt: Instant | null;
  readonly lastMissingAt: Instant | null;
  /** The rule that keeps it fresh; null: there is none, or the series is only being completed. */
  readonly tier: Tier | null;
  readonly targetAgeMs: number | null;
  readonly achievableAgeMs: number | null;
  /** Until when the series has everything that the upstream had; null: unknown. */
  readonly seenUntil: Instant | null;
  /** Whether a rule of `chandler track` names this coin with this interval and quote. */
  readonly isNamed: boolean;
};

/** Candles first, and the widest interval first. */
export async function readSeriesFacts(sql: Sql, coinId: string): Promise<SeriesFacts[]> {
  return sql<SeriesFacts[]>`
    select s.id, s.interval, s.quote, s.candles, lower(kept.slots) as from,
      case when upper_inf(kept.slots) then 'infinity' else upper(kept.slots) end as to,
      lower(s.covered) as final_from, w.settled_until,
      n.missing, n.unsettled, lower(w.missing) as first_missing_at, upper(w.missing) as last_missing_at,
      case when tr.ends_at is null then k.tier end as tier,
      (extract(epoch from k.target_age) * 1000)::float8 as target_age_ms,
      (extract(epoch from k.achievable_age) * 1000)::float8 as achievable_age_ms, tr.seen_until,
      exists (select from ops.track t where t.tier = 'list' and t.coin_id = s.coin_id and t.interval = s.interval and t.quote = s.quote) as is_named
    from market.series s
    join ops.series_now w on w.id = s.id
    cross join lateral (select s.wanted + s.covered as slots) kept
    cross join lateral (
      select coalesce(sum(ceil(date_part('epoch', upper(r)) / w.width) - ceil(date_part('epoch', lower(r)) / w.width)), 0)::float8 as missing,
        coalesce(sum(greatest(0, ceil(date_part('epoch', upper(r)) / w.width)
          - ceil(date_part('epoch', greatest(lower(r), w.settled_until)) / w.width))), 0)::float8 as unsettled
      from unnest(w.missing) r) n
    left join ops.tracked tr on tr.series_id = s.id
    left join ops.tier k on k.id = tr.tier_id
    where s.coin_id = ${coinId}
    order by s.interval > '24h', s.interval desc, s.quote desc`;
}
