/**
 * Writes one series as a line of an attestation, and reads it. The line is short: a month takes eight characters, or some eighteen if slots are
 * missing or empty.
 */
import type { Instant } from '../../clock.ts';
import { monthReset } from '../../core/calendar.ts';
import { isQuote, type Quote } from '../../core/candle.ts';
import { countSlots } from '../../core/chunk.ts';
import { type Interval, isInterval, nameOfSeries, type SeriesName } from '../../core/interval.ts';
import { type Month, type SeriesState, sealOf } from './series-state.ts';

/** Bytes of the seal, which is the proof; and of the digest of a month, of the link and of the records, which show what differs. */
export const SEAL_BYTES = 16;
export const SHORT_BYTES = 6;

export type AttestedSeries = SeriesName & {
  readonly steps: number;
  /** The first sixteen bytes; null: the whole digests are unknown. */
  readonly seal: Buffer | null;
  /** The first six bytes. */
  readonly link: Buffer;
  /** The first six bytes. */
  readonly records: Buffer;
  /** With the first six bytes of each digest. */
  readonly months: readonly Month[];
};

/** `["btc-bitcoin usd 24h",27,"2024-01","<base64>",[[0,20,21]]]`: steps, first month, digests, and the incomplete months. */
export function writeSeries(state: SeriesState): string {
  const { interval, steps, link, records, months } = state;
  const digests = Buffer.concat([
    sealOf(state).subarray(0, SEAL_BYTES),
    // Without evidence there is no link.
    link.length === 0 ? Buffer.alloc(SHORT_BYTES) : link.subarray(0, SHORT_BYTES),
    records.subarray(0, SHORT_BYTES),
    ...months.map(({ digest }) => digest.subarray(0, SHORT_BYTES)),
  ]);
  const incomplete = months.flatMap(({ from, candles, slots }, i) => {
    const all = slotsIn(from, interval);
    if (candles === all && slots === all) return [];
    return [candles === slots ? [i, candles] : [i, candles, slots]];
  });
  const first = months[0] === undefined ? '' : nameOf(months[0].from);
  const line = [nameOfSeries(state), steps, first, digests.toString('base64').replace(/=+$/, '')];
  return JSON.stringify(incomplete.length === 0 ? line : [...line, incomplete]);
}

/** Null for input that `writeSeries` never writes. */
export function readSeries(line: unknown): AttestedSeries | null {
  if (!Array.isArray(line)) return null;
  const [name, steps, first, text, incomplete = []] = line as unknown[];
  if (typeof name !== 'string' || typeof text !== 'string' || typeof first !== 'string') return null;
  const [coinId, quote, interval] = name.split(' ') as [string, string?, string?];
  const isNamed = isQuote(quote ?? '') && interval !== undefined && isInterval(interval);
  if (!isNamed || !Number.isInteger(steps) || !Array.isArray(incomplete)) return null;
  const bytes = Buffer.from(text, 'base64');
  const count = (bytes.length - SEAL_BYTES) / SHORT_BYTES - 2;
  const begins = count === 0 ? 0 : Date.parse(`${first}-01T00:00:00Z`);
  if (!Number.isInteger(count) || count < 0 || !Number.isFinite(begins)) return null;
  const counts = new Map((incomplete as number[][]).map(([i, candles, slots = candles]) => [i, { candles, slots }]));
  const short = (i: number) => bytes.subarray(SEAL_BYTES + i * SHORT_BYTES, SEAL_BYTES + (i + 1) * SHORT_BYTES);
  const months: Month[] = [];
  for (let i = 0, from = begins; i < count; i++, from = monthReset(from)) {
    const all = slotsIn(from, interval);
    const { candles = all, slots = all } = counts.get(i) ?? {};
    months.push({ from, candles, slots, digest: short(i + 2) });
  }
  return {
    coinId,
    quote: quote as Quote,
    interval,
    steps: steps as number,
    seal: bytes.subarray(0, SEAL_BYTES),
    link: short(0),
    records: short(1),
    months,
  };
}

/** Whether `seal` is the seal of these whole digests. */
export function isSealed(seal: Buffer, digests: Parameters<typeof sealOf>[0]): boolean {
  return sealOf(digests).subarray(0, SEAL_BYTES).equals(seal);
}

/** `2024-01`. */
export function nameOf(month: Instant): string {
  return new Date(month).toISOString().slice(0, 7);
}

/** Counts slots by their open time. With slots of a week or more, the number differs between months. */
export function slotsIn(month: Instant, interval: Interval): number {
  return countSlots([{ from: month, to: monthReset(month) }], interval);
}
