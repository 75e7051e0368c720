/** Asks for one chunk beyond a documented history limit, alone and first: its answer tells about all others beyond it. */
import type { Clock, Instant } from '../../clock.ts';
import { chunksNewestFirst } from '../../core/chunk.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { earliestSlot, splitAtWall } from '../limits/history-limit.ts';
import type { Walls } from '../limits/learned-limits.ts';
import { ConfigurationError, type Outcome } from '../outcome.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';
import { type BackfillTarget, gapsOf } from './plan.ts';

export type ProbeDeps = {
  readonly sql: SqlOrTransaction;
  readonly clock: Clock;
  readonly target: BackfillTarget;
  readonly backfillId: number;
  readonly askedSince: Instant;
  readonly plan: { readonly name: string; readonly candlesPerRequest: number };
  readonly walls: Pick<Walls, 'of'>;
  readonly signal: AbortSignal;
  readonly ingest: (job: ChunkJob, attempt: number) => Promise<Outcome>;
  readonly onOutcome: (job: ChunkJob, outcome: Outcome) => void;
  /** No other chunk would be answered either. */
  readonly onConfigurationError: (message: string) => void;
};

/** A probe that meets trouble is tried again: without its answer, as many are refused as are under way at once. */
const MOST_PROBES = 5;

/** Resolves when the probe was answered or given up, or when there is nothing to probe. Database errors reject. */
export async function probeHistoryLimit(deps: ProbeDeps): Promise<void> {
  const { clock, signal } = deps;
  const job = await newestBeyond(deps);
  if (job === null) return;
  for (let attempt = 1; !signal.aborted; ) {
    let outcome: Outcome;
    try {
      outcome = await deps.ingest(job, attempt);
    } catch (error) {
      if (error instanceof ConfigurationError) return deps.onConfigurationError(error.message);
      if (++attempt > MOST_PROBES) return; // The queue's attempts at this chunk will tell.
      await clock.sleep(1_000 * 2 ** attempt, signal).catch(() => undefined);
      continue;
    }
    deps.onOutcome(job, outcome);
    if (outcome.kind !== 'snoozed' && outcome.kind !== 'deferred') return;
    await clock.sleep(outcome.until - clock.now(), signal).catch(() => undefined);
  }
}

/** The newest chunk that begins beyond where the limit is expected. */
async function newestBeyond(deps: ProbeDeps): Promise<ChunkJob | null> {
  const { sql, clock, target, backfillId, askedSince, plan } = deps;
  const { quote, interval } = target;
  const limit = deps.walls.of(interval);
  if (limit.kind !== 'documented') return null;
  const when = { now: () => clock.now(), askedSince, plan: plan.name };
  for await (const { coinId, seriesId, gaps } of gapsOf(sql, target, when)) {
    const { beyond } = splitAtWall(gaps, earliestSlot(limit.depthMs, interval, clock.now()));
    const newest = beyond.at(-1);
    if (newest === undefined || seriesId === null) continue;
    for (const span of chunksNewestFirst(gaps, interval, plan.candlesPerRequest))
      if (span.from < newest.to)
        return { kind: 'backfill', backfillId, seriesId, coinId, quote, interval, ...span, askedSince };
  }
  return null;
}
