/**
 * Refusals of chunks that need a second opinion.
 *
 * A refusal that names a history limit where none is expected: the plan may see less than its documents say, or the answer is a lie of the
 * moment. A limit holds for every series of its interval, so the next request from beyond it, for whichever series, gives the second opinion.
 * Until then one request at a time goes out from beyond it, and the refused chunk itself comes again when no cache repeats the answer.
 * Where the upstream has answered from beyond before, it takes more refusals. If one chunk alone is refused again and again, there is
 * no limit: only its span is left alone.
 *
 * A 402 that names no limit, although requests are left: it may mean that the plan does not include this series, or nothing at all. It is
 * believed after a second one for the same series, with nothing of the series answered between, or for the same chunk.
 */
import type { Clock, Instant } from '../../clock.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import type { Interval } from '../../core/interval.ts';
import { ASK_AGAIN_MS, CONTRADICTED_HISTORY_LIMIT, RULES } from '../../core/second-opinion.ts';
import type { Span } from '../../core/span.ts';
import type { Claim, Evidence, Statement } from '../../store/work/second-opinion.ts';
import type { Exchange } from '../../upstream/answer.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';
import { expectedDepth, type HistoryLimit, isBeyond } from './history-limit.ts';
import type { LearnedLimits } from './learned-limits.ts';
import { type Depth, datedDepth, depthOf, type LimitRefusal } from './parsed-limit.ts';

/** A refused chunk looks so soon whether the limit is believed by then: if it is, there is nothing to wait for. */
const LOOK_AFTER_MS = 5_000;
/** When so many series of one interval wait for a second opinion about a 402, and none was answered since, the others wait for these. */
const MOST_SERIES_WAITING = 8;

export type RefusalOpinions = {
  /** Does the work. If it may ask from beyond a limit that needs a second opinion, it starts when the request that does so now has ended. */
  inTurn<T>(job: ChunkJob, work: () => Promise<T>): Promise<T>;
  /** When a request for this chunk is worth it; null: now. */
  waitingFor(job: ChunkJob): Instant | null;
  /** What a refusal that names a history limit means: such a limit, a refusal of this span only, or nothing before the instant. */
  weighLimit(job: ChunkJob, span: Span, answer: LimitRefusal): Promise<'history limit' | 'span' | Instant>;
  /** Resolves to when the chunk is worth another request after a 402 that names no limit; null: the 402 is believed. */
  weighPayment(job: ChunkJob, exchange: Pick<Exchange, 'sentAt' | 'ageMs'>): Promise<Instant | null>;
  /** A request for the chunk was answered with something other than a refusal. */
  answered(job: ChunkJob): Promise<void>;
  /**
   * The answer was readable; with its first candle, which alone contradicts a limit: an answer without candles is possible on either side of
   * a limit.
   */
  gave(job: ChunkJob, firstCandle: Instant | null, exchange: Pick<Exchange, 'sentAt' | 'ageMs'>): Promise<void>;
};

type LimitEvidence = Evidence & Depth & { readonly message: string; readonly wasAnswered: boolean };

