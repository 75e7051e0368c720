/** What verify compares beside the series: rows that belong to no series, requests that are gone, claims that no rule makes, rollups. */
import type { Instant } from '../../clock.ts';
import { DAY, INTERVAL_MS, INTERVALS } from '../../core/interval.ts';
import { RULES, type Rule } from '../../core/second-opinion.ts';
import { coarseCandle } from '../../store/candle/coarse-candle.ts';
import { isRolledUp } from '../../store/candle/rollup.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { wrongRevisions } from './revision-records.ts';

/** All differences, one sentence each. Reads every candle once more, without hashing it. */
export async function verifyWarehouse(sql: Sql): Promise<string[]> {
  return [
    ...(await strangers(sql)),
    ...(await requestsGone(sql)),
    ...(await wrongRevisions(sql)),
    ...(await impossibleClaims(sql)),
    ...(await wrongRollups(sql)),
    ...(await wrongDocuments(sql)),
  ];
}

async function strangers(sql: Sql): Promise<string[]> {
  const candles = await sql<{ seriesId: number; interval: string; rows: number }[]>`
    select c.series_id, c.interval, count(*) as rows from market.candle c
    left join market.series s on s.id = c.series_id and s.interval = c.interval
    where s.id is null group by 1, 2 order by 1, 2`;
  const others = await sql<{ what: string; seriesId: number; rows: number }[]>`
    select what, series_id, count(*) as rows from (
      select 'market.revision' as what, series_id from market.revision
      union all select 'market.evidence', series_id from market.evidence
      union all select 'ops.second_opinion', series_id from ops.second_opinion where series_id is not null
      union all select 'market.rollup', series_id from market.rollup
    ) r where not exists (select from market.series s where s.id = r.series_id) group by 1, 2 order by 1, 2`;
  return [
    ...candles.map(
      (c) => `market.candle: ${c.rows} rows of ${c.interval} of series ${c.seriesId}, which does not exist`,
    ),
    ...others.map((o) => `${o.what}: ${o.rows} rows of series ${o.seriesId}, which does not exist`),
  ];
}

/**
 * Retention removes requests in the order of their numbers. So where one is left that it would have removed, no later one is gone because of
 * its age; and it never removes the newest.
 */
async function requestsGone(sql: Sql): Promise<string[]> {
  const rows = await sql<{ seriesId: number; gone: number; other: number; unnamed: number }[]>`
    with kept as materialized (
      select coalesce((
        select min(f.id) from ops.fetch f
        where f.series_id is not null and f.unconfirmed_slots is null
          and exists (select from ops.fetch y where y.id > f.id and y.account_id = f.account_id and y.status is not null and y.outcome = 'stored')
          and not exists (select from market.revision r where r.fetch_id = f.id)
          and not exists (select from market.quarantine q where q.fetch_id = f.id)
          and not exists (select from market.refusal r where r.fetch_id = f.id)
      ), (select max(id) from ops.fetch), 0) as since
    ), compared as (
      select e.series_id, f.id is null and e.fetch_id > kept.since as is_gone,
        f.id is not null and (f.series_id <> e.series_id or f.body_sha256 is distinct from e.body_sha256
          or f.as_of is distinct from e.as_of) as is_other,
        e.fetch_id is null as is_unnamed
      from market.evidence e cross join kept left join ops.fetch f on f.id = e.fetch_id
      where e.kind = 'answer'
    )
    select series_id, count(*) filter (where is_gone) as gone, count(*) filter (where is_other) as other,
      count(*) filter (where is_unnamed) as unnamed
    from compared where is_gone or is_other or is_unnamed group by 1 order by 1`;
  return rows.flatMap(({ seriesId, gone, other, unnamed }) => [
    ...(unnamed > 0 ? [`market.evidence: ${unnamed} answers of series ${seriesId} name no request`] : []),
    ...(gone > 0 ? [`ops.fetch: ${gone} requests that evidence of series ${seriesId} refers to are gone`] : []),
    ...(other > 0 ? [`ops.fetch: ${other} requests are not those that evidence of series ${seriesId} refers to`] : []),
  ]);
}

/** From a request about slots that are not final until they are: two widths, or a day, and an answer that lags. */
const LONGEST_PROVISIONAL_MS = 5 * DAY;

