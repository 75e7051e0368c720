/**
 * Candles of the made-up market: pure, at random access, and every coarse candle is exactly the aggregate of its fine ones.
 *
 * The candle of a day comes from a fractal path. Each candle is then split among those of its parts that exist: each part opens where the one before
 * it closed, one part has the high and one the low, and integer volumes add up. Some parts of a candle may be missing, but never all of them.
 */
import type { Instant } from '../../clock.ts';
import type { OhlcvCandle } from '../../contract/record/market-data.ts';
import { type CandleInterval, DAY, INTERVAL_MS } from '../../core/interval.ts';
import { below, mix, unit } from '../hash.ts';
import type { MadeUpCoin, MadeUpSeries } from './made-up-world.ts';

/** A candle before it is split into its parts. `key` is the seed of the parts; `volume` −1 means null. */
export type Bar = {
  readonly key: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  readonly volume: number;
  readonly hasMarketCap: boolean;
};

const LEVELS: readonly CandleInterval[] = ['24h', '12h', '6h', '1h', '30m', '15m', '5m'];
const PARTS = LEVELS.map((interval, i) =>
  i + 1 < LEVELS.length ? INTERVAL_MS[interval] / INTERVAL_MS[LEVELS[i + 1]!] : 0,
);
const OCTAVES = 11;

/**
 * Calls `visit` for each existing candle of the series that opens in `[from, to]`, ascending, until it returns false. There is no "now": the candles
 * continue to the end of the coin's life.
 */
export function visitBars(
  series: MadeUpSeries,
  interval: CandleInterval,
  from: Instant,
  to: Instant,
  visit: (openTime: Instant, bar: Bar) => boolean,
): void {
  const level = LEVELS.indexOf(interval);
  const { coin } = series;
  const first = Math.floor(Math.max(from, coin.start) / DAY);
  const last = Math.floor(Math.min(to, coin.end - 1) / DAY);
  const descend = (bar: Bar, at: Instant, depth: number): boolean => {
    if (depth === level) return at < from || at > to || visit(at, bar);
    const width = INTERVAL_MS[LEVELS[depth + 1]!];
    const parts = split(coin, bar, PARTS[depth]!, at, width);
    for (let i = 0; i < parts.length; i++) {
      const partAt = at + i * width;
      const part = parts[i];
      if (part && partAt <= to && partAt + width > from && !descend(part, partAt, depth + 1)) return false;
    }
    return true;
  };
  for (let day = first; day <= last; day++) {
    const bar = dayBar(series, day);
    if (bar && !descend(bar, day * DAY, 0)) return;
  }
}

/** The newest 5m bar that opens before `at`. If the bar is still open at `at`, only its part up to the next full minute. */
export function lastBarBefore(series: MadeUpSeries, at: Instant): { openTime: Instant; bar: Bar } | null {
  const { coin } = series;
  const descend = (bar: Bar, from: Instant, depth: number): { openTime: Instant; bar: Bar } | null => {
    if (depth === LEVELS.length - 1) return { openTime: from, bar: barUntil(coin, bar, from, at) };
    const width = INTERVAL_MS[LEVELS[depth + 1]!];
    const parts = split(coin, bar, PARTS[depth]!, from, width);
    for (let i = parts.length - 1; i >= 0; i--) {
      const part = parts[i];
      const found = part && from + i * width < at ? descend(part, from + i * width, depth + 1) : null;
      if (found) return found;
    }
    return null;
  };
  const oldest = Math.floor(coin.start / DAY);
  for (let day = Math.floor((Math.min(at, coin.end) - 1) / DAY); day >= oldest; day--) {
    const bar = dayBar(series, day);
    const found = bar && descend(bar, day * DAY, 0);
    if (found) return found;
  }
  return null;
}

