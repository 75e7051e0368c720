/** The missing chunks of a backfill that are worth a request, without those that were given up. Each pass reads them again. */
import type { Clock, Instant } from '../../clock.ts';
import { rowsPerRequest } from '../../contract/plan/plans.ts';
import { chunksNewestFirst } from '../../core/chunk.ts';
import { normalize, type Span, subtract } from '../../core/span.ts';
import type { Place } from '../../store/backfill/slot-owner.ts';
import { type CoinGaps, readDueWithinRun } from '../../store/candle/gaps.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { requestedByRun } from '../limits/last-day.ts';
import type { LearnedLimits } from '../limits/learned-limits.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';
import { type BackfillTarget, gapsOf } from './plan.ts';

export type MissingChunks = {
  /** All chunks that are missing now, newest first within a series. The gaps of a series are read just before its chunks are made. */
  pass(): AsyncGenerator<ChunkJob>;
  /** Excludes the chunk from the rest of this run. */
  giveUp(job: ChunkJob): void;
  /** The chunks that are no longer missing. A chunk may leave the queue because it is done, or because the queue was wiped. */
  doneOf(jobs: readonly ChunkJob[]): Promise<readonly ChunkJob[]>;
  /** When the first slot is due that this run has requested and requests once more (an invalid row); null: none is due after `since`. */
  dueAgain(since: Instant): Promise<Instant | null>;
  /** Were slots left to backfills before this one in the last pass? */
  leftSlotsToOthers(): boolean;
};

/** What a run needs to find its missing chunks. */
export type ChunkSource = {
  readonly sql: SqlOrTransaction;
  readonly clock: Clock;
  readonly target: BackfillTarget;
  readonly backfillId: number;
  readonly requestedSince: number;
  readonly plan: { readonly name: string; readonly candlesPerRequest: number };
  readonly historyLimits: Pick<LearnedLimits, 'of'>;
  /** The place of a backfill of the service: slots of the backfills before it are left to them. */
  readonly place?: Place | undefined;
};

export type MissingChunksDeps = ChunkSource & {
  /** Chunks come from this many series in turn, because chunks of one series wait for each other when they are stored. */
  readonly lanes: number;
  /** Called with a chunk that is still missing, but that this run does not request again. */
  readonly onGivenUp: (job: ChunkJob) => void;
};

/** A chunk that has ended so often and is still missing is given up in this run. */
const MOST_ROUNDS = 3;
/** Series whose gaps are read in one statement; few, so that the gaps are still right when the chunks are made. */
const PAGE = 100;

export function createMissingChunks(deps: MissingChunksDeps): MissingChunks {
  const { sql, clock, target, plan, requestedSince, place } = deps;
  const when = { now: () => clock.now(), requestedSince, plan: plan.name, place };
  /** How often chunks were put into the queue in passes after the first, by id. */
  const rounds = new Map<string, number>();
  const givenUp = new Map<number, Span[]>();
  let isFirstPass = true;
  let leftSlotsToOthers = false;

  function worthRequesting(seriesId: number, gaps: readonly Span[]): readonly Span[] {
    const { interval } = target;
    const limit = deps.historyLimits.of(interval);
    return requestedByRun(subtract(gaps, givenUp.get(seriesId) ?? []), limit, interval, clock.now());
  }

  function giveUp({ seriesId, from, to }: ChunkJob): void {
    givenUp.set(seriesId, normalize([...(givenUp.get(seriesId) ?? []), { from, to }]));
  }

  function* chunksOf({ coinId, gaps }: CoinGaps, seriesId: number): Generator<ChunkJob> {
    const { quote, interval } = target;
    const { backfillId } = deps;
    for (const span of chunksNewestFirst(worthRequesting(seriesId, gaps), interval, rowsPerRequest(plan, interval))) {
      const job: ChunkJob = {
        kind: 'backfill',
        backfillId,
        seriesId,
        coinId,
        quote,
        interval,
        ...span,
        askedSince: requestedSince,
      };
      const round = (rounds.get(chunkJobId(job)) ?? 0) + 1;
      if (round > MOST_ROUNDS) {
        giveUp(job);
        deps.onGivenUp(job);
        continue;
      }
      // The first pass may have millions of chunks, so they are not counted; few are left after it.
      if (!isFirstPass) rounds.set(chunkJobId(job), round);
      yield job;
    }
  }

  return {
    giveUp,
    leftSlotsToOthers: () => leftSlotsToOthers,
    pass: async function* () {
      leftSlotsToOthers = false;
      const coins = gapsOf(sql, target, when, PAGE);
      const lanes: Generator<ChunkJob>[] = [];
      for (let more = true; more || lanes.length > 0; ) {
        while (more && lanes.length < deps.lanes) {
          const next = await coins.next();
          if (next.done) {
            more = false;
            continue;
          }
          const { seriesId, others } = next.value;
          if (seriesId === null) continue;
          leftSlotsToOthers ||= worthRequesting(seriesId, others).length > 0;
          lanes.push(chunksOf(next.value, seriesId));
        }
        const lane = lanes.shift();
        const next = lane?.next();
        if (!lane || !next || next.done) continue;
        lanes.push(lane);
        yield next.value;
      }
      isFirstPass = false;
    },
    dueAgain: (since) => readDueWithinRun(sql, { ...target, requestedSince, now: since }),
    doneOf: async (jobs) => {
      if (jobs.length === 0) return jobs;
      const coinIds = [...new Set(jobs.map(({ coinId }) => coinId))];
      const open = new Map<number, readonly Span[]>();
      for await (const { seriesId, gaps } of gapsOf(sql, { ...target, coinIds }, when, PAGE))
        if (seriesId !== null) open.set(seriesId, worthRequesting(seriesId, gaps));
      return jobs.filter(
        ({ seriesId, from, to }) => !(open.get(seriesId) ?? []).some((gap) => gap.from < to && from < gap.to),
      );
    },
  };
}
