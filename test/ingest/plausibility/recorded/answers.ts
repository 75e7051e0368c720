/** Answers with real or made-up rows, each compared with what the answers before it have stored. */
import { expect } from 'vitest';
import type { Candle, CandleColumns } from '../../../../src/core/candle.ts';
import { DAY, INTERVAL_MS, type Interval } from '../../../../src/core/interval.ts';
import { findImplausible } from '../../../../src/ingest/plausibility/plausibility.ts';
import type { StoredCandle } from '../../../../src/store/candle/neighbours.ts';
import { COINBASE, placesOf, within } from './candles.ts';

export const toColumns = (candles: readonly Candle[]): CandleColumns => ({
  openTime: candles.map((c) => c.openTime),
  open: candles.map((c) => c.open),
  high: candles.map((c) => c.high),
  low: candles.map((c) => c.low),
  close: candles.map((c) => c.close),
  volume: candles.map((c) => c.volume),
  marketCap: candles.map((c) => c.marketCap),
});
export const stored = (c: Candle): StoredCandle => [c.openTime, c.open, c.high, c.low, c.close, c.volume, c.marketCap];

export type Result = { readonly asked: number; readonly found: readonly string[] };

/**
 * Answers of `size` slots, each compared with what the ones before it have stored: newest first as in a backfill, or oldest first as in
 * refreshes.
 */
export function implausibleOf(
  interval: Interval,
  candles: readonly Candle[],
  size: number,
  order: 'newest first' | 'oldest first',
): Result {
  const width = INTERVAL_MS[interval];
  const reach = Math.max(8 * width, DAY);
  const [first, last] = [candles[0]!.openTime, candles.at(-1)!.openTime];
  const end = last + width;
  const starts: number[] = [];
  for (let to = end; to > first; to -= size * width) starts.push(to - size * width);
  if (order === 'oldest first') starts.reverse();
  const rows = candles.map(stored);
  const found: string[] = [];
  for (const from of starts) {
    const to = from + size * width;
    const after = order === 'newest first';
    const final = after ? { from: to, to: end } : { from: starts[0]!, to: from };
    const beside = placesOf(candles, after ? { from: to, to: to + reach } : { from: from - reach, to: from });
    const [start, behind] = placesOf(candles, final);
    const implausible = findImplausible({
      interval,
      candles: toColumns(within(candles, { from, to })),
      beside: {
        candles: rows.slice(...beside),
        covered: (final.to - final.from) / width,
        coveredCandles: behind - start,
        final: [final],
      },
      samples: [],
    });
    if (implausible !== null) found.push(`${new Date(from).toISOString()} ${implausible.kind}: ${implausible.detail}`);
  }
  return { asked: starts.length, found };
}

/** At most this part of the requests may be second ones. */
const MOST = 0.005;

export function expectFew(name: string, results: readonly Result[]): void {
  const asked = results.reduce((sum, result) => sum + result.asked, 0);
  const found = results.flatMap((result) => result.found);
  const shown = found.slice(0, 40).join('; ');
  expect(found.length, `${name}: ${found.length} of ${asked} answers: ${shown}`).toBeLessThanOrEqual(asked * MOST);
}

export const BACKFILLS = [366, 100, 30, 12, 7].map((size) => [size, 'newest first'] as const);
export const REFRESHES = [3, 2, 1].map((size) => [size, 'oldest first'] as const);

/** When trading at Coinbase had begun. */
const TRADED = Date.UTC(2015, 0, 9);

/** In its first weeks nobody traded at Coinbase: the rows repeat, as they do in a false answer. That takes one request. */
export function withoutIdle(name: string, size: number, { asked, found }: Result): Result {
  const isIdle = (text: string) =>
    name === COINBASE && Date.parse(text.slice(0, 24)) < TRADED && text.includes(' constant: ');
  expect(found.filter(isIdle).length).toBe(name === COINBASE && size >= 12 ? 1 : 0);
  return { asked, found: found.filter((text) => !isIdle(text)) };
}
