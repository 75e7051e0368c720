/**
 * Stores the months of all series of an export in little memory. They come file by file, and are written or compared series by series. In JSON they
 * are as short as in an attestation: `["2021-01","<base64>",[[0,20,21]]]`. These are the first month, the concatenated digests, and the incomplete
 * months, each as its index, final rows and covered slots.
 */
import type { Instant } from '../../clock.ts';
import { monthReset } from '../../core/calendar.ts';
import type { Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import { nameOf, SHORT_BYTES, slotsIn } from '../../views/attestation/series-line.ts';
import { DIGEST_OF_NOTHING, type Month } from '../../views/attestation/series-state.ts';

export type EncodedMonths = readonly [
  first: string,
  digests: string,
  incomplete?: readonly (readonly [place: number, rows: number, slots: number])[],
];

export type MonthBook = {
  /** `months` must ascend. The book keeps the months of a series in order of time, whatever the order of the calls. */
  add(series: string, months: readonly Month[]): void;
  /** Adds the months from JSON that lie within `span`. */
  addEncoded(series: string, encoded: EncodedMonths, interval: Interval, span: Span): void;
  /** Null when no month of the series is known. */
  encode(series: string, interval: Interval): EncodedMonths | null;
  months(series: string): Month[];
};

type Entry = { first: Instant; next: Instant; digests: Buffer; counts: Uint16Array };

/** `bytesEach`: how many bytes of a digest are kept. Attestations keep the first six bytes, and a seal needs all. */
export function createMonthBook(bytesEach: number = SHORT_BYTES): MonthBook {
  const entries = new Map<string, Entry>();
  const add = (series: string, added: readonly Month[]) => {
    if (added.length === 0) return;
    const entry = entries.get(series);
    if (entry !== undefined && added[0]!.from < entry.next) {
      const all = inOrder(months(series), added);
      entries.delete(series);
      add(series, all);
      return;
    }
    const known = entry ?? emptyFrom(added[0]!.from);
    const all = [...between(known.next, added[0]!.from), ...added];
    const digests = all.map(({ digest }) => digest.subarray(0, bytesEach));
    entries.set(series, {
      first: known.first,
      next: monthReset(all.at(-1)!.from),
      digests: Buffer.concat([known.digests, ...digests]),
      counts: Uint16Array.from([...known.counts, ...all.flatMap(({ candles, slots }) => [candles, slots])]),
    });
  };
  const months = (series: string): Month[] => {
    const entry = entries.get(series);
    if (entry === undefined) return [];
    const { digests, counts } = entry;
    const out: Month[] = [];
    for (let i = 0, from = entry.first; i < counts.length / 2; i++, from = monthReset(from)) {
      const digest = digests.subarray(i * bytesEach, (i + 1) * bytesEach);
      out.push({ from, candles: counts[2 * i]!, slots: counts[2 * i + 1]!, digest });
    }
    return out;
  };
  return {
    add,
    addEncoded: (series, encoded, interval, span) => {
      const within = decodeMonths(encoded, interval, bytesEach).filter(
        ({ from }) => from >= span.from && from < span.to,
      );
      // Months without coverage at both ends are dropped: they lie between the months of other files.
      const isCovered = ({ slots }: Month) => slots > 0;
      add(series, within.slice(Math.max(0, within.findIndex(isCovered)), within.findLastIndex(isCovered) + 1));
    },
    encode: (series, interval) => {
      const entry = entries.get(series);
      if (entry === undefined) return null;
      const incomplete = months(series).flatMap(({ from, candles, slots }, i) => {
        const all = slotsIn(from, interval);
        return candles === all && slots === all ? [] : [[i, candles, slots] as const];
      });
      const encoded = [nameOf(entry.first), entry.digests.toString('base64').replace(/=+$/, '')] as const;
      return incomplete.length === 0 ? encoded : [...encoded, incomplete];
    },
    months,
  };
}

/** @throws Error when the input is no result of `encode` */
export function decodeMonths(
  [first, text, incomplete = []]: EncodedMonths,
  interval: Interval,
  bytesEach = SHORT_BYTES,
): Month[] {
  const digests = Buffer.from(text, 'base64');
  const begin = Date.parse(`${first}-01T00:00:00Z`);
  if (!Number.isFinite(begin) || digests.length % bytesEach !== 0) throw new Error(`no months of a series: ${first}`);
  const counts = new Map(incomplete.map(([place, rows, slots]) => [place, { rows, slots }]));
  const out: Month[] = [];
  for (let i = 0, from = begin; i < digests.length / bytesEach; i++, from = monthReset(from)) {
    const all = slotsIn(from, interval);
    const { rows = all, slots = all } = counts.get(i) ?? {};
    out.push({ from, candles: rows, slots, digest: digests.subarray(i * bytesEach, (i + 1) * bytesEach) });
  }
  return out;
}

function emptyFrom(first: Instant): Entry {
  return { first, next: first, digests: Buffer.alloc(0), counts: new Uint16Array(0) };
}

/** Merges two lists; an added month replaces a known one. Archived months may be younger than those that Postgres has again. */
function inOrder(known: readonly Month[], added: readonly Month[]): Month[] {
  const isAdded = new Set(added.map(({ from }) => from));
  const others = known.filter(({ from, slots }) => slots > 0 && !isAdded.has(from));
  const all = [...others, ...added].sort((a, b) => a.from - b.from);
  return all.flatMap((month, i) => [...(i === 0 ? [] : between(monthReset(all[i - 1]!.from), month.from)), month]);
}

/** Months without coverage, between two months that have some. */
function between(from: Instant, to: Instant): Month[] {
  const out: Month[] = [];
  for (let at = from; at < to; at = monthReset(at))
    out.push({ from: at, candles: 0, slots: 0, digest: DIGEST_OF_NOTHING });
  return out;
}
