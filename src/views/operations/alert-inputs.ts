/** What an operator may have to be told of, as the tables show it: cheap enough to be read every half minute. */
import type { Instant } from '../../clock.ts';
import type { Interval } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';

export type MetWall = {
  readonly interval: Interval;
  /** How far back from now the plan sees; null when it does not see the interval at all. */
  readonly depthMs: number | null;
  /** What upstream said. */
  readonly message: string;
};

export type Concerns = {
  /** Met under `plan` since `wallsSince`. */
  readonly walls: readonly MetWall[];
  /** More final candles than `revisionsADay` were changed by upstream since `daySince`. */
  readonly isRevisedOften: boolean;
  /** Rows set aside after the one numbered `quarantineAfter`, and what is wrong with most of them; null when there are none. */
  readonly quarantined: { readonly rows: number; readonly upto: number; readonly reasons: readonly string[] } | null;
  /** When candles were last answered, or refused for good: null when never. */
  readonly candlesAt: Instant | null;
  /** Why the last request did not bring what it was for; null when it did. */
  readonly lastFailure: string | null;
  /** Backfills of the service that are neither over nor paused. */
  readonly backfills: number;
  /** Tracked series whose turn it is. */
  readonly turns: number;
  /** The last tick of each schedule that was done. */
  readonly doneTicks: ReadonlyMap<string, Instant>;
};

export type ConcernsQuery = {
  readonly plan: string;
  readonly schedules: readonly string[];
  readonly wallsSince: Instant;
  readonly daySince: Instant;
  readonly revisionsADay: number;
  /** Null: those seen since `daySince`. */
  readonly quarantineAfter: number | null;
};

/** Requests that bring nothing are looked through no further than this. */
const LOOK_BACK = 20_000;
const MOST_REASONS = 3;
/** Enough to say that they are many. */
const MOST_ROWS = 10_000;

export async function readConcerns(sql: Sql, query: ConcernsQuery): Promise<Concerns> {
  const { plan, wallsSince, daySince, revisionsADay, quarantineAfter } = query;
  // One after the other, on one connection: nobody waits for the answer.
  const walls = await sql<MetWall[]>`
    select interval, (extract(epoch from depth) * 1000)::float8 as depth_ms, message from market.refusal
    where account_plan = ${plan} and series_id is null and refused_at > ${wallsSince} order by interval`;
  const revised = await sql`
    select from (select seen_at from market.revision order by id desc offset ${revisionsADay} limit 1) r
    where seen_at > ${daySince}`;
  const [set] = await sql<{ rows: number; upto: number | null; reasons: string[] | null }[]>`
    with news as materialized (
      select id, reason from market.quarantine
      where id > coalesce(${quarantineAfter}::bigint, (
        select id from market.quarantine where seen_at <= ${daySince} order by id desc limit 1), 0)
      order by id desc limit ${MOST_ROWS}
    )
    select (select count(*) from news)::int as rows, (select max(id) from news) as upto, (select array_agg(reason) from (
      select reason from news group by reason order by count(*) desc, reason limit ${MOST_REASONS}) r) as reasons`;
  const [candles] = await sql<{ at: Instant | null }[]>`
    select (
      select sent_at from ops.fetch where id > (select max(id) from ops.fetch) - ${LOOK_BACK} and series_id is not null
        and outcome not in ('unavailable', 'limited', 'malformed') order by id desc limit 1) as at`;
  const [last] = await sql<{ outcome: string; message: string | null }[]>`
    select outcome, message from ops.fetch order by id desc limit 1`;
  const [work] = await sql<{ backfills: number; turns: number }[]>`
    select (select count(*) from ops.backfill where is_detached and state in ('queued', 'running'))::int as backfills,
      (select count(*) from ops.tracked where queued_at is not null)::int as turns`;
  const done = await sql<{ schedule: string; tick: Instant }[]>`
    select r.schedule, r.tick from unnest(${query.schedules as string[]}::text[]) s(name)
    cross join lateral (
      select schedule, tick from ops.schedule_run where schedule = s.name and state = 'done' order by id desc limit 1
    ) r`;
  return {
    walls,
    isRevisedOften: revised.length > 0,
    quarantined: set!.upto === null ? null : { rows: set!.rows, upto: set!.upto, reasons: set!.reasons ?? [] },
    candlesAt: candles!.at,
    lastFailure: last === undefined || last.outcome === 'stored' ? null : last.message,
    ...work!,
    doneTicks: new Map(done.map(({ schedule, tick }) => [schedule, tick])),
  };
}
