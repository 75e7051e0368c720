/**
 * Confirms holes: requests covered slots again that only one answer reported as empty. A run goes through the series one request at a time, and
 * checks before each request whether quota is left over. It has no state of its own: a slot with a second answer is no hole any more, and a killed
 * run is claimed again like any other.
 */
import type { Clock, Instant } from '../../clock.ts';
import { rowsPerRequest } from '../../contract/plan/plans.ts';
import { countSlots, wholeChunksNewestFirst } from '../../core/chunk.ts';
import { INTERVAL_MS } from '../../core/interval.ts';
import type { Span, Spans } from '../../core/span.ts';
import type { HoleAllowance } from '../../quota/hole-allowance.ts';
import { readDueHoles, readHoles, type SeriesHoles } from '../../store/candle/holes.ts';
import type { Sql, SqlOrTransaction } from '../../store/connection/connect.ts';
import type { IngestChunk } from '../chunk/ingest-chunk.ts';
import { earliestSlot, expectedDepth, splitAtLimit } from '../limits/history-limit.ts';
import type { LearnedLimits } from '../limits/learned-limits.ts';
import { type Outcome, UpstreamError } from '../outcome.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';
import type { Run } from '../schedule-run.ts';

type Plan = { readonly name: string; readonly candlesPerRequest: number };

export type ConfirmHolesDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly plan: Plan;
  readonly historyLimits: Pick<LearnedLimits, 'of' | 'reload'>;
  readonly ingestChunk: IngestChunk;
  readonly allowance: () => Promise<HoleAllowance>;
  /** For logs and metrics. */
  readonly onChunk?: (job: ChunkJob, outcome: Outcome) => void;
  readonly onFailure?: (job: ChunkJob, error: UpstreamError) => void;
};

/** A run ends after so many requests even if any number is allowed: half a minute at the usual rate. */
const MOST_REQUESTS = 300;
/** After so many failures in a row the upstream fails in general, and not only on one series. */
const MOST_FAILURES_IN_A_ROW = 3;
/** After so many failures in a row on one series, the run goes on with the next one. */
const MOST_FAILURES_OF_A_SERIES = 2;

/**
 * A later run repeats a request that fails: a day later, if it was the last one about its series (`readDueHoles`).
 * @throws UpstreamError when several in a row fail, ConfigurationError
 */
export function createConfirmHoles(deps: ConfirmHolesDeps): Run {
  const { sql, clock, plan, historyLimits, ingestChunk, allowance } = deps;
  return async ({ signal, retry }) => {
    await historyLimits.reload();
    let failures = 0;
    let left = MOST_REQUESTS;
    if ((await allowance()).allowed === 0) return { kind: 'done' };
    for (const series of await readHoles(sql)) {
      const { seriesId, coinId, quote, interval } = series;
      let failuresHere = 0;
      for (const span of await holeChunks(sql, series, { plan, historyLimits, now: clock.now() })) {
        signal.throwIfAborted();
        if (left-- === 0 || (await allowance()).allowed === 0) return { kind: 'done' };
        const job: ChunkJob = { kind: 'holes', seriesId, coinId, quote, interval, ...span, askedSince: clock.now() };
        try {
          const outcome = await ingestChunk(job, { signal, retry });
          deps.onChunk?.(job, outcome);
          if (outcome.kind === 'snoozed') return { kind: 'held', until: outcome.until, reason: outcome.reason };
          failures = 0;
          failuresHere = 0;
        } catch (error) {
          if (!(error instanceof UpstreamError)) throw error;
          deps.onFailure?.(job, error);
          if (++failures >= MOST_FAILURES_IN_A_ROW) throw error;
          if (++failuresHere >= MOST_FAILURES_OF_A_SERIES) break;
        }
      }
    }
    return { kind: 'done' };
  };
}

type HoleTerms = {
  readonly plan: Plan;
  readonly historyLimits: Pick<LearnedLimits, 'of'>;
  readonly now: Instant;
};

/** The fewest requests for the due holes of a series. Each request also includes a candle before and after each of its holes. */
async function holeChunks(sql: SqlOrTransaction, series: SeriesHoles, terms: HoleTerms): Promise<readonly Span[]> {
  const { plan, now } = terms;
  const limit = rowsPerRequest(plan, series.interval);
  const holes = withinReach(series, terms);
  if (holes.length === 0) return [];
  const stretches = await readDueHoles(sql, series, { holes, limit, now, plan: plan.name });
  const earliest = earliestOf(series, terms);
  return wholeChunksNewestFirst(
    stretches.filter(({ from }) => from >= earliest),
    series.interval,
    limit,
  );
}

/** A limit that is only expected counts as well: leftover quota is not used to test it. */
function earliestOf({ interval }: SeriesHoles, { historyLimits, now }: HoleTerms): Instant {
  return earliestSlot(expectedDepth(historyLimits.of(interval)), interval, now);
}

/** The holes that fit into one request, with a candle on either side, and that lie within the plan's history limit. */
function withinReach(series: SeriesHoles, terms: HoleTerms): Spans {
  const { interval, holes } = series;
  const longest = (rowsPerRequest(terms.plan, interval) - 2) * INTERVAL_MS[interval];
  const { within } = splitAtLimit(holes, earliestOf(series, terms));
  return within.filter(({ from, to }) => to - from <= longest);
}

export type UnconfirmedHoles = {
  /** Slots of wanted series that one answer reported as empty. */
  readonly slots: number;
  /** Those of them that are not requested: beyond the plan's history limit, or in a hole that is longer than a request. */
  readonly outOfReach: number;
  /** The approximate number of requests for the others. */
  readonly requests: number;
};

/** Counts the holes that wait. The count of requests assumes that the neighbouring candles are one slot away, which is nearly always true. */
export async function countHoles(sql: SqlOrTransaction, terms: HoleTerms): Promise<UnconfirmedHoles> {
  const sum = { slots: 0, outOfReach: 0, requests: 0 };
  for (const series of await readHoles(sql)) {
    const { interval, holes } = series;
    const width = INTERVAL_MS[interval];
    const within = withinReach(series, terms);
    const slots = countSlots(holes, interval);
    sum.slots += slots;
    sum.outOfReach += slots - countSlots(within, interval);
    const stretches = within.map(({ from, to }) => ({ from: from - width, to: to + width }));
    sum.requests += wholeChunksNewestFirst(stretches, interval, rowsPerRequest(terms.plan, interval)).length;
  }
  return sum;
}
