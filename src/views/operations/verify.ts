/** The proof: recounts every covered slot against the stored candles, and hashes them so that two warehouses can compare. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { countSlots } from '../../core/chunk.ts';
import { formatCounted } from '../../core/format.ts';
import { INTERVAL_MS, type Interval } from '../../core/interval.ts';
import type { Span, Spans } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { matching, type SeriesFilter } from './series-filter.ts';

export type SeriesProof = {
  readonly seriesId: number;
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: Interval;
  readonly slotsCovered: number;
  /** Rows inside coverage: final. */
  readonly candles: number;
  /** Rows outside coverage: may still change. */
  readonly provisional: number;
  /** Covered slots without a row: the upstream answered that there is no candle. */
  readonly knownEmpty: number;
  /** Of the final candles, 16 hexadecimal digits; see `HASH`. */
  readonly hash: string;
  /** The differences, one sentence each; empty when there are none. */
  readonly differences: readonly string[];
  /** The narrowest span known to contain the differences; null when there are none. Infinite where coverage is. */
  readonly suspect: Span | null;
};

const NUMBERS = ['open', 'high', 'low', 'close', 'volume', 'market_cap'];

/**
 * A candle's 56 bytes are its open time in seconds (a signed integer) and its six numbers (doubles; null as the NaN
 * 7ff8000000000000), each eight bytes, big end first. Its hash is the first eight bytes of their SHA-256; the hash of a
 * series is the sum of the hashes of its candles modulo 2^64: it does not depend on their order, and can be computed outside Postgres.
 */
const HASH = `('x' || encode(substr(sha256(int8send(extract(epoch from c.open_time)::bigint) ||
  ${NUMBERS.map((name) => `coalesce(float8send(c.${name}), '\\x7ff8000000000000')`).join(
    ' || ',
  )}), 1, 8), 'hex'))::bit(64)::bigint`;

/** A candle that validation would have quarantined. Null is valid, and a comparison with it is not true. */
const IMPOSSIBLE = `not (c.high >= c.low and c.high >= c.open and c.high >= c.close and c.low <= c.open and c.low <= c.close
  and ${NUMBERS.map((name) => `c.${name} >= 0 and c.${name} < 'infinity'`).join(' and ')})`;

/** The clock of the upstream may be ahead of ours by this much. */
const FUTURE_TOLERANCE_MS = 10 * 60_000;
/** The most candles, and the most series, of one statement. */
const MOST_CANDLES = 200_000;
const MOST_SERIES = 200;
/** Concurrent statements: hashing keeps one processor of the server busy for each. */
const AT_ONCE = 2;

/**
 * The proof of each matching series, by interval and coin. Each one reads a single snapshot, so it holds while a backfill runs.
 * Memory does not grow with the number of candles.
 */
export async function* verifySeries(sql: Sql, filter: SeriesFilter, now: Instant): AsyncGenerator<SeriesProof> {
  const listed = await sql<Listed[]>`
    select id, interval, covered_candles as candles from market.series
    where ${matching(sql, filter)} order by interval desc, coin_id, quote`;
  const underWay: Promise<Recount[]>[] = [];
  for (const page of pagesOf(listed)) {
    const rows = recount(sql, page, now);
    // A failure is thrown when its page is awaited; until then it must not count as unhandled.
    rows.catch(() => undefined);
    underWay.push(rows);
    if (underWay.length === AT_ONCE) for (const row of await underWay.shift()!) yield locate(sql, row, judge(row, now));
  }
  for (const rows of underWay) for (const row of await rows) yield locate(sql, row, judge(row, now));
}

type Listed = { readonly id: number; readonly interval: Interval; readonly candles: number };

/** Pages of series of one interval (so that partitions prune), each small enough for one statement. */
function* pagesOf(listed: readonly Listed[]): Generator<Listed[]> {
  let page: Listed[] = [];
  let candles = 0;
  for (const series of listed) {
    const full = page.length >= MOST_SERIES || candles + series.candles > MOST_CANDLES;
    if (page.length > 0 && (full || page[0]!.interval !== series.interval)) {
      yield page;
      page = [];
      candles = 0;
    }
    page.push(series);
    candles += series.candles;
  }
  if (page.length > 0) yield page;
}

type Recount = {
  readonly id: number;
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: Interval;
  readonly covered: Spans;
  readonly recorded: number;
  readonly inside: number;
  readonly outside: number;
  readonly offGrid: number;
  readonly impossible: number;
  readonly future: number;
  readonly hash: string | null;
};

