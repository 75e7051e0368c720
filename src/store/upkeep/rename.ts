/**
 * Keeps one history for coins that got a new id from the upstream.
 *
 * The series itself moves to the new id. Its number stays, and with it candles, coverage and revisions, so every view shows one history
 * without extra cost. If both ids have answers already, each keeps its own: the upstream has the whole history under the new id, so nothing
 * is lost, and two sets of answers are never mixed. Series that were imported from elsewhere move in the same way.
 */
import type { Instant } from '../../clock.ts';
import { type MovedSeries, renameCoins } from '../backfill/backfill-coins.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { IMPORT_LOCK } from '../imported/imported-series.ts';

export type Rename = {
  readonly oldId: string;
  readonly newId: string;
  readonly at: Instant;
  /** The upstream's id for the currency, if the source contains it. */
  readonly currencyId?: string;
  /** The as-of instant of the source; default: `at`. */
  readonly seenAt?: Instant;
};
type RenameSource = 'coins' | 'changelog';

/** Saves new renames; of several about the same ids, the latest counts. Resolves to the number of new ones. */
export async function recordRenames(
  sql: SqlOrTransaction,
  renames: readonly Rename[],
  source: RenameSource,
): Promise<number> {
  let news = 0;
  // In order of time, because a coin may be renamed twice, and back.
  for (const { oldId, newId, at, currencyId, seenAt } of [...renames]
    .filter((r) => r.oldId !== r.newId)
    .sort((a, b) => a.at - b.at)) {
    const rows = await sql`
      with news as (
        select where not exists (
          select from market.coin_rename
          where old_id in (${oldId}, ${newId}) and renamed_at >= ${at})
      ), back as (
        -- An id that is in use again is not an old id.
        delete from market.coin_rename where old_id = ${newId} and exists (select from news)
      )
      insert into market.coin_rename (old_id, new_id, renamed_at, source, currency_id, seen_at)
      select ${oldId}, ${newId}, ${at}::timestamptz, ${source}, ${currencyId ?? null},
        ${seenAt ?? at}::timestamptz from news
      on conflict (old_id) do update
      set new_id = excluded.new_id, renamed_at = excluded.renamed_at, source = excluded.source,
        currency_id = excluded.currency_id, seen_at = excluded.seen_at
      returning 1`;
    news += rows.length;
  }
  return news;
}

/**
 * Finds renames in the list of coins: a coin with a series or a rule became inactive or left the list, and a coin with the same name and
 * symbol appeared in the list afterwards (if the old one became inactive: at most a week before or after that). There must be exactly one
 * coin of each, and their data must not be known to begin on different days.
 */
export async function findRenames(sql: SqlOrTransaction): Promise<Rename[]> {
  return sql<Rename[]>`
    with seen as (select max(last_seen_at) as newest, min(first_seen_at) as oldest from market.coin),
    left_coin as (
      select c.id, c.name, c.symbol, c.first_data_at, c.first_seen_at, c.last_seen_at, gone.at, c.is_active
      from market.coin c cross join seen
      cross join lateral (
        select case when c.is_active then c.last_seen_at else (
          select max(h.seen_at) from market.coin_change h
          where h.coin_id = c.id and h.field = 'is_active' and h.new_value = 'false') end as at
      ) gone
      where (not c.is_active or c.last_seen_at < seen.newest) and gone.at is not null
        and (exists (select from market.series s where s.coin_id = c.id) or exists (select from ops.track t where t.coin_id = c.id))
        and not exists (select from market.coin_rename r where r.old_id = c.id)
    ), pair as (
      select o.id as old_id, n.id as new_id, n.first_seen_at as at
      from left_coin o join market.coin n on n.symbol = o.symbol and n.name = o.name and n.id <> o.id and n.is_active
      cross join seen
      where n.last_seen_at = seen.newest and n.first_seen_at > seen.oldest and n.first_seen_at > o.first_seen_at
        and case when o.is_active then n.first_seen_at > o.at
          else n.first_seen_at between o.at - interval '7 days' and o.at + interval '7 days' end
        and (o.first_data_at is null or n.first_data_at is null
          or o.first_data_at between n.first_data_at - interval '1 day' and n.first_data_at + interval '1 day')
    )
    select old_id, new_id, at
    from pair p
    where (select count(*) from pair where old_id = p.old_id) = 1 and (select count(*) from pair where new_id = p.new_id) = 1
    order by old_id`;
}

/** The present ids of coins that have another id now, by the given ids. */
export async function presentIdsOf(
  sql: SqlOrTransaction,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await sql<{ oldId: string; newId: string }[]>`
    with ${successors(sql)} select old_id, new_id from successor where old_id = any(${ids as string[]}::text[]) and new_id <> old_id`;
  return new Map(rows.map(({ oldId, newId }) => [oldId, newId]));
}

/**
 * The instant from which changes of ids may be new to us: the latest change from the changelog or, if there is none, when the first coin
 * was seen. Null when no coin was ever seen.
 */
export async function renamesReadUntil(sql: SqlOrTransaction): Promise<Instant | null> {
  const [row] = await sql<{ at: number | null }[]>`
    select coalesce((select max(renamed_at) from market.coin_rename where source = 'changelog'),
      (select min(first_seen_at) from market.coin)) as at`;
  return row!.at;
}

/**
 * Moves series, rules and backfills from old ids to the new ids that the catalogue contains. Resolves to the number of moved series. A series
 * with evidence gets a step 'renamed' with both ids, because its first step is chained to the old id.
 */
