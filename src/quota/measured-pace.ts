/** The pace that backfills really get, and how many requests a chunk needs, by the requests that they sent lately. Pure. */
import type { Instant } from '../clock.ts';

export type SentForBackfill = {
  readonly sentAt: Instant;
  /** The chunk is done with it; false: it failed, or its answer was not the last word. */
  readonly isLast: boolean;
};

export type MeasuredPace = {
  /** From one request to the next. */
  readonly gapMs: number;
  /** How much this varies: a part of it. */
  readonly spread: number;
  /** Requests for each chunk. */
  readonly perChunk: number;
};

/** An estimate from fewer requests would be wrong. */
const LEAST_REQUESTS = 30;
/** So many failures in a row are an outage, which says nothing about the pace without one. */
const OUTAGE = 4;
/** A longer silence is a wait: for a pause, a quota or work. */
const LONGEST_GAP_MS = 20_000;
/** The same, in gaps of the plan. */
const LONGEST_GAP = 20;
const MOST_BUCKETS = 8;
const LEAST_IN_BUCKET = 25;
/** How much a pace varies that looked even. */
const LEAST_SPREAD = 0.03;
const MOST_SPREAD = 0.5;
const MOST_PER_CHUNK = 10;

/** Null: too few requests. `planGapMs`: the gap that the plan demands; 0 without a limit. */
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

/** `follows`: the request before it is the one before it here, too. */
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

/** How much the mean of a stretch differs from the mean of all: the standard deviation, as a part of it. */
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
