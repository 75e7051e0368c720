/** Ticker history computed from candles: price, volume and market cap of a coin in each stretch of time. */
import type { Instant } from '../clock.ts';
import type { HistoricalTick } from '../contract/record/catalogue.ts';
import type { OhlcvCandle, TickerHistoryQuery } from '../contract/record/market-data.ts';
import { formatTime } from '../contract/time.ts';
import { type CandleInterval, DAY, INTERVAL_MS, INTERVALS } from '../core/interval.ts';

/** At most `limit` candles that open in `[from, to)`, ascending. */
export type CandlesBetween = (
  interval: CandleInterval,
  from: Instant,
  to: Instant,
  limit: number,
) => readonly OhlcvCandle[];

/**
 * The price of a stretch is the mean of its candles' open, high, low and close, like the upstream's daily prices (upstream-api.md, 1.7). Its volume
 * is that of the day until its end, and its market cap is the last known one.
 */
export function historyOf(query: TickerHistoryQuery, candlesBetween: CandlesBetween): HistoricalTick[] {
  const { from, to, widthMs, limit } = query;
  const interval = INTERVALS.findLast((one) => widthMs % INTERVAL_MS[one] === 0);
  if (!interval) return [];
  const first = Math.ceil(from / widthMs) * widthMs;
  const candles = candlesBetween(interval, first, to, limit * (widthMs / INTERVAL_MS[interval]));
  if (candles.length === 0) return [];
  const before = candlesBetween(
    interval,
    candles[0]!.openTime - DAY,
    candles[0]!.openTime,
    DAY / INTERVAL_MS[interval],
  );
  const volumeUntil = trailingDay([...before, ...candles], INTERVAL_MS[interval]);
  const out: HistoricalTick[] = [];
  for (let i = 0; i < candles.length && out.length < limit; ) {
    const start = Math.floor(candles[i]!.openTime / widthMs) * widthMs;
    let next = i;
    while (next < candles.length && candles[next]!.openTime < start + widthMs) next++;
    const part = candles.slice(i, next);
    out.push({
      timestamp: formatTime(start),
      price: mean(part.map(({ open, high, low, close }) => mean([open, high, low, close]))),
      volume_24h: volumeUntil(part.at(-1)!.openTime),
      market_cap: part.at(-1)!.marketCap,
    });
    i = next;
  }
  return out;
}

/** Volume of the day that ends with the candle which opens at `openTime`; call it with ascending instants. */
function trailingDay(candles: readonly OhlcvCandle[], widthMs: number): (openTime: Instant) => number | null {
  let first = 0;
  let next = 0;
  let sum = 0;
  let known = 0;
  const add = (candle: OhlcvCandle, sign: 1 | -1) => {
    if (candle.volume === null) return;
    sum += sign * candle.volume;
    known += sign;
  };
  return (openTime) => {
    while (next < candles.length && candles[next]!.openTime <= openTime) add(candles[next++]!, 1);
    while (candles[first]!.openTime < openTime + widthMs - DAY) add(candles[first++]!, -1);
    return known === 0 ? null : sum;
  };
}

function mean(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}
