/** Requests one chunk beyond a documented history limit, before all other chunks: its answer shows whether the limit is real. */
import { rowsPerRequest } from '../../contract/plan/plans.ts';
import { createBackoff } from '../../core/backoff.ts';
import { chunksNewestFirst } from '../../core/chunk.ts';
import { splitAtReach } from '../limits/last-day.ts';
import { ConfigurationError, type Outcome } from '../outcome.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';
import type { ChunkSource } from './missing-chunks.ts';
import { gapsOf } from './plan.ts';

type ProbeDeps = ChunkSource & {
  readonly signal: AbortSignal;
  readonly ingest: (job: ChunkJob, attempt: number) => Promise<Outcome>;
  readonly onOutcome: (job: ChunkJob, outcome: Outcome) => void;
  /** The key or the address is wrong: the upstream would not answer other chunks either. */
  readonly onConfigurationError: (error: ConfigurationError) => void;
};

/** A failed probe is repeated: without its answer, the upstream would refuse all chunks that are in progress at the same time. */
const MOST_PROBES = 5;
const backoff = createBackoff({ firstMs: 4_000, mostMs: 32_000 });

/** Resolves when the probe was answered or given up, or when there is nothing to probe. Rejects with database errors. */
export async function probeHistoryLimit(deps: ProbeDeps): Promise<void> {
  const { clock, signal } = deps;
  const job = await newestBeyond(deps);
  if (job === null) return;
  for (let attempt = 1; !signal.aborted; ) {
    let outcome: Outcome;
    try {
      outcome = await deps.ingest(job, attempt);
    } catch (error) {
      if (error instanceof ConfigurationError) return deps.onConfigurationError(error);
      // From then on the queue's attempts at this chunk show what the limit is.
      if (attempt++ >= MOST_PROBES) return;
      await clock.sleep(backoff(attempt - 2, Math.random()), signal).catch(() => undefined);
      continue;
    }
    deps.onOutcome(job, outcome);
    if (outcome.kind !== 'snoozed' && outcome.kind !== 'deferred') return;
    await clock.sleep(outcome.until - clock.now(), signal).catch(() => undefined);
  }
}

/** The newest chunk that begins beyond the expected limit. */
async function newestBeyond(deps: ProbeDeps): Promise<ChunkJob | null> {
  const { sql, clock, target, backfillId, requestedSince, plan, place } = deps;
  const { quote, interval } = target;
  const limit = deps.historyLimits.of(interval);
  if (limit.kind !== 'documented') return null;
  const when = { now: () => clock.now(), requestedSince, plan: plan.name, place };
  for await (const { coinId, seriesId, gaps } of gapsOf(sql, target, when)) {
    const { beyond } = splitAtReach(gaps, limit.depthMs, interval, clock.now());
    const newest = beyond.at(-1);
    if (newest === undefined || seriesId === null) continue;
    for (const span of chunksNewestFirst(gaps, interval, rowsPerRequest(plan, interval)))
      if (span.from < newest.to)
        return { kind: 'backfill', backfillId, seriesId, coinId, quote, interval, ...span, askedSince: requestedSince };
  }
  return null;
}
