/** Selects the series that explains a slot of a chart, so that the story of the slot is about what the chart shows there. */
import type { Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { SeriesFacts } from './coin-facts.ts';

/**
 * The chart's own series if it has an answer; else a finer one of which the bar is made; else the own one if it wants the slot; else the widest
 * that wants or has a part of it. `sources`: the widest first. Null: there is no source.
 */
export async function findStorySeries(
  sql: Sql,
  sources: readonly SeriesFacts[],
  own: Interval | null,
  { from, to }: Span,
): Promise<SeriesFacts | null> {
  if (sources.length < 2) return sources[0] ?? null;
  const slot = sql`tstzrange(${from}::timestamptz, ${to}::timestamptz)`;
  const ids = sources.map(({ id }) => id);
  const isOwn = sql`s.id = ${sources.find(({ interval }) => interval === own)?.id ?? 0}`;
  const [row] = await sql<{ id: number }[]>`
    select s.id from market.series s where s.id = any(${ids}::int[])
    order by case
      when ${isOwn} and (s.covered @> ${slot} or exists (
        select from market.candle c where c.series_id = s.id and c.interval = ${own}::market.candle_interval and c.open_time = ${from}::timestamptz)) then 0
      when not ${isOwn} and s.covered @> ${slot} then 1
      when ${isOwn} and s.wanted && ${slot} then 2
      when s.wanted && ${slot} or s.covered && ${slot} then 3
      else 4 end, array_position(${ids}::int[], s.id)
    limit 1`;
  return sources.find(({ id }) => id === row?.id) ?? null;
}