export function createRefusalOpinions(deps: {
  readonly clock: Clock;
  readonly plan: Plan;
  readonly historyLimits: LearnedLimits;
}): RefusalOpinions {
  const { clock, plan, historyLimits } = deps;
  const { opinions } = historyLimits;
  /** How far back a candle was answered, as long as this process runs. */
  const deepest = new Map<Interval, number>();
  /** The request that now asks from beyond a limit which needs a second opinion. */
  const asking = new Map<Interval, Promise<unknown>>();
  /** When a series of the interval was last answered, or its 402 believed. */
  const paymentSettledAt = new Map<Interval, Instant>();

  const waitsBeyondLimit = ({ interval, from }: ChunkJob) => {
    const claim = opinions.find('history limit', interval);
    return claim !== null && !isBelieved(claim) && isBeyond(limitOf(claim), interval, from, clock.now());
  };
  const heardNow = ({ sentAt, ageMs }: Pick<Exchange, 'sentAt' | 'ageMs'>) => ({ sentAt, ageMs, heardAt: clock.now() });
  const agrees =
    (evidence: Evidence | null = null) =>
    (): Statement => ({ says: 'agrees', evidence });

  return {
    inTurn: async (job, work) => {
      const { interval } = job;
      let waits = waitsBeyondLimit(job);
      for (let other = asking.get(interval); waits && other !== undefined; other = asking.get(interval)) {
        await other;
        waits = waitsBeyondLimit(job);
      }
      const mine = work();
      if (!waits) return mine;
      const ended = mine.catch(() => undefined);
      asking.set(interval, ended);
      return mine.finally(() => {
        if (asking.get(interval) === ended) asking.delete(interval);
      });
    },
    waitingFor: (job) => {
      const { interval } = job;
      const now = clock.now();
      const id = chunkJobId(job);
      const limit = opinions.find('history limit', interval);
      // What is left of the chunk within a limit that is believed is another request.
      const refused = limit !== null && isBelieved(limit) ? null : opinions.find('refused chunk', id);
      const unpaid = opinions.find('chunk without payment', id);
      const retryAt = Math.max(refused?.retryAt ?? now, unpaid?.retryAt ?? now);
      if (retryAt > now) return retryAt;
      return unpaid === null ? waitingForOthers(interval, now) : null;
    },
    weighLimit: async (job, span, answer) => {
      const { interval } = job;
      const heard = heardNow(answer.exchange);
      const now = heard.heardAt;
      const depth = depthOf(interval, span, plan, answer);
      if (isExpected(historyLimits.of(interval), interval, span, depth, now)) return 'history limit';
      const chunk = await opinions.record('refused chunk', chunkJobId(job), heard, agrees());
      if (chunk.kind === 'believed') return 'span';
      const claimed = claimedDepth(depth, span, answer);
      const { message } = answer;
      const answeredTo = now - (deepest.get(interval) ?? Number.NEGATIVE_INFINITY);
      const wasAnswered = isBeyond({ kind: 'met', ...claimed, message }, interval, answeredTo, now);
      const opinion = await opinions.record('history limit', interval, heard, (before) => {
        // Within a limit that is believed, each refusal without a date teaches where it is; another date is another claim.
        const isOther = before !== null && isBelieved(before) && (wasAnswered || datedDepth(answer) !== null);
        if (before !== null && !isOther) return { says: 'agrees', evidence: before.evidence, rule: ruleOf(before) };
        const rule = wasAnswered ? CONTRADICTED_HISTORY_LIMIT : RULES['history limit'];
        return { says: 'differs', evidence: { ...claimed, message, wasAnswered }, rule };
      });
      if (opinion.kind !== 'believed') return now + LOOK_AFTER_MS;
      deepest.delete(interval);
      return 'history limit';
    },
    weighPayment: async (job, exchange) => {
      const { interval } = job;
      const heard = heardNow(exchange);
      const chunk = await opinions.record('chunk without payment', chunkJobId(job), heard, agrees());
      const series = await opinions.record('series without payment', `${job.seriesId}`, heard, agrees({ interval }));
      if (chunk.kind === 'waiting' && series.kind !== 'believed') return chunk.claim.retryAt;
      paymentSettledAt.set(interval, heard.heardAt);
      return null;
    },
    answered: async (job) => {
      paymentSettledAt.set(job.interval, clock.now());
      await opinions.drop('chunk without payment', chunkJobId(job));
      await opinions.drop('series without payment', `${job.seriesId}`);
    },
    gave: async (job, firstCandle, exchange) => {
      const { interval } = job;
      const { sentAt } = exchange;
      await opinions.drop('refused chunk', chunkJobId(job));
      const claim = opinions.find('history limit', interval);
      if (firstCandle === null || (claim !== null && sentAt <= claim.requestedAt)) return;
      deepest.set(interval, Math.max(deepest.get(interval) ?? 0, sentAt - firstCandle));
      if (claim !== null && isBeyond(limitOf(claim), interval, firstCandle, sentAt))
        await opinions.contradict('history limit', interval, heardNow(exchange));
    },
  };

  function waitingForOthers(interval: Interval, now: Instant): Instant | null {
    const settledAt = paymentSettledAt.get(interval) ?? Number.NEGATIVE_INFINITY;
    const waiting = opinions
      .list('series without payment')
      .filter((claim) => claim.evidence?.interval === interval && claim.requestedAt > settledAt);
    if (waiting.length < MOST_SERIES_WAITING) return null;
    const dueAt = Math.min(...waiting.map((claim) => claim.requestedAt)) + ASK_AGAIN_MS;
    // The process that was to send the second request may have ended.
    return now < dueAt + ASK_AGAIN_MS ? Math.max(dueAt, now) + 1_000 : null;
  }
}

function ruleOf({ evidence }: Claim) {
  return evidence?.wasAnswered === true ? CONTRADICTED_HISTORY_LIMIT : RULES['history limit'];
}

function isBelieved(claim: Claim): boolean {
  return claim.answers >= ruleOf(claim).agreeing;
}

function limitOf({ evidence }: Claim): HistoryLimit {
  const { depthMs, skewMs, message } = evidence as LimitEvidence;
  return { kind: 'met', depthMs, skewMs, message };
}

/** As far back as anybody knew, or not much stricter. */
function isExpected(
  limit: HistoryLimit,
  interval: Interval,
  { from }: Span,
  { depthMs, skewMs }: Depth,
  now: Instant,
): boolean {
  return isBeyond(limit, interval, from, now) && depthMs - skewMs >= expectedDepth(limit)! / 2;
}

/** A text without a date says no more than that a request may not begin there. */
function claimedDepth({ depthMs, skewMs }: Depth, { from }: Span, { notBefore, exchange }: LimitRefusal): Depth {
  return notBefore === null && depthMs > 0 ? { depthMs: exchange.sentAt - from, skewMs: 0 } : { depthMs, skewMs };
}
