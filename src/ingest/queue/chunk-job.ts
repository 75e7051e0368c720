/** A chunk as the queue carries it: everything a worker in any process needs, and a name that is the same whoever cuts it. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';

/** Who wants a chunk: what it is spent for, and whether it is still to be asked. A worker drops what nobody wants any more. */
export type Wish =
  /** As long as that backfill is running; from what the schedules leave. */
  | { readonly kind: 'backfill'; readonly backfillId: number }
  /** The newest end of a series, as long as it is tracked; scheduled work. */
  | { readonly kind: 'freshness' };

export type ChunkJob = Wish & {
  readonly seriesId: number;
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: Interval;
  readonly from: Instant;
  readonly to: Instant;
  /** Start of the run, or of the turn: what was asked about since is not asked again. */
  readonly askedSince: Instant;
};

/** As much of a job as names it. */
export type ChunkIdentity =
  | Pick<Extract<ChunkJob, { kind: 'backfill' }>, 'kind' | 'seriesId' | 'from' | 'to'>
  | Pick<Extract<ChunkJob, { kind: 'freshness' }>, 'kind' | 'seriesId'>;

/**
 * The queue refuses a second job of the same id while the first lives, so a chunk scheduled twice is one job. A series has one
 * newest end, wherever it lies by now.
 */
export function chunkJobId(job: ChunkIdentity): string {
  if (job.kind === 'freshness') return `fresh-${job.seriesId}`;
  return `chunk-${job.seriesId}-${job.from / 1000}-${job.to / 1000}`;
}

/** For messages. */
export function describeChunk({ coinId, interval, from, to }: ChunkJob): string {
  const day = (at: Instant) => new Date(at).toISOString().slice(0, 10);
  return `${coinId} ${interval} ${day(from)}…${day(to)}`;
}

/** As `ops.quota_spent` and `chandler quota` name who a request is for. */
export const FRESHNESS = 'freshness';
