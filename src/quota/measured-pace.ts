/** Measures the pace of backfills, and how many requests a chunk needs, from the requests that they sent lately. Pure. */
import type { Instant } from '../clock.ts';

type SentForBackfill = {
  readonly sentAt: Instant;
  /** True when this request completed the chunk; false when it failed, or the chunk needed another answer. */
  readonly isLast: boolean;
};

export type MeasuredPace = {
  /** Average milliseconds from one request to the next. */
  readonly gapMs: number;
  /** How much the gap varies, as a fraction of it. */
  readonly spread: number;
  /** Requests for each chunk. */
  readonly perChunk: number;
};

/** An estimate from fewer requests would be wrong. */
const LEAST_REQUESTS = 30;
/** This many failures in a row are an outage. An outage must not affect the measured pace. */
const OUTAGE = 4;
/** A longer gap is a wait: for the end of a pause, for quota or for work. */
const LONGEST_GAP_MS = 20_000;
/** The same limit as a number of the plan's gaps; the longer of the two counts. */
const LONGEST_GAP = 20;
const MOST_BUCKETS = 8;
const LEAST_IN_BUCKET = 25;
/** The spread that is assumed even if all gaps were equal. */
const LEAST_SPREAD = 0.03;
const MOST_SPREAD = 0.5;
const MOST_PER_CHUNK = 10;

/** Null when there are too few requests. `planGapMs` is the gap that the plan demands; 0 without a limit. */
export function measurePace(sent: readonly SentForBackfill[], planGapMs: number): MeasuredPace | null {
  const steady = withoutOutages(sent.toSorted((a, b) => a.sentAt - b.sentAt));
  const longest = Math.max(LONGEST_GAP_MS, LONGEST_GAP * planGapMs);
  const gaps = steady
    .slice(1)
    .flatMap(({ sentAt, follows }, i) =>
      follows && sentAt - steady[i]!.sentAt <= longest ? [sentAt - steady[i]!.sentAt] : [],
    );
  if (gaps.length < LEAST_REQUESTS) return null;
  const gapMs = Math.max(planGapMs, mean(gaps));
  const last = steady.filter(({ isLast }) => isLast).length;
  const perChunk = Math.min(MOST_PER_CHUNK, steady.length / Math.max(1, last));
  return { gapMs, spread: spreadOf(gaps), perChunk };
}

/** `follows` is true when no outage was removed right before the request, so that its gap counts. */
function withoutOutages(
  sent: readonly SentForBackfill[],
): readonly (SentForBackfill & { readonly follows: boolean })[] {
  const steady: (SentForBackfill & { readonly follows: boolean })[] = [];
  let failed: SentForBackfill[] = [];
  let follows = true;
  const settle = () => {
    if (failed.length < OUTAGE) for (const one of failed) steady.push({ ...one, follows });
    else follows = false;
    failed = [];
  };
  for (const one of sent) {
    if (!one.isLast) {
      failed.push(one);
      continue;
    }
    settle();
    steady.push({ ...one, follows });
    follows = true;
  }
  settle();
  return steady;
}

/** How much the mean gap varies from part to part: the standard deviation of the means of up to 8 parts, as a fraction of the overall mean. */
function spreadOf(gaps: readonly number[]): number {
  const buckets = Math.min(MOST_BUCKETS, Math.floor(gaps.length / LEAST_IN_BUCKET));
  const all = mean(gaps);
  if (buckets < 2 || all === 0) return MOST_SPREAD / 4;
  const size = gaps.length / buckets;
  const means = Array.from({ length: buckets }, (_, i) =>
    mean(gaps.slice(Math.floor(i * size), Math.floor((i + 1) * size))),
  );
  const deviation = Math.sqrt(mean(means.map((value) => (value / all - 1) ** 2)));
  return Math.min(MOST_SPREAD, Math.max(LEAST_SPREAD, deviation));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
