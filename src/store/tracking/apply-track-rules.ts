/**
 * Updates the tracked series according to the rules and the stored list of coins.
 *
 * A tracked series is wanted from the `since` of its rule on, without an end. (The views and the refill use only the part before now and
 * after its data began.) If no rule wants it any more (the rule was removed; the coin fell out of the top, became inactive or left
 * the list), it is wanted only up to now: it keeps its candles, Chandler requests it once or twice more until its last candles are final,
 * and then stops. If a rule wants it again, it is wanted from `since` on again, and the time in between is a gap like any other.
 */
import type { Instant } from '../../clock.ts';
import { INTERVALS, type Interval } from '../../core/interval.ts';
import type { Retention } from '../../core/settings/retention-settings.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';
import { takeLock } from '../connection/lock.ts';
import { continueHistories, findRenames, recordRenames } from '../upkeep/rename.ts';

export type AppliedTracks = {
  /** Series that the rules want now. */
  readonly series: number;
  /** The part of `series` that no rule wanted before. */
  readonly added: number;
  /** Series that no rule wants any more, from now on. */
  readonly ended: number;
  /** Ended series that are complete: they are no longer requested. */
  readonly completed: number;
  /** New renames found in the list of coins, and series that moved to a new id. */
  readonly renamed: number;
  readonly moved: number;
};

/** How long an ended series is still requested until it is complete; slots that are missing afterwards stay gaps. */
const ENDING = '30 days';

/** Until the end of the transaction, no other one applies the rules. A transaction that changes rules and applies them takes this lock first. */
export async function lockRules(tx: SqlOrTransaction): Promise<void> {
  await takeLock(tx, 'tracking rules');
}

/**
 * Safe to run at any time, by any number of processes, and idempotent. `keep` is how long candles are kept.
 */
export function applyTracks(
  sql: SqlOrTransaction,
  now: Instant,
  keep: Partial<Retention['candles']> = {},
): Promise<AppliedTracks> {
  return withFreshPlans(sql, async (tx) => {
    await lockRules(tx);
    const renamed = await recordRenames(tx, await findRenames(tx), 'coins');
    const moved = await continueHistories(tx, now);
    await resolveTargets(tx, oldestKept(now, keep));
    await wantTargets(tx);
    const added = await tx<{ isNew: boolean }[]>`
      insert into ops.tracked as tr (series_id, tier_id, tracked_at, seen_until)
      select t.series_id, t.tier_id, ${now}::timestamptz, f.seen_until
      from track_target t left join ops.tracked old on old.series_id = t.series_id
      -- A backfill may have stored an answer about the newest end before the series was tracked. Same rule as markSeen.
      left join lateral (
        select least(f.as_of, upper(f.span)) as seen_until from ops.fetch f join market.series s on s.id = f.series_id
        where f.series_id = t.series_id and f.outcome = 'stored'
          and upper(f.span) > f.as_of - 2 * least(market.width_of(s.interval), interval '1 day')
        order by f.as_of desc limit 1
      ) f on true
      where old.series_id is null or old.tier_id <> t.tier_id or old.ends_at is not null
      on conflict (series_id) do update set tier_id = excluded.tier_id, ends_at = null,
        seen_until = greatest(tr.seen_until, excluded.seen_until),
        tracked_at = case when tr.ends_at is null then tr.tracked_at else excluded.tracked_at end
      returning tracked_at = ${now} as is_new`;
    const ended = await endOthers(tx, now);
    const completed = await forgetCompleted(tx, now);
    await tx`delete from ops.tier k where not exists (select from ops.tracked tr where tr.tier_id = k.id)`;
    const [count] = await tx<{ n: number }[]>`select count(*) as n from ops.tracked where ends_at is null`;
    return {
      series: count!.n,
      added: added.filter((row) => row.isNew).length,
      ended,
      completed,
      renamed,
      moved,
    };
  });
}

/**
 * Creates missing series and tiers, and `track_target`, a temporary table of the series that the rules want. It has ids, so that Postgres
 * estimates its joins well. (For joins by coin, interval and terms, Postgres expected a few rows and looped over 50,000.)
 */
