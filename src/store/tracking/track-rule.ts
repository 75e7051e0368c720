/** The rules for the series to keep fresh: named coins, the best-ranked N, or all, each with interval, quote, since, priority and target age. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import type { track } from '../schema/tracking.ts';

/** The coins of a rule. */
export type TrackedCoins =
  | { readonly tier: 'list'; readonly coinId: string }
  | { readonly tier: 'top'; readonly top: number }
  | { readonly tier: 'all' };

export type SavedRule = Readonly<Omit<typeof track.$inferSelect, 'targetAge'>> & { readonly targetAgeMs: number };
type Terms = Pick<SavedRule, 'interval' | 'quote' | 'since' | 'priority' | 'targetAgeMs'>;
export type TrackRule = TrackedCoins & Terms;

/** Saves rules. An existing rule for the same coins, interval and quote gets the new terms and the new time of creation. */
export async function addTracks(sql: SqlOrTransaction, rules: readonly TrackRule[], now: Instant): Promise<void> {
  const keyOf = (r: TrackRule) => [r.tier, coinOf(r), topOf(r), r.interval, r.quote].join();
  const once = [...new Map(rules.map((rule) => [keyOf(rule), rule])).values()];
  if (once.length === 0) return;
  await sql`
    insert into ops.track (tier, coin_id, top, interval, quote, since, priority, target_age, created_at)
    select tier, coin_id, top, interval::market.candle_interval, quote, since, priority, make_interval(secs => age), ${now}
    from unnest(${once.map((r) => r.tier)}::text[], ${once.map(coinOf)}::text[], ${once.map(topOf)}::int[],
        ${once.map((r) => r.interval)}::text[], ${once.map((r) => r.quote)}::text[],
        ${once.map((r) => r.since)}::timestamptz[], ${once.map((r) => r.priority)}::int[],
        ${once.map((r) => String(r.targetAgeMs / 1000))}::float8[])
      as r(tier, coin_id, top, interval, quote, since, priority, age)
    on conflict (tier, coin_id, top, interval, quote) do update
    set since = excluded.since, priority = excluded.priority, target_age = excluded.target_age, created_at = excluded.created_at`;
}

export type RuleFilter = {
  /** Undefined means any coins. */
  readonly coins?: readonly TrackedCoins[] | undefined;
  /** Undefined means any interval. */
  readonly intervals?: readonly Interval[] | undefined;
  readonly quote?: Quote | undefined;
};

/** Resolves to the removed rules. The candles stay; `applyTracks` then ends the series that no rule wants any more. */
export async function removeTracks(sql: SqlOrTransaction, filter: RuleFilter): Promise<SavedRule[]> {
  return sql<SavedRule[]>`delete from ops.track t where ${matching(sql, filter)} returning ${columns(sql)}`;
}

/** The rules: first for named coins, then for the top, then for all coins. */
export async function readTracks(sql: SqlOrTransaction, filter: RuleFilter = {}): Promise<SavedRule[]> {
  return sql<SavedRule[]>`
    select ${columns(sql)} from ops.track t where ${matching(sql, filter)}
    order by t.tier = 'all', t.tier = 'top', t.top, t.interval desc, t.quote desc, t.priority desc, t.coin_id`;
}

export type RuleTarget = Pick<SavedRule, 'interval' | 'quote' | 'since'> & { readonly coinIds: readonly string[] };

/** The series that these rules want from their own `since` on, because no other rule wants them earlier. */
export async function readRuleTargets(sql: SqlOrTransaction, rules: readonly TrackRule[]): Promise<RuleTarget[]> {
  return sql<RuleTarget[]>`
    select t.interval, t.quote, t.since, array_agg(t.coin_id order by t.coin_id) as coin_ids from ops.track_target t
    where exists (
      select from unnest(${rules.map(coinOf)}::text[], ${rules.map((r) => r.interval)}::text[],
          ${rules.map((r) => r.quote)}::text[], ${rules.map((r) => r.since)}::timestamptz[]) as r(coin_id, interval, quote, since)
      where r.interval = t.interval::text and r.quote = t.quote and r.since = t.since and coalesce(r.coin_id = t.coin_id, true))
    group by t.interval, t.quote, t.since order by t.interval desc, t.quote, t.since`;
}

/** The number of series of these coins that rules want now. */
export async function countTracked(sql: SqlOrTransaction, coinIds: readonly string[]): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*) as n from ops.track_target where coin_id = any(${coinIds as string[]}::text[])`;
  return row!.n;
}

function matching(sql: SqlOrTransaction, { coins, intervals, quote }: RuleFilter) {
  return sql`true
    ${intervals === undefined ? sql`` : sql`and t.interval::text = any(${intervals as string[]}::text[])`}
    ${quote === undefined ? sql`` : sql`and t.quote = ${quote}`}
    ${
      coins === undefined
        ? sql``
        : sql`and exists (
            select from unnest(${coins.map((c) => c.tier)}::text[], ${coins.map(coinOf)}::text[], ${coins.map(topOf)}::int[])
              as c(tier, coin_id, top)
            where c.tier = t.tier and c.coin_id is not distinct from t.coin_id and c.top is not distinct from t.top)`
    }`;
}

function columns(sql: SqlOrTransaction) {
  return sql`t.id, t.tier, t.coin_id, t.top, t.interval, t.quote, t.priority, t.since,
    (extract(epoch from t.target_age) * 1000)::float8 as target_age_ms, t.created_at`;
}

function coinOf(coins: TrackedCoins): string | null {
  return coins.tier === 'list' ? coins.coinId : null;
}

function topOf(coins: TrackedCoins): number | null {
  return coins.tier === 'top' ? coins.top : null;
}