export async function continueHistories(sql: SqlOrTransaction, now: Instant): Promise<number> {
  // The first answer about a new id may be in a transaction now. This statement waits for it; the next one sees what it committed.
  await sql`
    with ${successors(sql)}
    select from successor f
    join market.series o on o.coin_id = f.old_id
    join market.series n on n.coin_id = f.new_id and n.quote = o.quote and n.interval = o.interval
    where n.steps = 0 order by n.id for update of n`;
  // Series of the new id without any answer are deleted; their wanted spans move to the series of the old id.
  await sql`
    with ${successors(sql)}, blank as (
      select n.id, o.id as heir, n.wanted from successor f
      join market.series o on o.coin_id = f.old_id
      join market.series n on n.coin_id = f.new_id and n.quote = o.quote and n.interval = o.interval
      where ${isBlank(sql)}
    ), heirs as (
      update market.series s set wanted = s.wanted + b.wanted from blank b where s.id = b.heir
    ), gone_tracked as (
      delete from ops.tracked where series_id in (select id from blank)
    ), gone_pending as (
      delete from ops.second_opinion where series_id in (select id from blank)
    ), gone_refusals as (
      delete from market.refusal where series_id in (select id from blank)
    )
    delete from market.series where id in (select id from blank)`;
  const moved = await sql<(MovedSeries & { readonly id: number })[]>`
    with ${successors(sql)}, nearest as materialized (
      -- When one coin has several former ids, each with its own history, the last one is continued.
      select distinct on (f.new_id, s.quote, s.interval) s.id, f.old_id, f.new_id from successor f
      join market.series s on s.coin_id = f.old_id
      where not exists (
        select from market.series n where n.coin_id = f.new_id and n.quote = s.quote and n.interval = s.interval)
      order by f.new_id, s.quote, s.interval, f.hops, s.id
    ), moving as materialized (
      select s.id, m.old_id, m.new_id, s.coin_id || ' ' || m.new_id as ids, s.steps > 0 as has_evidence
      from nearest m join market.series s on s.id = m.id
      order by s.id for update of s
    ), step as materialized (
      select id, old_id, new_id, case when has_evidence
        then ops.add_evidence(id, 'renamed', '{}', ${now}::timestamptz, ${now}::timestamptz, 0, 0, 0, null, null, ids) end as link
      from moving
    )
    update market.series s
    set coin_id = step.new_id, steps = s.steps + (step.link is not null)::integer, link = coalesce(step.link, s.link)
    from step where s.id = step.id
    returning s.id, step.old_id, step.new_id, s.interval, s.quote`;
  // Slots that answers about the old id did not contain are no evidence about the new id: upstream answers with an empty list for an old id.
  // Empty instead of null: verify must still know that these requests may be kept longer than those around them.
  if (moved.length > 0) {
    await sql`
      update ops.fetch set unconfirmed_slots = '{}'
      where series_id = any(${moved.map(({ id }) => id)}::int[]) and unconfirmed_slots is not null`;
  }
  await renameCoins(sql, moved);
  await continueImported(sql);
  await sql`
    with ${successors(sql)}
    update ops.track t set coin_id = m.new_id
    from (
      select distinct on (f.new_id, t.quote, t.interval) f.old_id, f.new_id, t.quote, t.interval from successor f
      join ops.track t on t.coin_id = f.old_id
      where not exists (
        select from ops.track n where n.coin_id = f.new_id and n.quote = t.quote and n.interval = t.interval)
      order by f.new_id, t.quote, t.interval, f.hops
    ) m where t.coin_id = m.old_id and t.quote = m.quote and t.interval = m.interval`;
  await sql`with ${successors(sql)} delete from ops.track t using successor f where t.coin_id = f.old_id`;
  return moved.length;
}

/** Moves imported series. During an import, which may add the same series under the new id, nothing moves; the next call does it. */
async function continueImported(sql: SqlOrTransaction): Promise<void> {
  const rows = await sql<{ id: number; newId: string }[]>`
    with ${successors(sql)}
    select distinct on (i.source, f.new_id, i.quote, i.interval) i.id, f.new_id
    from successor f join market.imported_series i on i.coin_id = f.old_id
    where not exists (
      select from market.imported_series n
      where n.source = i.source and n.coin_id = f.new_id and n.quote = i.quote and n.interval = i.interval)
    order by i.source, f.new_id, i.quote, i.interval, f.hops, i.id`;
  if (rows.length === 0) return;
  await sql`
    with free as materialized (select from ops.lock where name = ${IMPORT_LOCK} for update skip locked)
    update market.imported_series i set coin_id = m.new_id
    from unnest(${rows.map(({ id }) => id)}::int[], ${rows.map(({ newId }) => newId)}::text[]) m (id, new_id)
    where i.id = m.id and exists (select from free)`;
}

/** For each old id, the last of its successors that the catalogue contains. */
function successors(sql: SqlOrTransaction) {
  return sql`successor as (
    with recursive step as (
      -- An id that upstream has given to a new coin belongs to that coin.
      select r.old_id, r.new_id, 1 as hops from market.coin_rename r
      where not exists (select from market.coin c where c.id = r.old_id and c.is_active and c.last_seen_at > r.renamed_at)
      union all
      select s.old_id, r.new_id, s.hops + 1 from step s join market.coin_rename r on r.old_id = s.new_id where s.hops < 20
    )
    select distinct on (old_id) old_id, new_id, hops from step where exists (select from market.coin c where c.id = new_id)
    order by old_id, hops desc
  )`;
}

/** An SQL condition: no answer about the series was ever stored, not even one of which only evidence or old values are left. */
function isBlank(sql: SqlOrTransaction) {
  return sql`n.covered = '{}' and n.steps = 0
    and not exists (select from ops.stored(n.id, n.interval))
    and not exists (select from market.evidence e where e.series_id = n.id)
    and not exists (select from market.revision r where r.series_id = n.id)`;
}