async function impossibleClaims(sql: Sql): Promise<string[]> {
  const rows = await sql<
    { claim: string; subject: string; answers: number; requestedAt: Instant; retryAt: Instant; isFinite: boolean }[]
  >`
    select claim, coalesce(key, 'series ' || series_id || ' ' || span::text) as subject, answers, requested_at, retry_at,
      isfinite(retry_at) as is_finite
    from ops.second_opinion order by 1, 2`;
  return rows.flatMap((row) => {
    const wait = row.isFinite ? row.retryAt - row.requestedAt : Number.POSITIVE_INFINITY;
    return wait <= longestWait(row.claim, row.isFinite ? 0 : row.answers)
      ? []
      : [`ops.second_opinion: ${row.claim} of ${row.subject} is asked again later than any rule says`];
  });
}

/** Only a claim that is believed may never be asked again. */
function longestWait(claim: string, answers: number): number {
  if (claim === 'provisional') return LONGEST_PROVISIONAL_MS;
  const rule = (RULES as Readonly<Record<string, Rule>>)[claim];
  if (rule === undefined) return Number.POSITIVE_INFINITY;
  // A claim about slots without a witness grows like a row that cannot be true, and lacks a list of coins for a day at most.
  if (claim === 'unconfirmed') return 2 * DAY;
  const waiting = rule.growth === undefined ? rule.waitMs : (rule.mostWaitMs ?? Number.POSITIVE_INFINITY);
  return Math.max(waiting, answers >= rule.agreeing ? rule.believedMs : 0) + DAY;
}

async function wrongRollups(sql: Sql): Promise<string[]> {
  const wrong: string[] = [];
  for (const fine of INTERVALS) {
    for (const coarse of INTERVALS.filter((target) => isRolledUp(fine, target))) {
      const rows = await sql<{ seriesId: number; openTime: Instant }[]>`
        select s.id as series_id, slot as open_time
        from market.rollup_coverage r join market.series s on s.id = r.series_id and s.interval = ${fine}::market.candle_interval
        cross join lateral unnest(r.spans * s.covered) span
        cross join lateral generate_series(lower(span), upper(span) - ${INTERVAL_MS[coarse] / 1000}::int * interval '1 second',
          ${INTERVAL_MS[coarse] / 1000}::int * interval '1 second') slot
        left join lateral (${sql.unsafe(coarseCandle(fine, coarse, { id: 's.id', slot: 'slot' }))}) made on true
        left join market.rollup stored on stored.series_id = s.id and stored.interval = ${coarse}::market.candle_interval
          and stored.open_time = slot
        where ${sql.unsafe(hashOf('made'))} <> ${sql.unsafe(hashOf('stored'))}
        limit 20`;
      wrong.push(
        ...rows.map(
          (row) =>
            `market.rollup: the ${coarse} candle of ${new Date(row.openTime).toISOString()} of series ${row.seriesId} is not that of its ${fine} candles`,
        ),
      );
    }
  }
  return wrong;
}

/** Documents that are not those whose digest was written with the answer, and versions of them that are gone or too many. */
async function wrongDocuments(sql: Sql): Promise<string[]> {
  const rows = await sql<{ what: string; kind: string; id: string; at: Instant | null }[]>`
    select 'market.document' as what, kind, id, null::timestamptz as at from market.document
    where received_sha256 is distinct from sha256(convert_to(received::text, 'UTF8'))
    union all
    select 'market.document_revision', kind, id, valid_from from market.document_revision
    where received_sha256 is distinct from sha256(convert_to(received::text, 'UTF8'))
    order by 1, 2, 3, 4`;
  // A version ends when the next one begins, and the last one when the document last changed. Of two answers of one instant only the first
  // is kept, as a version without a duration.
  const versions = await sql<{ kind: string; id: string; validTo: Instant }[]>`
    select kind, id, valid_to from (
      select r.kind, r.id, r.valid_from, r.valid_to, d.changed_at,
        lead(r.valid_from) over (partition by r.kind, r.id order by r.valid_from) as next_from
      from market.document_revision r left join market.document d using (kind, id)
    ) v where valid_from < valid_to and valid_to is distinct from coalesce(next_from, changed_at) order by 1, 2, 3`;
  return [
    ...rows.map(({ what, kind, id, at }) => {
      const version = at === null ? '' : `, version from ${new Date(at).toISOString()}`;
      return `${what}: ${kind} ${id}${version} is not what was answered`;
    }),
    ...versions.map(
      ({ kind, id, validTo }) =>
        `market.document_revision: after the version of ${kind} ${id} that ends at ${new Date(validTo).toISOString()}, one is missing or too many`,
    ),
  ];
}

const hashOf = (from: string) =>
  `market.candle_hash(slot, ${from}.open, ${from}.high, ${from}.low, ${from}.close, ${from}.volume, ${from}.market_cap)`;
