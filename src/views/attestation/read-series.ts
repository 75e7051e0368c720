/** Reads series for an attestation: digests of their current state. Each page of series is one statement, so each series is of one instant. */
import type { Quote } from '../../core/candle.ts';
import { type Interval, nameOfSeries, type SeriesName } from '../../core/interval.ts';
import type { Spans } from '../../core/span.ts';
import { pagesOf } from '../../store/candle/series.ts';
import { storedRows } from '../../store/candle/stored.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { type AttestedSeries, SHORT_BYTES } from './series-line.ts';
import { monthsOf, type SeriesState } from './series-state.ts';

/**
 * The same bytes as in market.candle_hash. `date_part` gives the same seconds as `extract`, in half the time. Only a row that somebody wrote by
 * hand can have an infinite time, and it must not stop an attestation.
 */
const CANDLE_BYTES = `int8send(case when isfinite(c.open_time) then date_part('epoch', c.open_time)::bigint else 0 end) || ${[
  'open',
  'high',
  'low',
  'close',
  'volume',
  'market_cap',
]
  .map((name) => `coalesce(float8send(c.${name}), '\\x7ff8000000000000'::bytea)`)
  .join(' || ')}`;

/** The SHA-256 of the bytes of the rows `c`, in the order of time. */
export const SHA256_OF_CANDLES = `sha256(coalesce(string_agg(${CANDLE_BYTES}, ''::bytea order by c.open_time), ''))`;

/**
 * The SHA-256 of the records up to a step: the rows of `market.revision` that replaced values (or are from before evidence was kept), and the
 * request of each row of evidence that no later step can have joined.
 */
export const SHA256_OF_RECORDS = `(
  select sha256(revised.bytes || named.bytes)
  from (
    select coalesce(string_agg(${CANDLE_BYTES} || int4send(coalesce(c.step, 0)) || timestamptz_send(c.seen_at)
      || timestamptz_send(coalesce(c.known_at, c.seen_at)) || boolsend(c.was_empty) || int8send(coalesce(c.fetch_id, 0))
      || convert_to(c.reason, 'UTF8'), ''::bytea order by c.step, c.open_time, c.id), '') as bytes
    from market.revision c where c.series_id = s.id and coalesce(c.step, 0) <= upto
  ) revised, (
    select coalesce(string_agg(int4send(e.number) || timestamptz_send(e.as_of) || int8send(coalesce(e.fetch_id, 0))
      || coalesce(e.body_sha256, ''), ''::bytea order by e.number), '') as bytes
    from (
      select e.*, lead(e.number) over (order by e.number) as next from market.evidence e where e.series_id = s.id and e.number <= upto
    ) e
    where e.step_seconds is null or e.next is not null
  ) named)`;

/** Maximum number of candles, and of series, in one page. */
const MOST = { rows: 200_000, series: 200 };
/** Concurrent pages: for each, hashing keeps one processor of the server busy. */
const AT_ONCE = 2;

export type CurrentSeries = SeriesState & { readonly seriesId: number; readonly covered: Spans };

/** All series with coverage, evidence or revisions, by interval, coin and quote. Memory does not grow with their number of candles. */
export async function* readAllSeries(sql: SqlOrTransaction): AsyncGenerator<CurrentSeries> {
  yield* inPages(readListed(sql), (page) => readCurrent(sql, page));
}

type Listed = { readonly id: number; readonly interval: Interval; readonly candles: number };
/** Number of series whose names are read at once. */
const LISTED = 10_000;

/** The order does not depend on the collation of the database. The interval comes first, so that there are few pages. */
async function* readListed(sql: SqlOrTransaction): AsyncGenerator<Listed> {
  let after: { interval: string; coinId: string; quote: string } | null = null;
  for (;;) {
    const rows: (Listed & { coinId: string; quote: string })[] = await sql`
      select id, interval, candles, coin_id, quote from market.series
      where (covered <> '{}' or steps > 0 or exists (select from market.revision r where r.series_id = series.id))
        ${after === null ? sql`` : sql`and (interval, coin_id collate "C", quote) > (${after.interval}::market.candle_interval, ${after.coinId}, ${after.quote})`}
      order by interval, coin_id collate "C", quote limit ${LISTED}`;
    yield* rows;
    if (rows.length < LISTED) return;
    after = rows.at(-1)!;
  }
}

