/**
 * Sums what each step of the evidence of a series reported. For a slot, that is the value that the next step about it replaced (`market.revision`),
 * or the candle that is stored now, if there is no next step. Pure.
 */
import type { Instant } from '../../clock.ts';
import { contains, normalize, type Span, subtract } from '../../core/span.ts';
import { minus, modulo, NOTHING, plus, type Sums, sumsOf } from './modulo.ts';
import type { Bucket, Evidence, Revision, SeriesRow } from './read-series.ts';
import type { WrongRecord } from './records.ts';
import { makesFinal, type Segment, type Step, segmentAt, segmentsOf, stepsOf } from './steps.ts';

/** For one row of `market.evidence`: the sums that were found, minus the sums in the row. */
export type RowDifference = {
  readonly row: number;
  readonly difference: Sums;
  /** Some of its slots were removed because of their age, so their values are unknown. */
  readonly isPartlyGone: boolean;
};

type Stored = {
  readonly all: Sums;
  /** The candles inside coverage, as the series records it. */
  readonly final: Sums;
  /** Where candles are in slots that one answer reported empty. */
  readonly inEmpty: readonly Span[];
  /** Number of candles that retention has recorded as removed, but that are still there. */
  readonly left: number;
  /** Number of candles that are off the grid, impossible, or from the future. */
  readonly odd: number;
  /** Where candles are that are not final. */
  readonly outside: readonly Span[];
};

export type Account = {
  readonly steps: readonly Step[];
  readonly segments: readonly Segment[];
  readonly stored: Stored;
  /** What a step reported, by its index. */
  readonly told: (step: number) => Sums;
  readonly rows: readonly RowDifference[];
  /** Revisions that contradict the steps, and revisions that are missing: what is wrong, and where. */
  readonly revisions: readonly WrongRecord[];
};

type Ledger = {
  readonly bounds: readonly Instant[];
  addBucket(bucket: Bucket): void;
  addRevision(revision: Revision): void;
  close(): Account;
};

/** Takes the sums and the revisions of one series, one after the other. `width`: that of a slot, in milliseconds. */
export function openLedger(series: SeriesRow, evidence: readonly Evidence[], width: number): Ledger {
  const steps = stepsOf(evidence, width);
  const segments = segmentsOf(steps, [series.covered, series.emptyOnce]);
  const told = createSums(steps.length);
  const revisions = createRevisions(steps, segments, told, width);
  const stored = createStored(series, steps, segments, told);
  return {
    bounds: segments.slice(1).map(({ from }) => from),
    addBucket: stored.add,
    addRevision: revisions.add,
    close: () => ({
      steps,
      segments,
      stored: stored.close(),
      told: told.of,
      rows: compareRows(evidence, steps, segments, told),
      revisions: revisions.close(),
    }),
  };
}

type StepSums = {
  add(step: number, sums: Sums): void;
  of(step: number): Sums;
};

/** Takes twenty bytes for each step. */
function createSums(count: number): StepSums {
  const candles = new Int32Array(count);
  const digest = new BigUint64Array(count);
  const locator = new BigUint64Array(count);
  return {
    add: (step, sums) => {
      candles[step]! += sums.candles;
      digest[step]! += sums.digest;
      locator[step]! += sums.locator;
    },
    of: (step) => ({ candles: candles[step]!, digest: digest[step]!, locator: locator[step]! }),
  };
}

function createStored(series: SeriesRow, steps: readonly Step[], segments: readonly Segment[], told: StepSums) {
  let [all, final] = [NOTHING, NOTHING];
  let [left, odd] = [0, 0];
  const inEmpty: Span[] = [];
  const outside: Span[] = [];
  const mended = (after: number) => steps.filter(({ kind, number }) => kind === 'mended' && number > after);
  const removed = steps
    .filter(({ kind }) => kind === 'retention')
    .flatMap(({ slots, number }) => subtract(slots, normalize(mended(number).flatMap((step) => step.slots))));
  const removedTo = Math.max(Number.NEGATIVE_INFINITY, ...removed.map(({ to }) => to));
  const removal = steps.findLast(({ kind }) => kind === 'retention')?.number ?? 0;
  /** Slots that were answered again after a removal, and then mended, count like any other candle that is not final. */
  const isMended = (step: Step | undefined) => step?.kind === 'mended' && step.number > removal;
  return {
    add(bucket: Bucket): void {
      const segment = segments[bucket.bucket]!;
      const sums = {
        candles: bucket.candles,
        digest: modulo(BigInt(bucket.digest)),
        locator: modulo(BigInt(bucket.locator)),
      };
      const isFinal = contains(series.covered, bucket.first);
      // Retention first records the removal in the evidence. It removes the partition as soon as nobody reads it.
      const last = segment.tellers.at(-1);
      if (!isFinal && bucket.last < removedTo && !isMended(steps[last ?? -1])) {
        left += bucket.candles - bucket.odd;
        // Impossible candles still count: no answer stored them, so retention did not remove them.
        odd += bucket.odd;
        return;
      }
      if (last !== undefined && makesFinal(steps[last]!)) told.add(last, sums);
      all = plus(all, sums);
      if (isFinal) final = plus(final, sums);
      else outside.push({ from: bucket.first, to: bucket.last });
      if (contains(series.emptyOnce, bucket.first)) inEmpty.push({ from: bucket.first, to: bucket.last });
      odd += bucket.odd;
    },
    close: (): Stored => ({ all, final, inEmpty, left, odd, outside }),
  };
}