/** The part of a 5m bar that has happened at `at`, in whole minutes, including the current one. After the close, the whole bar. */
export function barUntil(coin: MadeUpCoin, bar: Bar, openTime: Instant, at: Instant): Bar {
  const minutes = Math.ceil((at - openTime) / 60_000);
  if (minutes >= 5) return bar;
  const parts = distribute(bar, 5, mix(coin.key, 5));
  return parts.slice(1, Math.max(1, minutes)).reduce(append, parts[0]!);
}

/** Merges two neighbouring bars. */
export function append(a: Bar, b: Bar): Bar {
  return {
    key: a.key,
    open: a.open,
    high: Math.max(a.high, b.high),
    low: Math.min(a.low, b.low),
    close: b.close,
    volume: a.volume < 0 || b.volume < 0 ? -1 : a.volume + b.volume,
    hasMarketCap: b.hasMarketCap,
  };
}

export function toCandle(coin: MadeUpCoin, openTime: Instant, closeTime: Instant, bar: Bar): OhlcvCandle {
  return {
    openTime,
    closeTime,
    open: bar.open,
    high: bar.high,
    low: bar.low,
    close: bar.close,
    volume: bar.volume < 0 ? null : bar.volume,
    // Rounded down, like the upstream's market caps (upstream-api.md, 1.1 no 8).
    marketCap: bar.hasMarketCap ? Math.floor(bar.close * coin.supply) : null,
  };
}

function dayBar({ coin, quote, reference }: MadeUpSeries, day: number): Bar | null {
  if (isMissingDay(coin, day)) return null;
  const key = mix(mix(coin.key, quote === 'usd' ? 1 : 2), day);
  const volumeNull = coin.nulls.volume > 0 && unit(mix(mix(coin.key, 31), day)) < coin.nulls.volume;
  const hasMarketCap = coin.nulls.marketCap === 0 || unit(mix(mix(coin.key, 32), day)) >= coin.nulls.marketCap;
  const dollars = coin.turnover * Math.exp(1.5 * (unit(mix(mix(coin.key, 33), day)) - 0.5));
  const volume = volumeNull ? -1 : Math.floor(quote === 'usd' ? dollars : dollars / price(reference, day));
  if (quote === 'btc' && coin.index === reference.index)
    return { key, open: 1, high: 1, low: 1, close: 1, volume, hasMarketCap };
  const scale = quote === 'usd' ? 1 : 1 / price(reference, day);
  const nextScale = quote === 'usd' ? 1 : 1 / price(reference, day + 1);
  // The upstream's open differs slightly from the close before it (upstream-api.md, 1.1 no 7).
  const open = price(coin, day) * scale * (1 + 0.004 * (unit(mix(key, 11)) - 0.5));
  const close = price(coin, day + 1) * nextScale;
  const up = unit(mix(key, 12));
  const down = unit(mix(key, 13));
  const high = Math.max(open, close) * (1 + coin.volatility * up * up);
  const low = Math.min(open, close) * (1 - coin.volatility * down * down);
  return { key, open, high, low, close, volume, hasMarketCap };
}

/** Dollars at the start of a day: value noise of eleven octaves, from one day to 2.8 years. */
function price(coin: MadeUpCoin, day: number): number {
  let log = coin.logPrice;
  let amplitude = coin.volatility * 0.7;
  for (let octave = 0; octave < OCTAVES; octave++) {
    const key = mix(coin.key, 100 + octave);
    const cell = day >> octave;
    const a = unit(mix(key, cell));
    const b = octave === 0 ? a : unit(mix(key, cell + 1));
    const f = (day - (cell << octave)) / (1 << octave);
    log += amplitude * (2 * (a + (b - a) * f) - 1);
    amplitude *= Math.SQRT2;
  }
  return Math.exp(log);
}

const BLOCK_DAYS = 32;

