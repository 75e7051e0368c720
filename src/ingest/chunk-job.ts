/** A chunk as the queue carries it: everything a worker in any process needs, and a name that is the same whoever cuts it. */
import type { Instant } from '../clock.ts';
import type { Quote } from '../core/candle.ts';
import type { Interval } from '../core/interval.ts';

export type ChunkJob = {
  /** The backfill it is asked for; a worker drops it when nobody wants that any more. */
  readonly backfillId: number;
  readonly seriesId: number;
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: Interval;
  readonly from: Instant;
  readonly to: Instant;
  /** Start of the run: what it has asked about since is not asked again. */
  readonly askedSince: Instant;
};

/** The queue refuses a second job of the same id while the first lives, so a chunk scheduled twice is one job. */
export function chunkJobId({ seriesId, from, to }: Pick<ChunkJob, 'seriesId' | 'from' | 'to'>): string {
  return `chunk-${seriesId}-${from / 1000}-${to / 1000}`;
}
