/**
 * The main promise of the product as checks: candles and prices equal the market on all covered spans, coverage equals what was wanted, and
 * the upstream never counted more requests than the budget allowed.
 */
import { expect } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import type { Candle, Quote } from '../../src/core/candle.ts';
import { floorToGrid, INTERVAL_MS, type Interval, isPriceInterval, settledUntil } from '../../src/core/interval.ts';
import { intersect, type Span, type Spans, subtract } from '../../src/core/span.ts';
import type { Simulator } from '../../src/simulate.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import type { TestDatabase } from '../support/database.ts';

/** What can be checked: a warehouse, and its upstream. */
export type Seen = { readonly clock: Clock; readonly database: TestDatabase; readonly simulator: Simulator };

export type SeenSeries = {
  readonly id: number;
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: Interval;
  readonly wanted: Spans;
  readonly covered: Spans;
  /** Open time of its coin's first candle. Null when not known. */
  readonly first: number | null;
};

export async function seriesOf({ database }: Seen): Promise<readonly SeenSeries[]> {
  return database.sql<SeenSeries[]>`
    select s.id, s.coin_id, s.quote, s.interval, s.wanted, s.covered, c.first_data_at as first
    from market.series s join market.coin c on c.id = s.coin_id order by s.id`;
}

/** Checks that coverage is sound in itself (P1, P9), and that the chosen series equal the market (P4, P7). */
export async function checkStored(
  seen: Seen,
  label: string,
  choose: (series: SeenSeries) => boolean = () => true,
): Promise<void> {
  for await (const proof of verifySeries(seen.database.sql, {}, seen.clock.now())) {
    expect(proof.differences, `${label}: ${proof.coinId}`).toEqual([]);
    // Nobody changed a candle by hand, so what was repaired had been stored as answered.
    const mended = proof.notes.filter((note) => note.includes('mended'));
    expect(mended, `${label}: ${proof.coinId}`).toEqual([]);
  }
  for (const series of (await seriesOf(seen)).filter(choose))
    for (const span of series.covered) await compare(seen, series, span, label);
}

/** Checks that the rows inside coverage are exactly those of the market. */
async function compare(
  { database, simulator }: Seen,
  { id, coinId, quote, interval }: SeenSeries,
  span: Span,
  label: string,
): Promise<void> {
  const { from, to } = span;
  const truth = await truthOf(simulator, { coinId, quote, interval }, span);
  const stored = await database.sql`
    select open_time, open, high, low, close, volume, market_cap
    from ops.stored(${id}, ${interval}::market.candle_interval)
    where open_time >= ${from} and open_time < ${to} order by open_time`;
  expect(
    [...stored].map((row) => ({ ...row })),
    `${label}: ${coinId} ${interval}`,
  ).toEqual(truth);
}

/** What the market has of a span: candles, or prices as candles that never move. */
export async function truthOf(
  { data }: Simulator,
  { coinId, quote, interval }: Pick<SeenSeries, 'coinId' | 'quote' | 'interval'>,
  { from, to }: Span,
): Promise<Candle[]> {
  if (isPriceInterval(interval)) {
    const widthMs = INTERVAL_MS[interval];
    const prices = await data.tickerHistory({ coinId, quote, from, to, widthMs, limit: 1_000_000 });
    return (prices ?? []).map(({ timestamp, price, volume_24h: volume, market_cap: marketCap }) => {
      return { openTime: Date.parse(timestamp), open: price, high: price, low: price, close: price, volume, marketCap };
    });
  }
  const candles = await data.ohlcv({ coinId, quote, interval, from, to: to - 1, limit: 1_000_000 });
  return candles!.map(({ openTime, open, high, low, close, volume, marketCap }) => {
    return { openTime, open, high, low, close, volume, marketCap };
  });
}

/** Checks that we count at least what the upstream saw, and that it never had to refuse a request for its number (P3). */
export async function checkSpent({ database, simulator }: Seen, label: string): Promise<void> {
  const [ledger] = await database.sql<
    { counted: number }[]
  >`select coalesce(sum(month_spent), 0)::int as counted from ops.quota_spent`;
  const { requests, accounts } = simulator.counters();
  expect(ledger!.counted, `${label}: requests counted here against requests upstream saw`).toBeGreaterThanOrEqual(
    requests.total,
  );
  for (const account of accounts)
    expect(account.rejected, `${label}: the budget was overrun`).toEqual({ pace: 0, day: 0, month: 0 });
}

/** Wanted slots from the start of the coin that are neither covered nor malformed in three answers of the upstream. */
export async function missingOf(
  { database }: Seen,
  { id, interval, wanted, covered, first }: SeenSeries,
  now: number,
): Promise<Spans> {
  const began = first === null ? Number.NEGATIVE_INFINITY : floorToGrid(first, interval);
  const [written] = await database.sql<{ spans: Spans }[]>`
    select coalesce(range_agg(span), '{}') as spans from ops.second_opinion
    where series_id = ${id} and claim = 'malformed' and answers >= 3 and retry_at = 'infinity'`;
  const due = intersect(wanted, [{ from: began, to: now }]);
  return subtract(subtract(due, covered), written!.spans);
}

/** Without slots that may be missing because they could not be final yet at the last request: from `ago` and two candles before `now` on. */
export function unlessUnsettled(missing: Spans, interval: Interval, now: number, ago: number): Spans {
  const final = settledUntil(now - ago, interval) - 2 * INTERVAL_MS[interval];
  return intersect(missing, [{ from: Number.NEGATIVE_INFINITY, to: final }]);
}
