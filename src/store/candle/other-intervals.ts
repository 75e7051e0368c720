/** Reads what other intervals of the same coin and quote have stored for the stretch of an answer. */
import type { Instant } from '../../clock.ts';
import type { CandleColumns } from '../../core/candle.ts';
import { ceilToGrid, floorToGrid, INTERVAL_MS, type Interval } from '../../core/interval.ts';
import { intersect, type Span, type Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { parseMultirange } from '../values/multirange.ts';
import type { PricedCandle } from './neighbours.ts';

/** A slot of the wider of two intervals, and what the other interval has stored for it. Narrower candles are merged into one. */
export type Sample = {
  readonly interval: Interval;
  readonly slot: Span;
  readonly candle: PricedCandle;
  /** A second answer has confirmed that the two intervals differ, but not for enough coins yet to stop comparing them. */
  readonly hasDiffered: boolean;
};

/** Another series of the same coin and quote. */
type OtherSeries = {
  readonly id: number;
  readonly interval: Interval;
  /** Final slots within the requested span. */
  readonly covered: Spans;
  readonly hasDiffered: boolean;
};

/** The series as read from JSON: `covered` is still text. */
export type OtherSeriesRead = Omit<OtherSeries, 'covered'> & { readonly covered: string };

/** Up to so many narrower candles are read, and all slots are compared. If there are more, some slots are compared, spread over the answer. */
const MOST_CANDLES = 10_000;

/** The key of two intervals in the claim `intervals differ`: the wider one comes first. */
export function intervalPair(a: Interval, b: Interval): string {
  return INTERVAL_MS[a] > INTERVAL_MS[b] ? `${a} ${b}` : `${b} ${a}`;
}

/**
 * A SQL expression for a statement in which `s` is the series: its other intervals. It includes only candles, because a price is a mean, and
 * leaves out intervals that are known to differ in general. Null if there are none. So for most series the comparison costs nothing more.
 */
export function otherSeriesOf(
  sql: SqlOrTransaction,
  span: Span,
  differing: { readonly answers: number; readonly since: Instant },
) {
  const { answers, since } = differing;
  return sql`(select json_agg(json_build_object('id', o.id, 'interval', o.interval, 'covered', (o.covered * ${[span]}::tstzmultirange)::text,
      'hasDiffered', d.answers is not null))
    from market.series o left join ops.second_opinion d on d.claim = 'intervals differ' and d.requested_at > ${since}
      and d.key in (s.interval || ' ' || o.interval, o.interval || ' ' || s.interval)
    where o.coin_id = s.coin_id and o.quote = s.quote and o.id <> s.id and s.interval <= '24h' and o.interval <= '24h' and o.covered && ${span}::tstzrange
      and coalesce(d.answers, 0) < ${answers})`;
}

/** Reads the samples of the interval that has the most of them. If several have the same number, it reads those of the nearest width. */
export async function readSamples(
  sql: SqlOrTransaction,
  interval: Interval,
  { openTime }: CandleColumns,
  read: readonly OtherSeriesRead[],
): Promise<Sample[]> {
  const [first, last] = [openTime[0], openTime.at(-1)];
  if (first === undefined || last === undefined) return [];
  const answered = { from: first, to: last + INTERVAL_MS[interval] };
  const [best] = read
    .map((other) => ({ ...other, slots: sampleSlots(interval, other, answered) }))
    .filter(({ slots }) => slots.length > 0)
    .sort((a, b) => b.slots.length - a.slots.length || distance(a, interval) - distance(b, interval));
  if (best === undefined) return [];
  const { slots, hasDiffered } = best;
  const rows = await sql<{ slot: number; candle: [number | null, number | null, number | null, number | null] }[]>`
    select n::int - 1 as slot, json_build_array((array_agg(c.open order by c.open_time))[1], max(c.high), min(c.low),
      (array_agg(c.close order by c.open_time desc))[1]) as candle
    from unnest(${slots}::tstzrange[]) with ordinality as u (r, n)
    join market.candle c on c.series_id = ${best.id} and c.interval = ${best.interval}::market.candle_interval
      and c.open_time >= lower(r) and c.open_time < upper(r)
      and c.open_time >= ${slots[0]!.from} and c.open_time < ${slots.at(-1)!.to}
    group by n order by n`;
  return rows.map(({ slot, candle }) => {
    const span = slots[slot]!;
    return { interval: best.interval, slot: span, candle: [span.from, ...candle], hasDiffered };
  });
}

function distance({ interval }: Pick<OtherSeries, 'interval'>, from: Interval): number {
  return Math.abs(Math.log(INTERVAL_MS[interval] / INTERVAL_MS[from]));
}

/** Slots of the wider interval for which both the answer and the other series are complete. */
function sampleSlots(interval: Interval, other: OtherSeriesRead, answered: Span): Span[] {
  const wider = INTERVAL_MS[interval] > INTERVAL_MS[other.interval] ? interval : other.interval;
  const width = INTERVAL_MS[wider];
  const whole = intersect(parseMultirange(other.covered), [answered])
    .map(({ from, to }) => ({ from: ceilToGrid(from, wider), to: floorToGrid(to, wider) }))
    .filter(({ from, to }) => from < to);
  const count = whole.reduce((sum, { from, to }) => sum + (to - from) / width, 0);
  const narrower = Math.min(INTERVAL_MS[interval], INTERVAL_MS[other.interval]);
  const picked = Math.min(count, Math.ceil((MOST_CANDLES * narrower) / width));
  const nth = (n: number): Span => {
    let left = n;
    for (const { from, to } of whole) {
      const slots = (to - from) / width;
      if (left < slots) return { from: from + left * width, to: from + (left + 1) * width };
      left -= slots;
    }
    throw new RangeError(`there is no slot ${n} among ${count}`);
  };
  return Array.from({ length: picked }, (_, i) =>
    nth(picked === 1 ? count - 1 : Math.round((i * (count - 1)) / (picked - 1))),
  );
}
