/** Real candles: those of the simulator, one more series (README.md), and longer candles made from the recorded hours. */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Candle } from '../../../../src/core/candle.ts';
import { type CandleInterval, INTERVAL_MS, type PriceInterval, priceInterval } from '../../../../src/core/interval.ts';
import { historyOf } from '../../../../src/simulator/history.ts';
import { readRecordedSeries } from '../../../../src/simulator/recorded/recorded-series.ts';

export const recorded = readRecordedSeries();
const recordedHours = recorded.find(({ interval }) => interval === '1h')!.candles;
export const COINBASE = 'bitcoin at Coinbase 24h';
/** The recorded candles, and the longer candles made from the recorded hours. */
export const REAL: readonly (readonly [name: string, interval: CandleInterval, candles: readonly Candle[]])[] = [
  ...recorded.map(({ coinId, interval, candles }) => [`${coinId} ${interval}`, interval, candles] as const),
  [COINBASE, '24h', readCoinbase()],
  ...(['6h', '12h', '24h'] as const).map(
    (interval) => [`hours as ${interval}`, interval, rollUp(recordedHours, interval)] as const,
  ),
];

/** Price series made from the recorded candles: means of days, and of hours where hours were recorded. */
export const PRICES: readonly (readonly [name: string, interval: PriceInterval, prices: readonly Candle[]])[] = [
  ...(['1h', '2h', '3h', '6h', '12h', '1d'] as const).map((width) => {
    const interval = priceInterval(width);
    return [`hours as ${interval}`, interval, pricesOf(recordedHours, '1h', interval)] as const;
  }),
  ...REAL.filter(([, interval, candles]) => interval === '24h' && candles.length > 500).map(
    ([name, , candles]) => [name, 'prices-1d', pricesOf(candles, '24h', 'prices-1d')] as const,
  ),
];

/** A price is the mean of its span, as upstream's prices are (upstream-api.md, 1.7), in the form of a candle. */
export function pricesOf(candles: readonly Candle[], of: CandleInterval, interval: PriceInterval): Candle[] {
  const [from, to] = [candles[0]!.openTime, candles.at(-1)!.openTime + INTERVAL_MS[of]];
  const closed = candles.map((candle) => ({ ...candle, closeTime: candle.openTime + INTERVAL_MS[of] - 1_000 }));
  const question = {
    coinId: 'any',
    quote: 'usd',
    from,
    to,
    widthMs: INTERVAL_MS[interval],
    limit: closed.length,
  } as const;
  return historyOf(question, (_, start, end) => within(closed, { from: start, to: end }) as typeof closed).map(
    (tick) => {
      const { price, volume_24h: volume, market_cap: marketCap } = tick;
      return {
        openTime: Date.parse(tick.timestamp),
        open: price,
        high: price,
        low: price,
        close: price,
        volume,
        marketCap,
      };
    },
  );
}

/** Ascending candles. */
export function within(candles: readonly Candle[], span: { from: number; to: number }): readonly Candle[] {
  return candles.slice(...placesOf(candles, span));
}

/** Where the candles of the span begin and end in the array. */
export function placesOf(
  candles: readonly Candle[],
  { from, to }: { from: number; to: number },
): [start: number, end: number] {
  const at = (time: number) => {
    let [low, high] = [0, candles.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (candles[middle]!.openTime < time) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return [at(from), at(to)];
}

/** See README.md. */
function readCoinbase(): Candle[] {
  const file = readFileSync(new URL('Coinbase_BTCUSD_d.csv.gz', import.meta.url));
  const [, , ...lines] = gunzipSync(file).toString('utf8').trimEnd().split(/\r?\n/);
  return lines.reverse().map((line) => {
    const [date, , open, high, low, close, , volume] = line.split(',');
    const [o, h, l, c] = [open, high, low, close].map(Number) as [number, number, number, number];
    const openTime = Date.parse(`${date}T00:00:00Z`);
    return { openTime, open: o, high: h, low: l, close: c, volume: Math.round(Number(volume)), marketCap: null };
  });
}

/** Whole slots only. */
function rollUp(hours: readonly Candle[], interval: CandleInterval): Candle[] {
  const [width, rolled] = [INTERVAL_MS[interval], [] as Candle[]];
  for (
    let from = Math.ceil(hours[0]!.openTime / width) * width;
    from + width <= hours.at(-1)!.openTime;
    from += width
  ) {
    const parts = within(hours, { from, to: from + width });
    rolled.push({
      openTime: from,
      open: parts[0]!.open,
      high: Math.max(...parts.map((part) => part.high!)),
      low: Math.min(...parts.map((part) => part.low!)),
      close: parts.at(-1)!.close,
      volume: parts.reduce((sum, part) => sum + part.volume!, 0),
      marketCap: null,
    });
  }
  return rolled;
}
