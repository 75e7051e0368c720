/** Reads the state of series before their rows: which series exist, and their state within a stretch of time. */
import { createHash } from 'node:crypto';
import type { Quote } from '../../core/candle.ts';
import { ALL_INTERVALS, type Interval, isPriceInterval } from '../../core/interval.ts';
import type { Span, Spans } from '../../core/span.ts';
import { pagesOf } from '../../store/candle/series.ts';
import { storedRows } from '../../store/candle/stored.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import type { SeriesDataset } from '../dataset/dataset.ts';
import type { PlannedFile, SeriesRef } from '../layout/layout.ts';
import type { Selection } from './selection.ts';

/** The series of a dataset that have rows, ordered by interval, quote and coin. */
export async function readSeries(
  tx: SqlOrTransaction,
  { name }: SeriesDataset,
  { coinIds, intervals }: Pick<Selection, 'coinIds' | 'intervals'>,
): Promise<SeriesRef[]> {
  const of = ALL_INTERVALS.filter((one) => isPriceInterval(one) === (name === 'prices'));
  const found: SeriesRef[] = [];
  for (const interval of of.filter((one) => intervals === null || intervals.includes(one))) {
    const rows = await tx<Omit<SeriesRef, 'interval'>[]>`
      select s.id, s.coin_id, co.symbol, s.quote, s.candles, ends.first, ends.last,
        least(ends.first, lower(s.covered)) as reach_from, greatest(ends.last, upper(s.covered)) as reach_to
      from market.series s join market.coin co on co.id = s.coin_id
      cross join lateral (
        select min(c.open_time) as first, max(c.open_time) as last from ${storedRows(tx, tx`s.id`, interval)} c
      ) ends
      where s.interval = ${interval}::market.candle_interval and ends.first is not null
        ${coinIds === null ? tx`` : tx`and s.coin_id = any(${coinIds as string[]}::text[])`}
      order by s.quote, s.coin_id collate "C"`;
    for (const row of rows) found.push({ ...row, interval });
  }
  return found;
}

/** The series that may be in a file, with rows or with coverage that shows that there are none. */
export function seriesIn({ series, span }: Pick<PlannedFile, 'series' | 'span'>): SeriesRef[] {
  return series.filter(({ reachFrom, reachTo }) => reachTo >= span.from && reachFrom < span.to);
}

type SeriesKey = Pick<SeriesRef, 'id' | 'interval'>;

/** The state of a series within a stretch of time. */
export type SeriesWithin = {
  readonly id: number;
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: Interval;
  readonly covered: Spans;
  /** The newest step of its evidence about the stretch; null: none. */
  readonly step: number | null;
  readonly link: Buffer | null;
  /** The number of rows that may still change. `digest` is the sum of their hashes. */
  readonly provisional: number;
  readonly digest: string;
};

/**
 * Those of `series` that have rows or coverage within `span`, in their order. The result changes whenever a row within the span changes or becomes
 * final: final rows have their evidence, and the others are counted and hashed.
 */
export async function readWithin(
  tx: SqlOrTransaction,
  series: readonly SeriesKey[],
  span: Span,
  finalOnly: boolean,
): Promise<SeriesWithin[]> {
  const found: SeriesWithin[] = [];
  for await (const page of pagesOf(series, MOST, () => 0)) found.push(...(await readPage(tx, page, span, finalOnly)));
  return found;
}

/** Maximum number of series in one statement, which counts their rows and reads none of them. */
const MOST = { series: 1_000, rows: Number.POSITIVE_INFINITY };

function readPage(
  tx: SqlOrTransaction,
  page: readonly SeriesKey[],
  span: Span,
  finalOnly: boolean,
): Promise<SeriesWithin[]> {
  const { interval } = page[0]!;
  const stored = storedRows(tx, tx`s.id`, interval);
  const within = tx`tstzmultirange(${span}::tstzrange)`;
  return tx<SeriesWithin[]>`
    select s.id, s.coin_id, s.quote, s.interval, s.covered * ${within} as covered, e.number as step, e.link,
      p.candles as provisional, p.digest::text as digest
    from unnest(${page.map(({ id }) => id)}::int[]) with ordinality as page (id, position)
    join market.series s on s.id = page.id
    left join lateral (
      select e.number, e.link from market.evidence e
      where e.series_id = s.id and (e.slots && ${span}::tstzrange or e.kind = 'renamed') order by e.number desc limit 1
    ) e on true
    cross join lateral (
      select count(*) as candles,
        coalesce(sum(market.candle_hash(c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap)), 0) as digest
      from unnest(${within} - s.covered) r
      join lateral ${stored} c on c.open_time >= coalesce(lower(r), '-infinity') and c.open_time < coalesce(upper(r), 'infinity')
      where ${!finalOnly}
    ) p
    where not isempty(s.covered * ${within}) or p.candles > 0
    order by page.position`;
}

/** Two files of the same version have the same rows. `form`: everything else on which the bytes depend. */
export function versionOf(within: readonly SeriesWithin[], form: string): string {
  const hash = createHash('sha256').update(form);
  for (const { coinId, quote, interval, covered, step, link, provisional, digest } of within) {
    const spans = covered.map(({ from, to }) => `${from}-${to}`).join(',');
    hash.update(`${coinId} ${quote} ${interval} ${step} ${link?.toString('hex')} ${spans} ${provisional} ${digest}\n`);
  }
  return hash.digest('hex').slice(0, 32);
}
