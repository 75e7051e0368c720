/** Reads the manifest's elements of series: the state of their evidence, their coverage, and the reasons of their gaps. */
import type { Quote } from '../../core/candle.ts';
import { type Interval, nameOfSeries } from '../../core/interval.ts';
import { intersect, type Span, type Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { SHA256_OF_RECORDS } from '../../views/attestation/read-series.ts';
import type { MonthBook } from '../digest/month-book.ts';
import { isoOrNull, type ManifestSeries, spansAsIso } from '../manifest/manifest.ts';

/** Maximum number of series in one statement. */
const MOST_SERIES = 500;

type Row = {
  readonly id: number;
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: Interval;
  readonly steps: number;
  readonly link: Buffer | null;
  readonly records: Buffer;
  readonly covered: Spans;
};

/** One element for each series of `ids`, in their order, limited to `span`. */
export async function* readStates(
  tx: SqlOrTransaction,
  ids: readonly number[],
  span: Span,
  months: MonthBook,
): AsyncGenerator<ManifestSeries> {
  for (let at = 0; at < ids.length; at += MOST_SERIES) {
    const page = ids.slice(at, at + MOST_SERIES);
    const rows = await tx<Row[]>`
      select s.id, s.coin_id, s.quote, s.interval, s.steps, s.link, s.covered, ${tx.unsafe(SHA256_OF_RECORDS)} as records
      from unnest(${page}::int[]) with ordinality as page (id, position)
      join market.series s on s.id = page.id
      cross join lateral (select s.steps as upto) latest
      order by page.position`;
    const gaps = await readGaps(tx, rows, span);
    for (const row of rows) {
      const series = nameOfSeries(row);
      yield {
        series,
        steps: row.steps,
        link: row.link?.toString('hex') ?? '',
        records: row.records.toString('hex'),
        covered: spansAsIso(intersect(row.covered, [span])),
        gaps: gaps.get(series) ?? [],
        months: months.encode(series, row.interval),
      };
    }
  }
}

type Gap = {
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: Interval;
  readonly gapFrom: number;
  readonly gapTo: number;
  readonly reason: string;
  readonly detail: string | null;
};

async function readGaps(
  tx: SqlOrTransaction,
  series: readonly Row[],
  span: Span,
): Promise<Map<string, ManifestSeries['gaps'][number][]>> {
  const rows = await tx<Gap[]>`
    select g.coin_id, g.quote, g.interval, g.gap_from, g.gap_to, g.reason, g.detail
    from unnest(${series.map(({ coinId }) => coinId)}::text[], ${series.map(({ quote }) => quote)}::text[],
      ${series.map(({ interval }) => interval)}::text[]) s (coin_id, quote, interval)
    join market.gaps g on g.coin_id = s.coin_id and g.quote = s.quote and g.interval = s.interval::market.candle_interval
    where tstzrange(g.gap_from, g.gap_to) && ${span}::tstzrange
    order by g.gap_from, g.reason`;
  const found = new Map<string, ManifestSeries['gaps'][number][]>();
  for (const { gapFrom, gapTo, reason, detail, ...named } of rows) {
    const name = nameOfSeries(named);
    const [from, to] = [Math.max(gapFrom, span.from), Math.min(gapTo, span.to)];
    found.set(name, [...(found.get(name) ?? []), [isoOrNull(from)!, isoOrNull(to)!, reason, detail]]);
  }
  return found;
}
