/** Checks everything besides the series: rows that belong to no series, claims that no rule makes, rollups, documents, imported series. */
import type { Instant } from '../../clock.ts';
import { formatCounted } from '../../core/format.ts';
import { DAY, INTERVAL_MS, INTERVALS, type Interval } from '../../core/interval.ts';
import { RULES, type Rule } from '../../core/second-opinion.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { wrongImports } from './imported.ts';
import { ALL_YEARS, type Correct, formatMaybeInfinite, impossibleTimesBeside } from './impossible-times.ts';
import { wrongCalendar, wrongRollups } from './rollups.ts';

/** All differences, one sentence each. Reads every candle once more, without hashing it. */
export async function verifyWarehouse(sql: Sql, correct: Correct = () => undefined): Promise<string[]> {
  return [
    ...(await findRowsOfUnknownSeries(sql, correct)),
    ...(await goneSeries(sql)),
    ...(await impossibleTimesBeside(sql, correct)),
    ...(await impossibleClaims(sql, correct)),
    ...(await wrongRollups(sql, correct)),
    ...(await wrongCalendar(sql, correct)),
    ...(await wrongDocuments(sql)),
    ...(await wrongImports(sql)),
  ];
}

/**
 * Whether rows of `r` may be removed. If their series has another interval and no rows of its own, somebody may have changed its interval: then
 * they are its true rows.
 */
const MAY_GO = `not exists (select from market.series o where o.id = r.series_id) or exists (
  select from market.series o join market.candle own on own.series_id = o.id and own.interval = o.interval where o.id = r.series_id)`;

type Unknown = { readonly seriesId: number | null; readonly rows: number; readonly mayGo: boolean };

async function findRowsOfUnknownSeries(sql: Sql, correct: Correct): Promise<string[]> {
  const candles = await sql<(Unknown & { interval: string })[]>`
    select *, ${sql.unsafe(MAY_GO)} as may_go from (
      select c.series_id, c.interval, count(*) as rows from market.candle c
      left join market.series s on s.id = c.series_id and s.interval = c.interval
      where s.id is null group by 1, 2
    ) r order by 1, 2`;
  const others = await sql<(Unknown & { what: string })[]>`
    select *, ${sql.unsafe(MAY_GO)} as may_go from (
      select what, series_id, count(*) as rows from (
        select 'market.revision' as what, series_id from market.revision
        union all select 'market.evidence', series_id from market.evidence
        union all select 'ops.second_opinion', series_id from ops.second_opinion where series_id is not null
        union all select 'market.rollup', series_id from market.rollup
        union all select 'market.rollup_coverage', series_id from market.rollup_coverage
        union all select 'market.price', p.series_id from market.price p
          where not exists (select from market.series s where s.id = p.series_id and s.interval > '24h')
      ) r where what = 'market.price' or not exists (select from market.series s where s.id = r.series_id) group by 1, 2
    ) r order by 1, 2`;
  const isKnown: ReadonlySet<string> = new Set(INTERVALS);
  // The series may be there when somebody runs the statement: restored, or a new one with this number.
  const remove = ({ seriesId, mayGo }: Unknown, table: string, rows: string, series: string) => {
    if (!mayGo) return;
    const id = seriesId === null ? 'is null' : `= ${seriesId}`;
    const unknown = `not exists (select from market.series s where s.id = r.series_id${series})`;
    correct(`delete from ${table} r where series_id ${id}${rows} and ${unknown}`);
  };
  // Only a known interval may stand in a command that somebody copies.
  for (const one of candles.filter(({ interval }) => isKnown.has(interval)))
    remove(one, 'market.candle', ` and interval = '${one.interval}'`, ' and s.interval = r.interval');
  for (const one of others) remove(one, one.what, '', one.what === 'market.price' ? " and s.interval > '24h'" : '');
  return [
    ...candles.map(
      (c) => `market.candle: ${c.rows} rows of ${c.interval} of series ${c.seriesId}, which does not exist`,
    ),
    ...others.map(
      (o) =>
        `${o.what}: ${o.rows} rows of series ${o.seriesId}, which ${o.what === 'market.price' ? 'is not a price series' : 'does not exist'}`,
    ),
  ];
}

/**
 * Series that are missing, although an answer made slots of them final. Chandler removes only series without any answer: those of coins that got an
 * id which has one already, and those that were never requested. Retention removes the requests that show this. An answer without settled slots
 * makes nothing final, so it does not count.
 */