function recount(sql: Sql, page: readonly Listed[], now: Instant): Promise<Recount[]> {
  const { interval } = page[0]!;
  return sql<Recount[]>`
    select s.id, s.coin_id, s.quote, s.interval, s.covered, s.covered_candles as recorded, found.*
    from unnest(${page.map((series) => series.id)}::int[]) with ordinality as page(id, position)
    join market.series s on s.id = page.id
    cross join lateral (
      select count(*) filter (where s.covered @> c.open_time) as inside,
        count(*) filter (where not s.covered @> c.open_time) as outside,
        count(*) filter (where mod(extract(epoch from c.open_time), ${INTERVAL_MS[interval] / 1000}::int) <> 0) as off_grid,
        count(*) filter (where ${sql.unsafe(IMPOSSIBLE)}) as impossible,
        count(*) filter (where c.open_time > ${now + FUTURE_TOLERANCE_MS}) as future,
        (sum(${sql.unsafe(HASH)}) filter (where s.covered @> c.open_time))::text as hash
      from market.candle c where c.series_id = s.id and c.interval = ${interval}::market.candle_interval
    ) found
    order by page.position`;
}

/**
 * Counts are recorded for a whole series only, but each answer is recorded with its number of rows. When the latest answers explain the
 * whole difference, it lies in their spans; otherwise it may lie anywhere in the series.
 */
async function locate(sql: Sql, row: Recount, proof: Proof): Promise<SeriesProof> {
  if (proof.differences.length === 0) return { ...proof, suspect: null };
  const whole = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };
  if (proof.differences.length > 1 || row.inside === row.recorded) return { ...proof, suspect: whole };
  const answers = await sql<{ from: Instant; to: Instant; lacking: number }[]>`
    select lower(f.span) as from, upper(f.span) as to, f.rows - f.quarantined - found.candles as lacking
    from ops.fetch f
    cross join lateral (
      select count(*) as candles from market.candle c
      where c.series_id = f.series_id and c.interval = ${row.interval}::market.candle_interval
        and c.open_time >= lower(f.span) and c.open_time < upper(f.span)
    ) found
    where f.series_id = ${row.id} and f.outcome = 'stored' and f.span is not null and f.rows - f.quarantined <> found.candles
      and not exists (
        select from ops.fetch later
        where later.series_id = f.series_id and later.outcome = 'stored' and later.span && f.span
          and (later.as_of, later.id) > (f.as_of, f.id)
      )`;
  const explained = answers.reduce((sum, answer) => sum + answer.lacking, 0) === row.recorded - row.inside;
  if (answers.length === 0 || !explained) return { ...proof, suspect: whole };
  const suspect = {
    from: Math.min(...answers.map((answer) => answer.from)),
    to: Math.max(...answers.map((answer) => answer.to)),
  };
  return { ...proof, suspect };
}

type Proof = Omit<SeriesProof, 'suspect'>;

function judge(row: Recount, now: Instant): Proof {
  const { covered } = row;
  const bounded = covered.every((span) => Number.isFinite(span.from) && Number.isFinite(span.to));
  const slotsCovered = bounded ? countSlots(covered, row.interval) : Number.POSITIVE_INFINITY;
  const counted = (candles: number) => formatCounted(candles, 'candle');
  const endsAt = covered.at(-1)?.to ?? 0;
  const differences = [
    row.inside !== row.recorded && `${counted(row.inside)} inside coverage, but ${row.recorded} were recorded`,
    row.inside > slotsCovered && `${counted(row.inside)} for ${slotsCovered} covered slots`,
    !bounded && 'coverage has an open end',
    bounded && endsAt > now + FUTURE_TOLERANCE_MS && 'coverage reaches into the future',
    row.offGrid > 0 && `${counted(row.offGrid)} off the ${row.interval} grid`,
    row.impossible > 0 && `${counted(row.impossible)} that cannot be true (high below low, negative, not finite)`,
    row.future > 0 && `${counted(row.future)} from the future`,
  ].filter((difference) => difference !== false);
  return {
    seriesId: row.id,
    coinId: row.coinId,
    quote: row.quote,
    interval: row.interval,
    slotsCovered,
    candles: row.inside,
    provisional: row.outside,
    knownEmpty: Math.max(0, slotsCovered - row.inside),
    hash: BigInt.asUintN(64, BigInt(row.hash ?? 0))
      .toString(16)
      .padStart(16, '0'),
    differences,
  };
}
