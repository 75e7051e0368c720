/**
 * The state of one series in an attestation: digests of its months, of its evidence and of the records beside it. docs/proof.md has the exact
 * bytes.
 */
import { createHash } from 'node:crypto';
import type { Instant } from '../../clock.ts';
import { monthReset, monthStart } from '../../core/calendar.ts';
import { countSlots } from '../../core/chunk.ts';
import type { Interval, SeriesName } from '../../core/interval.ts';
import { intersect, type Spans } from '../../core/span.ts';

/** One UTC month, by open time. */
export type Month = {
  readonly from: Instant;
  /** Number of final candles. */
  readonly candles: number;
  /** Number of covered slots, with a candle or known to be empty. */
  readonly slots: number;
  /** The digest of candles and coverage: 32 bytes. */
  readonly digest: Buffer;
};

export type SeriesState = SeriesName & {
  /** Steps of its evidence; 0 when there is none. */
  readonly steps: number;
  /** The newest link of its evidence; empty when there is none. */
  readonly link: Buffer;
  /** The digest of its rows in `market.revision`, and of the requests that its evidence names: 32 bytes. */
  readonly records: Buffer;
  /** All months from the first one with coverage to the last. */
  readonly months: readonly Month[];
};

/** The final candles of a month: their number, and the SHA-256 of their bytes in the order of time. */
export type MonthOfCandles = { readonly from: Instant; readonly candles: number; readonly sha256: string };

export const SHA256_OF_NOTHING = createHash('sha256').digest('hex');

/** No real coverage goes further. Coverage that somebody wrote by hand could have millions of months. */
const END = Date.UTC(10_000, 0, 1);

/** The months of a series from its coverage and its candles; both as of one instant. */
export function monthsOf(covered: Spans, found: readonly MonthOfCandles[], interval: Interval): Month[] {
  const [first, last] = [covered[0], covered.at(-1)];
  if (first === undefined || last === undefined || !Number.isFinite(first.from) || last.to > END) return [];
  const months: Month[] = [];
  const candlesOf = new Map(found.map((month) => [month.from, month]));
  for (let from = monthStart(first.from); from < last.to; from = monthReset(from)) {
    const spans = intersect(covered, [{ from, to: monthReset(from) }]);
    const { candles = 0, sha256 = SHA256_OF_NOTHING } = candlesOf.get(from) ?? {};
    months.push({ from, candles, slots: countSlots(spans, interval), digest: digestOf(sha256, spans) });
  }
  return months;
}

/** SHA-256 of: the SHA-256 of the candles; then start and end of each covered span of the month, in seconds, as signed integers of eight bytes. */
function digestOf(sha256OfCandles: string, spans: Spans): Buffer {
  const hash = createHash('sha256').update(sha256OfCandles, 'hex');
  const bytes = Buffer.alloc(16 * spans.length);
  for (const [i, { from, to }] of spans.entries()) {
    bytes.writeBigInt64BE(BigInt(from) / 1000n, 16 * i);
    bytes.writeBigInt64BE(BigInt(to) / 1000n, 16 * i + 8);
  }
  return hash.update(bytes).digest();
}

/** The digest of a month without coverage that lies between months with coverage. */
export const DIGEST_OF_NOTHING = digestOf(SHA256_OF_NOTHING, []);

/** Seals all whole digests of a series, of which its line has only the first bytes. */
export function sealOf({
  months,
  link,
  records,
}: Pick<SeriesState, 'link' | 'records'> & { readonly months: readonly Pick<Month, 'digest'>[] }): Buffer {
  return createHash('sha256')
    .update(Buffer.concat([link, records, ...months.map(({ digest }) => digest)]))
    .digest();
}