/** Reads pages of one interval each (so that partitions prune), some of them concurrently, and yields their rows in order. */
export async function* inPages<S extends { readonly interval: Interval; readonly candles: number }, R>(
  series: Iterable<S> | AsyncIterable<S>,
  read: (page: S[]) => Promise<R[]>,
): AsyncGenerator<R> {
  const underWay: Promise<R[]>[] = [];
  for await (const page of pagesOf(series, MOST, ({ candles }) => candles)) {
    const rows = read(page);
    // A failure is thrown when its page is awaited; until then it must not count as unhandled.
    rows.catch(() => undefined);
    underWay.push(rows);
    if (underWay.length === AT_ONCE) yield* await underWay.shift()!;
  }
  for (const rows of underWay) yield* await rows;
}

/** Months as in the JSON of the query: start in seconds, candles, SHA-256 in hex. */
type Row = {
  readonly id: number;
  readonly coinId: string;
  readonly quote: Quote;
  readonly steps: number;
  readonly link: Buffer | null;
  readonly covered: Spans;
  readonly records: Buffer;
  readonly months: readonly [number, number, string][];
};

/** Series of one interval, in the given order. */
export async function readCurrent(sql: SqlOrTransaction, page: readonly Listed[]): Promise<CurrentSeries[]> {
  const { interval } = page[0]!;
  const rows = await sql<Row[]>`
    select s.id, s.coin_id, s.quote, s.steps, s.link, coalesce(s.covered, '{}') as covered, ${sql.unsafe(SHA256_OF_RECORDS)} as records, found.months
    from unnest(${page.map(({ id }) => id)}::int[]) with ordinality as page (id, position)
    join market.series s on s.id = page.id
    cross join lateral (select s.steps as upto) latest
    cross join lateral (
      select coalesce(json_agg(json_build_array(date_part('epoch', m.month), m.candles, encode(m.sha256, 'hex'))), '[]') as months
      from (
        select date_trunc('month', c.open_time, 'UTC') as month, count(*) as candles, ${sql.unsafe(SHA256_OF_CANDLES)} as sha256
        from ${storedRows(sql, sql`s.id`, interval)} c
        where s.covered @> c.open_time
        group by 1
      ) m
    ) found
    order by page.position`;
  return rows.map((row) => stateOf(row, interval));
}

function stateOf({ id, months, link, ...row }: Row, interval: Interval): CurrentSeries {
  const found = months.map(([from, candles, sha256]) => ({ from: from * 1000, candles, sha256 }));
  return {
    ...row,
    seriesId: id,
    interval,
    link: link ?? Buffer.alloc(0),
    months: monthsOf(row.covered, found, interval),
  };
}

type Rename = {
  readonly seriesId: number;
  readonly step: number;
  readonly newId: string;
  /**
   * Whether `market.coin_rename` leads from one id to the other, too. When a coin has its old id again, the change may be recorded in the other
   * direction.
   */
  readonly isRecorded: boolean;
  /** Whether it has a later change from or to the old id. It has one row for each old id, and no row for an id that came into use again. */
  readonly isReplaced: boolean;
};

/** The series that had a name until a step: `coin quote interval` → the changes of its coin's id, oldest first. */
export type FormerNames = ReadonlyMap<string, readonly Rename[]>;