async function goneSeries(sql: Sql): Promise<string[]> {
  const rows = await sql<{ seriesId: number; requests: number; last: number; candles: number }[]>`
    select series_id, count(*) as requests, max(id) as last, sum(stored)::bigint as candles
    from (
      select * from ops.fetch f where series_id is not null and not exists (select from market.series s where s.id = f.series_id)
      offset 0
    ) f cross join lateral (select answered_slots * ${sql.unsafe(ALL_YEARS)} as slots) answered
    where outcome = 'stored' and stored > 0
      and lower(slots) + greatest((upper(slots) - lower(slots)) / nullif(stored, 0), interval '1 day') + interval '4 days' < as_of
    group by 1 order by 1`;
  return rows.map(
    ({ seriesId, requests, last, candles }) =>
      `market.series: series ${seriesId} is missing; ${formatCounted(requests, 'request')} stored ${formatCounted(candles, 'row')} of it (the last one: ${last} in ops.fetch)`,
  );
}

/**
 * Longest time from a request about slots until they are final: the width of a slot, at least a day, the day that it settles, and an answer that
 * lags.
 */
const longestProvisional = (interval: Interval) => Math.max(INTERVAL_MS[interval], DAY) + 4 * DAY;

async function impossibleClaims(sql: Sql, correct: Correct): Promise<string[]> {
  const rows = await sql<
    {
      claim: string;
      subject: string;
      seriesId: number | null;
      answers: number;
      requestedAt: Instant;
      retryAt: Instant;
      due: string;
      isFinite: boolean;
      interval: Interval | null;
    }[]
  >`
    select claim, coalesce(key, 'series ' || series_id || ' ' || span::text) as subject, series_id, answers, requested_at, retry_at,
      quote_nullable(retry_at) as due,
      isfinite(retry_at) as is_finite, (select s.interval from market.series s where s.id = series_id) as interval
    from ops.second_opinion order by 1, 2`;
  return rows.flatMap((row) => {
    const wait = row.isFinite ? row.retryAt - row.requestedAt : Number.POSITIVE_INFINITY;
    if (wait <= longestWait(row.claim, row.isFinite ? 0 : row.answers, row.interval ?? '24h')) return [];
    // Chandler then requests the slots as if nothing were known about them.
    if (row.seriesId !== null)
      correct(
        `delete from ops.second_opinion where series_id = ${row.seriesId} and claim = '${row.claim}' and retry_at is not distinct from ${row.due}`,
      );
    return [`ops.second_opinion: ${row.claim} of ${row.subject} is due later than any rule allows`];
  });
}

/** The longest wait until a claim is requested again. It may be infinite only for a claim that is believed. */
function longestWait(claim: string, answers: number, interval: Interval): number {
  if (claim === 'provisional') return longestProvisional(interval);
  const rule = (RULES as Readonly<Record<string, Rule>>)[claim];
  if (rule === undefined) return Number.POSITIVE_INFINITY;
  // The wait of a claim about slots without a witness grows to a day, like that of an invalid row. It may wait a day more for a list of coins.
  if (claim === 'unconfirmed') return 2 * DAY;
  const waiting = rule.growth === undefined ? rule.waitMs : (rule.mostWaitMs ?? Number.POSITIVE_INFINITY);
  return Math.max(waiting, answers >= rule.agreeing ? rule.believedMs : 0) + DAY;
}

/** Documents that do not match the digest that was written with the answer, and versions of them that are missing or superfluous. */
async function wrongDocuments(sql: Sql): Promise<string[]> {
  const rows = await sql<{ what: string; kind: string; id: string; at: Instant | null }[]>`
    select 'market.document' as what, kind, id, null::timestamptz as at from market.document
    where received_sha256 is distinct from sha256(convert_to(received::text, 'UTF8'))
    union all
    select 'market.document_revision', kind, id, valid_from from market.document_revision
    where received_sha256 is distinct from sha256(convert_to(received::text, 'UTF8'))
    order by 1, 2, 3, 4`;
  // A version ends when the next one begins, and the last one when the document last changed. Of two answers of one instant, only the first is
  // kept, as a version without a duration.
  const versions = await sql<{ kind: string; id: string; validTo: Instant }[]>`
    select kind, id, valid_to from (
      select r.kind, r.id, r.valid_from, r.valid_to, d.changed_at,
        lead(r.valid_from) over (partition by r.kind, r.id order by r.valid_from) as next_from
      from market.document_revision r left join market.document d using (kind, id)
    ) v where valid_from < valid_to and valid_to is distinct from coalesce(next_from, changed_at) order by 1, 2, 3`;
  return [
    ...rows.map(({ what, kind, id, at }) => {
      const version = at === null ? '' : `, version from ${formatMaybeInfinite(at)}`;
      return `${what}: ${kind} ${id}${version} differs from the answer`;
    }),
    ...versions.map(
      ({ kind, id, validTo }) =>
        `market.document_revision: after the version of ${kind} ${id} that ends at ${formatMaybeInfinite(validTo)}, a version is missing or superfluous`,
    ),
  ];
}