/** Whole days may be missing, alone or in a row, but never the days on which a coin begins and ends. */
function isMissingDay(coin: MadeUpCoin, day: number): boolean {
  const from = day * DAY;
  if (from >= coin.end || from + DAY <= coin.start) return true;
  if (coin.gaps.day === 0 || holdsEdge(coin, from, DAY)) return false;
  if (unit(mix(mix(coin.key, 21), day)) < coin.gaps.day) return true;
  const block = mix(mix(coin.key, 22), Math.floor(day / BLOCK_DAYS));
  if (unit(block) >= coin.gaps.block) return false;
  const gapFrom = below(BLOCK_DAYS - 12, mix(block, 1));
  const gapDays = 2 + below(11, mix(block, 2));
  const inBlock = day % BLOCK_DAYS;
  return inBlock >= gapFrom && inBlock < gapFrom + gapDays;
}

/** Does `[from, from + width)` contain the coin's first or last 5m candle? */
function holdsEdge(coin: MadeUpCoin, from: Instant, width: number): boolean {
  return (coin.start >= from && coin.start < from + width) || (coin.end > from && coin.end <= from + width);
}

/** The `count` parts of a bar, null where a part does not exist; at least one exists. */
function split(coin: MadeUpCoin, bar: Bar, count: number, at: Instant, width: number): (Bar | null)[] {
  const mask = existingParts(coin, count, at, width);
  if (mask === (1 << count) - 1) return distribute(bar, count, count);
  const out = new Array<Bar | null>(count).fill(null);
  let existing = 0;
  for (let i = 0; i < count; i++) existing += (mask >> i) & 1;
  const bars = distribute(bar, existing, count);
  for (let i = 0, next = 0; i < count; i++) if ((mask >> i) & 1) out[i] = bars[next++]!;
  return out;
}

function existingParts(coin: MadeUpCoin, count: number, at: Instant, width: number): number {
  const all = (1 << count) - 1;
  const wholeLife = coin.start <= at && coin.end >= at + count * width;
  // The key depends on time, not on the bar: both quotes of a coin lack the same slots.
  const key = mix(mix(coin.key, count), Math.floor(at / 300_000));
  const holes = coin.gaps.node > 0 && unit(mix(key, 41)) < coin.gaps.node;
  if (wholeLife && !holes) return all;
  let alive = 0;
  let edges = 0;
  for (let i = 0; i < count; i++) {
    const from = at + i * width;
    if (from < coin.end && from + width > coin.start) alive |= 1 << i;
    if (holdsEdge(coin, from, width)) edges |= 1 << i;
  }
  if (!holes) return alive;
  const kept = (alive & mix(key, 42)) | edges;
  if (kept !== 0) return kept;
  // `alive` is not empty, because this bar exists. Take its first part.
  return alive & -alive;
}

/** Divides a bar into `count` neighbouring bars. `salt` makes a full split and a partial one different. */
function distribute(bar: Bar, count: number, salt: number): Bar[] {
  const { open, high, low, close, hasMarketCap } = bar;
  const key = mix(bar.key, salt);
  const out = new Array<Bar>(count);
  const highest = below(count, mix(key, 1));
  const lowest = below(count, mix(key, 2));
  const range = high - low;
  let from = open;
  let left = bar.volume;
  for (let i = 0; i < count; i++) {
    const partKey = mix(key, 16 + i);
    const last = i === count - 1;
    const middle = from + (close - from) / (count - i);
    const to = last ? close : Math.min(high, Math.max(low, middle + range * 0.4 * (unit(mix(partKey, 3)) - 0.5)));
    const top = Math.max(from, to);
    const bottom = Math.min(from, to);
    const up = unit(mix(partKey, 4));
    const down = unit(mix(partKey, 5));
    const volume = last || left < 0 ? left : Math.floor((left / (count - i)) * 2 * unit(mix(partKey, 6)));
    out[i] = {
      key: partKey,
      open: from,
      high: i === highest ? high : Math.min(high, top + (high - top) * 0.5 * up * up),
      low: i === lowest ? low : Math.max(low, bottom - (bottom - low) * 0.5 * down * down),
      close: to,
      volume,
      hasMarketCap,
    };
    if (left >= 0) left -= volume;
    from = to;
  }
  return out;
}
