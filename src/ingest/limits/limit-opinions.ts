/**
 * Second opinions about a refusal that names a history limit where none is expected: the plan may give less than its documents say, or the answer
 * is a short fault. A limit holds for every series of its interval, so the next request from beyond it, for any series, gives the second opinion.
 * Until then one request at a time goes out from beyond it, and Chandler requests the refused chunk itself again when no cache repeats the answer.
 * Where the upstream has answered from beyond the limit before, more refusals are needed. If only one chunk is refused again and again, there is no
 * limit: Chandler only stops requesting its span.
 */
import type { Clock, Instant } from '../../clock.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import type { Interval } from '../../core/interval.ts';
import { CONTRADICTED_HISTORY_LIMIT, RULES } from '../../core/second-opinion.ts';
import type { Span } from '../../core/span.ts';
import type { Claim, Evidence, Statement } from '../../store/work/second-opinion.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';
import { expectedDepth, type HistoryLimit, isBeyond } from './history-limit.ts';
import type { LearnedLimits } from './learned-limits.ts';
import { type Depth, datedDepth, depthOf, type LimitRefusal } from './parsed-limit.ts';
import { type AnswerTime, toReceivedAnswer } from './second-opinions.ts';

/** After this time a refused chunk checks whether the limit is believed. If it is, the chunk has nothing to wait for. */
const LOOK_AFTER_MS = 5_000;

export type LimitOpinions = {
  /** Does the work. If it may request something beyond a limit that needs a second opinion, it first waits until the current such request ends. */
  oneAtATime<T>(job: ChunkJob, work: () => Promise<T>): Promise<T>;
  /** When the chunk may be requested; null: now. */
  waitingFor(job: ChunkJob): Instant | null;
  /** Decides what the refusal means: a history limit, or a refusal of this span only. An instant: undecided, and the chunk waits until then. */
  judge(job: ChunkJob, span: Span, answer: LimitRefusal): Promise<'history limit' | 'span' | Instant>;
  /**
   * Called after a readable answer, with its first candle. An answer without candles contradicts nothing: it is possible on either side of a limit.
   */
  answered(job: ChunkJob, firstCandle: Instant | null, exchange: AnswerTime): Promise<void>;
};

type LimitEvidence = Evidence & Depth & { readonly message: string; readonly wasAnswered: boolean };

export function createLimitOpinions(deps: {
  readonly clock: Clock;
  readonly plan: Plan;
  readonly historyLimits: LearnedLimits;
}): LimitOpinions {
  const { clock, plan, historyLimits } = deps;
  const { opinions } = historyLimits;
  /** How far back the upstream has sent a candle since this process started, in milliseconds. */
  const deepest = new Map<Interval, number>();

  const needsSecondOpinion = ({ interval, from }: ChunkJob) => {
    const claim = opinions.find('history limit', interval);
    return claim !== null && !isBelieved(claim) && isBeyond(limitOf(claim), interval, from, clock.now());
  };
  return {
    oneAtATime: createOneAtATime(needsSecondOpinion),
    waitingFor: (job) => {
      const limit = opinions.find('history limit', job.interval);
      // The limit is believed: the rest of the chunk within the limit is a new request.
      if (limit !== null && isBelieved(limit)) return null;
      const chunk = opinions.find('refused chunk', chunkJobId(job));
      return chunk !== null && chunk.retryAt > clock.now() ? chunk.retryAt : null;
    },
    judge: async (job, span, answer) => {
      const { interval } = job;
      const { message } = answer;
      const now = clock.now();
      const received = toReceivedAnswer(now, answer.exchange);
      const depth = depthOf(interval, span, plan, answer);
      if (isExpected(historyLimits.of(interval), interval, span, depth, now)) return 'history limit';
      const chunk = await opinions.record('refused chunk', chunkJobId(job), received, () => ({ says: 'agrees' }));
      if (chunk.kind === 'believed') return 'span';
      const claimed = claimedDepth(depth, span, answer);
      const answeredTo = now - (deepest.get(interval) ?? Number.NEGATIVE_INFINITY);
      const wasAnswered = isBeyond({ kind: 'met', ...claimed, message }, interval, answeredTo, now);
      // Once a limit is believed, each refusal without a date confirms its depth. A refusal with another date is a new claim.
      const isOther = wasAnswered || datedDepth(answer) !== null;
      const opinion = await opinions.record('history limit', interval, received, (before) =>
        before === null || (isBelieved(before) && isOther)
          ? first({ ...claimed, message, wasAnswered })
          : again(before),
      );
      if (opinion.kind !== 'believed') return now + LOOK_AFTER_MS;
      deepest.delete(interval);
      return 'history limit';
    },
    answered: async (job, firstCandle, exchange) => {
      const { interval } = job;
      const { sentAt } = exchange;
      await opinions.drop('refused chunk', chunkJobId(job));
      const claim = opinions.find('history limit', interval);
      if (firstCandle === null || (claim !== null && sentAt <= claim.requestedAt)) return;
      deepest.set(interval, Math.max(deepest.get(interval) ?? 0, sentAt - firstCandle));
      if (claim !== null && isBeyond(limitOf(claim), interval, firstCandle, sentAt))
        await opinions.contradict('history limit', interval, toReceivedAnswer(clock.now(), exchange));
    },
  };
}

/** Runs chunks for which `needsSecondOpinion` holds one at a time per interval, and all other chunks at once. */
function createOneAtATime(needsSecondOpinion: (job: ChunkJob) => boolean): LimitOpinions['oneAtATime'] {
  const asking = new Map<Interval, Promise<unknown>>();
  return async (job, work) => {
    const { interval } = job;
    let waits = needsSecondOpinion(job);
    for (let other = asking.get(interval); waits && other !== undefined; other = asking.get(interval)) {
      await other;
      waits = needsSecondOpinion(job);
    }
    const mine = work();
    if (!waits) return mine;
    const ended = mine.catch(() => undefined);
    asking.set(interval, ended);
    return mine.finally(() => {
      if (asking.get(interval) === ended) asking.delete(interval);
    });
  };
}

function first(evidence: LimitEvidence): Statement {
  return { says: 'differs', evidence, rule: ruleOf(evidence) };
}

function again({ evidence }: Claim): Statement {
  return { says: 'agrees', evidence, rule: ruleOf(evidence) };
}

function ruleOf(evidence: Evidence | null) {
  return evidence?.wasAnswered === true ? CONTRADICTED_HISTORY_LIMIT : RULES['history limit'];
}

function isBelieved({ answers, evidence }: Claim): boolean {
  return answers >= ruleOf(evidence).agreeing;
}

function limitOf({ evidence }: Claim): HistoryLimit {
  const { depthMs, skewMs, message } = evidence as LimitEvidence;
  return { kind: 'met', depthMs, skewMs, message };
}

/** Is the refused depth expected: beyond the known limit, and at most twice as strict? */
function isExpected(
  limit: HistoryLimit,
  interval: Interval,
  { from }: Span,
  { depthMs, skewMs }: Depth,
  now: Instant,
): boolean {
  return isBeyond(limit, interval, from, now) && depthMs - skewMs >= expectedDepth(limit)! / 2;
}

/** A text without a date says only that a request may not begin at the start of the span. */
function claimedDepth({ depthMs, skewMs }: Depth, { from }: Span, { notBefore, exchange }: LimitRefusal): Depth {
  return notBefore === null && depthMs > 0 ? { depthMs: exchange.sentAt - from, skewMs: 0 } : { depthMs, skewMs };
}