export async function readFormerNames(sql: SqlOrTransaction): Promise<FormerNames> {
  const rows = await sql<(Rename & { name: string })[]>`
    select split_part(e.detail, ' ', 1) || ' ' || s.quote || ' ' || s.interval as name, e.series_id, e.number as step,
      split_part(e.detail, ' ', 2) as new_id, exists (
        -- Several changes may lie between the two ids, when the series has followed them at once.
        with recursive ids(from_id, to_id) as (
          values (split_part(e.detail, ' ', 1), split_part(e.detail, ' ', 2)), (split_part(e.detail, ' ', 2), split_part(e.detail, ' ', 1))
        ), step as (
          select r.new_id, i.to_id, 1 as hops from ids i join market.coin_rename r on r.old_id = i.from_id
          union all
          select r.new_id, p.to_id, p.hops + 1 from step p join market.coin_rename r on r.old_id = p.new_id where p.hops < 20
        )
        select from step where new_id = to_id) as is_recorded, exists (
        select from market.coin_rename r where split_part(e.detail, ' ', 1) in (r.old_id, r.new_id)
          and greatest(r.renamed_at, r.seen_at) > e.known_at) as is_replaced
    from market.evidence e join market.series s on s.id = e.series_id where e.kind = 'renamed' order by e.number`;
  const names = new Map<string, Rename[]>();
  for (const { name, ...had } of rows) names.set(name, [...(names.get(name) ?? []), had]);
  return names;
}

/** A series with the name that it had at this step of its evidence. The first bytes of the link select one of several series. */
type NamedThen = SeriesName & Pick<AttestedSeries, 'steps' | 'link'>;

export type Found = Listed & {
  /** The first change of the coin's id since the attestation; undefined: it still has the attested id. */
  readonly rename: Rename | undefined;
};

/** The change of the coin's id, for each series that has lost this name since this step. */
function renamesOf(named: NamedThen, former: FormerNames): Rename[] {
  const bySeries = new Map<number, Rename>();
  for (const rename of former.get(nameOfSeries(named)) ?? [])
    if (rename.step > named.steps && !bySeries.has(rename.seriesId)) bySeries.set(rename.seriesId, rename);
  return [...bySeries.values()];
}

/**
 * The series that have these names, or had them at the attested step, in the order of the page; undefined where there is none. If the upstream gave
 * an id to another coin, the id names several series. Then it returns the one whose evidence up to that step was attested, or else the first.
 */
export async function findSeries(
  sql: SqlOrTransaction,
  page: readonly NamedThen[],
  former: FormerNames,
): Promise<(Found | undefined)[]> {
  const renames = page.map((attested) => renamesOf(attested, former));
  const lost = renames.flatMap((some, i) => some.map(({ seriesId }) => ({ position: i + 1, id: seriesId })));
  const link = ({ link: bytes }: NamedThen) => bytes.subarray(0, SHORT_BYTES).toString('hex');
  const rows = await sql<{ position: number; id: number; candles: number }[]>`
    with asked as materialized (
      select * from unnest(${page.map((one) => one.coinId)}::text[], ${page.map((one) => one.quote)}::text[],
        ${page.map((one) => one.interval)}::text[], ${page.map((one) => one.steps)}::int[], ${page.map(link)}::text[])
        with ordinality as a (coin_id, quote, interval, step, link, position)
    ), candidate as (
      select * from unnest(${lost.map(({ position }) => position)}::bigint[], ${lost.map(({ id }) => id)}::int[])
        with ordinality as c (position, id, place)
      union all
      select a.position, s.id, null from asked a
      join market.series s on s.coin_id = a.coin_id and s.quote = a.quote and s.interval = a.interval::market.candle_interval
    ), counted as (
      select c.*, count(*) over (partition by c.position) as candidates from candidate c
    )
    select distinct on (c.position) c.position, s.id, s.candles
    from counted c join asked a on a.position = c.position join market.series s on s.id = c.id
    order by c.position, case when c.candidates > 1
      then encode(substring(ops.link_at(s.id, a.step) from 1 for ${SHORT_BYTES}), 'hex') is distinct from a.link end, c.place`;
  const found = new Map(rows.map(({ position, ...series }) => [position, series]));
  return page.map(({ interval }, i) => {
    const series = found.get(i + 1);
    return series && { ...series, interval, rename: renames[i]!.find(({ seriesId }) => seriesId === series.id) };
  });
}
