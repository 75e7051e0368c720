/**
 * A refusal that names a wall where none is expected: the plan may see less than its documents say, or it is a lie of the moment.
 * A wall stands before every series of its interval, so whatever is asked next from beyond it gives the second opinion: until
 * then one asks for all, and the refused chunk itself comes again when no cache repeats the answer. A second refusal, asked for
 * after the first was heard of, is believed; where upstream has answered from beyond in this process, it takes more of them.
 * A chunk that alone is refused so, again and again, is no wall: only its span is left alone.
 */
import type { Clock, Instant } from '../../clock.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import type { Interval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import { ASK_AGAIN_MS } from '../answer/second-opinion.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';
import { expectedDepth, isBeyond, type Wall } from './history-limit.ts';
import type { Walls } from './learned-limits.ts';
import { type Depth, datedDepth, depthOf, type WallAnswer } from './parsed-limit.ts';

/** Refusals after the first, each asked for after the one before was heard of, with no answer from beyond between. */
const SECOND_OPINIONS = 1;
const WHERE_IT_WAS_ANSWERED_BEFORE = 3;
/** Refusals of one chunk while its wall is not believed. */
const MOST_OF_ONE_CHUNK = 4;
/** A refused chunk looks so soon whether others have been told the same: then there is nothing to wait for. */
const LOOK_AFTER_MS = 5_000;

export type WallDoubts = {
  /** Does the work; when it may ask from beyond a doubted wall, not before the one that asks there now has been answered. */
  inTurn<T>(job: ChunkJob, work: () => Promise<T>): Promise<T>;
  /** When this chunk is worth asking; null: now. */
  waitingFor(job: ChunkJob): Instant | null;
  /** What a wall's refusal means: a wall, a refusal of this span only, or nothing yet, and when to come again. */
  weigh(job: ChunkJob, span: Span, answer: WallAnswer): 'wall' | 'span' | Instant;
  /** A question was answered; with its first candle, which alone is evidence: nothing at all may be answered on either side of a wall. */
  answered(job: ChunkJob, firstCandle: Instant | null, sentAt: Instant): void;
};

type Doubt = {
  readonly claim: Wall;
  /** Since then nobody was answered from beyond; when the last refusal that counts was heard of. */
  since: Instant;
  /** Refusals that it takes before it is believed; 0: it is. */
  lacking: number;
  /** The one that asks from beyond now. */
  asking: Promise<unknown> | null;
};

export function createWallDoubts(deps: {
  readonly clock: Clock;
  readonly plan: Plan;
  readonly walls: Walls;
}): WallDoubts {
  const { clock, plan, walls } = deps;
  const doubts = new Map<Interval, Doubt>();
  /** How far back a candle was answered. */
  const deepest = new Map<Interval, number>();
  /** By chunk: how often it was refused without being believed, and when it is worth asking again. */
  const refusals = new Map<string, { readonly count: number; readonly dueAt: Instant }>();

  const isOpen = ({ interval, from }: ChunkJob) => {
    const doubt = doubts.get(interval);
    if (doubt === undefined || doubt.lacking === 0) return null;
    return isBeyond(doubt.claim, interval, from, clock.now()) ? doubt : null;
  };

  return {
    inTurn: async (job, work) => {
      let doubt = isOpen(job);
      while (doubt !== null && doubt.asking !== null) {
        await doubt.asking;
        doubt = isOpen(job);
      }
      const mine = work();
      if (doubt === null) return mine;
      doubt.asking = mine.catch(() => undefined);
      return mine.finally(() => {
        doubt.asking = null;
      });
    },
    waitingFor: (job) => {
      const refused = refusals.get(chunkJobId(job));
      // What is left of it within a wall that is known by now is another question.
      if (refused === undefined || doubts.get(job.interval)?.lacking === 0) return null;
      return clock.now() < refused.dueAt ? refused.dueAt : null;
    },
    weigh: (job, span, answer) => {
      const { interval } = job;
      const now = clock.now();
      const depth = depthOf(interval, span, plan, answer);
      if (isExpected(walls.of(interval), interval, span, depth, now)) return 'wall';
      const claim = claimOf(depth, span, answer);
      const wasAnswered = isBeyond(claim, interval, now - (deepest.get(interval) ?? Number.NEGATIVE_INFINITY), now);
      const id = chunkJobId(job);
      const count = (refusals.get(id)?.count ?? 0) + 1;
      refusals.set(id, { count, dueAt: now + ASK_AGAIN_MS });
      if (count >= MOST_OF_ONE_CHUNK) return 'span';
      const doubt = doubts.get(interval);
      // Within a wall that is believed, each refusal that names no date teaches where it stands; another date is another claim.
      if (doubt === undefined || (doubt.lacking === 0 && (wasAnswered || datedDepth(answer) !== null))) {
        const lacking = wasAnswered ? WHERE_IT_WAS_ANSWERED_BEFORE : SECOND_OPINIONS;
        doubts.set(interval, { claim, since: now, lacking, asking: null });
      } else if (answer.exchange.sentAt > doubt.since) {
        doubt.since = now;
        doubt.lacking = Math.max(0, doubt.lacking - 1);
        if (doubt.lacking === 0) {
          deepest.delete(interval);
          return 'wall';
        }
      }
      return now + LOOK_AFTER_MS;
    },
    answered: (job, firstCandle, sentAt) => {
      const { interval } = job;
      refusals.delete(chunkJobId(job));
      const doubt = doubts.get(interval);
      if (firstCandle === null || (doubt !== undefined && sentAt <= doubt.since)) return;
      deepest.set(interval, Math.max(deepest.get(interval) ?? 0, sentAt - firstCandle));
      if (doubt !== undefined && isBeyond(doubt.claim, interval, firstCandle, sentAt)) doubts.delete(interval);
    },
  };
}

/** As far as anybody knew, or not much stricter. */
function isExpected(wall: Wall, interval: Interval, { from }: Span, { depthMs, skewMs }: Depth, now: Instant): boolean {
  return isBeyond(wall, interval, from, now) && depthMs - skewMs >= expectedDepth(wall)! / 2;
}

/** A text without a date says no more than that one may not begin there. */
function claimOf({ depthMs, skewMs }: Depth, { from }: Span, { notBefore, message, exchange }: WallAnswer): Wall {
  if (notBefore === null && depthMs > 0) return { kind: 'met', depthMs: exchange.sentAt - from, skewMs: 0, message };
  return { kind: 'met', depthMs, skewMs, message };
}