function createRevisions(steps: readonly Step[], segments: readonly Segment[], told: StepSums, width: number) {
  const places = new Map(steps.map(({ number }, place) => [number, place]));
  /** The number of revisions, by segment and step. */
  const seen = new Map<string, number>();
  const wrong: WrongRecord[] = [];
  let before: Revision | null = null;
  return {
    add(revision: Revision): void {
      const { openTime, step } = revision;
      const at = { from: openTime, to: openTime + width };
      const isTwice = before?.seriesId === revision.seriesId && before.openTime === openTime && before.step === step;
      before = revision;
      // A revision from before evidence was kept: no step describes it.
      if (step === null) return;
      const place = places.get(step);
      const segment = segmentAt(segments, openTime);
      const { tellers } = segments[segment]!;
      const teller = place === undefined ? -1 : tellers.indexOf(place);
      const earlier = tellers[teller - 1];
      // A repair removes candles that are off the grid, and keeps them as revisions.
      const isMended = place !== undefined && steps[place]!.kind === 'mended';
      const isOffGrid = !revision.isOnGrid && !isMended;
      // An answer keeps what it replaces only if that was final, and a repair ends that. A repair also keeps candles that no step reported.
      const isOfNone = teller < 0 || (!isMended && (earlier === undefined || !makesFinal(steps[earlier]!)));
      if (place === undefined || isOfNone || isTwice || isOffGrid) {
        const why = isTwice ? 'is stored twice' : `belongs to step ${step}, which did not change this slot`;
        wrong.push({ text: `a revision ${why}`, at: [at], step });
        return;
      }
      const key = `${segment}/${place}`;
      seen.set(key, (seen.get(key) ?? 0) + 1);
      const sums = sumsOf(revision.hash, Math.round(openTime / width));
      if (revision.isContradictory)
        wrong.push({ text: 'a revision records that the slot was empty, but has values', at: [at], step });
      if (!revision.wasThere) return;
      if (isMended) told.add(place, sums);
      if (earlier !== undefined) told.add(earlier, sums);
    },
    close() {
      for (const [i, { from, to, tellers }] of segments.entries()) {
        for (const [n, place] of tellers.entries()) {
          const earlier = tellers[n - 1];
          // Only an answer that replaced something final kept a revision of each slot, even of an empty one.
          if (earlier === undefined || !makesFinal(steps[earlier]!) || steps[place]!.kind !== 'answer') continue;
          const lacking = (to - from) / width - (seen.get(`${i}/${place}`) ?? 0);
          if (lacking > 0)
            wrong.push({
              text: `step ${steps[place]!.number} changed final values, but their revision is missing`,
              at: [{ from, to }],
              step: steps[place]!.number,
            });
        }
      }
      return wrong;
    },
  };
}

function compareRows(
  evidence: readonly Evidence[],
  steps: readonly Step[],
  segments: readonly Segment[],
  told: StepSums,
): RowDifference[] {
  const gone = new Set<number>();
  for (const { tellers } of segments) {
    for (const [n, place] of tellers.entries()) {
      const earlier = tellers[n - 1];
      if (earlier !== undefined && steps[place]!.kind === 'retention') gone.add(steps[earlier]!.row);
    }
  }
  const sums = evidence.map(() => NOTHING);
  for (const [place, { row }] of steps.entries()) sums[row] = plus(sums[row]!, told.of(place));
  return evidence.flatMap((row, place) => {
    const difference = minus(sums[place]!, row);
    const isPartlyGone = gone.has(place) || row.kind === 'retention';
    return isPartlyGone || difference.candles !== 0 || difference.digest !== 0n || difference.locator !== 0n
      ? [{ row: place, difference, isPartlyGone }]
      : [];
  });
}
