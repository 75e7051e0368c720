/** The job of a chunk: everything that a worker of any process needs. The same chunk has the same job id in all processes. */
import type { Instant } from '../../clock.ts';
import { type Interval, isPriceInterval, type SeriesName } from '../../core/interval.ts';

/** What a chunk is for. It decides which quota pays for the chunk, and whether the chunk is still wanted: a worker drops a chunk that is not. */
type Wish =
  /** Wanted while the backfill is running; it uses the quota that the schedules leave. */
  | { readonly kind: 'backfill'; readonly backfillId: number }
  /** The newest end of a series. Wanted while the series is tracked; it counts as scheduled work. */
  | { readonly kind: 'freshness' }
  /**
   * Covered slots that one answer reported as empty, and the candles beside them. Wanted until a second answer confirms that. It uses the quota that
   * the schedules leave, and never waits in a queue.
   */
  | { readonly kind: 'holes' };

export type ChunkJob = Wish &
  SeriesName & {
    readonly seriesId: number;
    readonly from: Instant;
    readonly to: Instant;
    /** Start of the run, or of the refresh. Slots that were requested after it are not requested again. Named as in jobs of the queue. */
    readonly askedSince: Instant;
  };

/** The fields that form the job id. */
export type ChunkIdentity =
  | Pick<Extract<ChunkJob, { kind: 'backfill' | 'holes' }>, 'kind' | 'seriesId' | 'from' | 'to'>
  | Pick<Extract<ChunkJob, { kind: 'freshness' }>, 'kind' | 'seriesId'>;

/**
 * The queue refuses a second job with the same id while the first one exists, so a chunk that is added twice is one job. A series has one newest end,
 * which moves forward: its id has no span.
 */
export function chunkJobId(job: ChunkIdentity): string {
  if (job.kind === 'freshness') return `fresh-${job.seriesId}`;
  return `${job.kind === 'holes' ? 'holes' : 'chunk'}-${job.seriesId}-${job.from / 1000}-${job.to / 1000}`;
}

/** The value of `ops.fetch.endpoint` for requests about a series of this interval. */
export function endpointOf(interval: Interval): 'ohlcv' | 'prices' {
  return isPriceInterval(interval) ? 'prices' : 'ohlcv';
}

/** Names a chunk in messages. */
export function describeChunk({ coinId, interval, from, to }: ChunkJob): string {
  const day = (at: Instant) => new Date(at).toISOString().slice(0, 10);
  return `${coinId} ${interval} ${day(from)}…${day(to)}`;
}

/** The names of these requests in `ops.quota_spent` and `chandler quota`: the names of their schedules. */
export const FRESHNESS = 'freshness';
export const CONFIRM_HOLES = 'confirm_holes';