async function resolveTargets(tx: SqlOrTransaction, oldest: ReadonlyMap<Interval, Instant>): Promise<void> {
  await tx`create temporary table track_named on commit drop as select * from ops.track_target`;
  await tx`
    update track_named t set since = k.oldest
    from unnest(${[...oldest.keys()]}::text[], ${[...oldest.values()]}::timestamptz[]) as k(interval, oldest)
    where t.interval = k.interval::market.candle_interval and t.since < k.oldest`;
  await tx`analyze track_named`;
  await tx`
    insert into ops.tier (tier, priority, interval, target_age)
    select distinct t.tier, t.priority, t.interval, t.target_age from track_named t
    where not exists (select from ops.tier k where k.tier = t.tier and k.priority = t.priority
      and k.interval = t.interval and k.target_age = t.target_age)
    on conflict do nothing`;
  // In the same order as `wantSeries`, so that the two cannot deadlock.
  await tx`
    insert into market.series (coin_id, quote, interval, wanted, priority)
    select t.coin_id, t.quote, t.interval, tstzmultirange(tstzrange(t.since, null)), t.priority
    from track_named t
    where not exists (
      select from market.series s where s.coin_id = t.coin_id and s.quote = t.quote and s.interval = t.interval)
    order by 1, 2, 3
    on conflict (coin_id, quote, interval) do nothing`;
  await tx`
    create temporary table track_target on commit drop as
    select s.id as series_id, t.since, t.priority, (
        select k.id from ops.tier k where k.tier = t.tier and k.priority = t.priority and k.interval = t.interval
          and k.target_age = t.target_age) as tier_id
    from track_named t join market.series s on s.coin_id = t.coin_id and s.quote = t.quote and s.interval = t.interval`;
  await tx`analyze track_target`;
}

/** The oldest kept instant of each interval. Older candles must not be wanted; otherwise they would be fetched and removed again and again. */
function oldestKept(now: Instant, keep: Partial<Retention['candles']>): ReadonlyMap<Interval, Instant> {
  return new Map(
    INTERVALS.flatMap((interval) => {
      const kept = keep[interval] ?? null;
      return kept === null ? [] : [[interval, now - kept] as const];
    }),
  );
}

async function wantTargets(tx: SqlOrTransaction): Promise<void> {
  await tx`
    with behind as (
      select s.id, t.since, t.priority from track_target t join market.series s on s.id = t.series_id
      where not s.wanted @> tstzmultirange(tstzrange(t.since, null)) or s.priority <> t.priority
    ), locked as (
      select s.id from market.series s join behind b on b.id = s.id order by s.coin_id, s.quote, s.interval for update of s
    )
    update market.series s
    set wanted = s.wanted + tstzmultirange(tstzrange(b.since, null)), priority = b.priority
    from behind b join locked l on l.id = b.id where s.id = b.id`;
}

/** Ends the tracked series that no rule wants, at the end of the candle that is open now. The spans of backfills lie before it and stay. */
async function endOthers(tx: SqlOrTransaction, now: Instant): Promise<number> {
  const ended = await tx`
    with over as (
      select tr.series_id, date_bin(market.width_of(s.interval), ${now}::timestamptz + market.width_of(s.interval) - interval '1 microsecond', 'epoch') as ends_at
      from ops.tracked tr join market.series s on s.id = tr.series_id
      where tr.ends_at is null and not exists (select from track_target t where t.series_id = tr.series_id)
    ), locked as (
      select s.id from market.series s join over o on o.series_id = s.id order by s.coin_id, s.quote, s.interval for update of s
    ), cut as (
      update market.series s set wanted = s.wanted * tstzmultirange(tstzrange(null, o.ends_at))
      from over o join locked l on l.id = o.series_id where s.id = o.series_id returning s.id, o.ends_at
    )
    -- Locks the series first, in the same order as the transaction that stores an answer.
    update ops.tracked tr set ends_at = cut.ends_at from cut where tr.series_id = cut.id
    returning tr.series_id`;
  return ended.length;
}

async function forgetCompleted(tx: SqlOrTransaction, now: Instant): Promise<number> {
  // Deletes series that were never requested (for example, tracked by mistake), unless a backfill may want them. (An old backfill of a command
  // has no list of coins, so any backfill with the same interval and quote keeps the series.)
  const untouched = await tx`
    with untouched as (
      select tr.series_id from ops.tracked tr join market.series s on s.id = tr.series_id
      where tr.ends_at is not null and tr.asked_at is null and s.covered = '{}'
        and not exists (select from ops.fetch f where f.series_id = s.id)
        and not exists (select from ops.backfill b where b.interval = s.interval and b.quote = s.quote)
        and not exists (select from ops.second_opinion p where p.series_id = s.id)
        and not exists (select from market.refusal r where r.series_id = s.id)
        and not exists (select from ops.stored(s.id, s.interval))
    ), gone as (
      delete from ops.tracked where series_id in (select series_id from untouched)
    )
    delete from market.series where id in (select series_id from untouched) returning id`;
  const complete = await tx`
    delete from ops.tracked tr using market.series s join market.coin c on c.id = s.coin_id
    where s.id = tr.series_id and tr.ends_at is not null and (
      tr.ends_at < ${now}::timestamptz - ${ENDING}::interval
      or isempty(s.wanted * tstzmultirange(
        tstzrange(date_bin(market.width_of(s.interval), c.first_data_at, 'epoch'), null)) - s.covered))
    returning tr.series_id`;
  return untouched.length + complete.length;
}
