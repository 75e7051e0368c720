/** Decides what a refused chunk excludes from later requests: everything beyond the limit, this series, or this span. Or a setting is wrong. */
import type { Clock } from '../../clock.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import type { Span } from '../../core/span.ts';
import { type RefusalReason, recordRefusal } from '../../store/candle/refusal.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { Answer } from '../../upstream/answer.ts';
import type { LearnedLimits } from '../limits/learned-limits.ts';
import { depthOf } from '../limits/parsed-limit.ts';
import { ConfigurationError, type Outcome, UpstreamError } from '../outcome.ts';
import { type ChunkJob, describeChunk } from '../queue/chunk-job.ts';
import { wrongAddress, wrongKey } from '../request/configuration-errors.ts';
import type { SentRequest } from '../request/send-request.ts';

export type Refused = Extract<Answer, { kind: 'refused' }>;

export type SettleRefusalDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly plan: Plan;
  readonly historyLimits: LearnedLimits;
  readonly trust: Trust;
};

/** Has this upstream ever sent something usable? Until then a refusal may mean a wrong key or address. */
type Trust = { readonly proven: boolean; prove(): void };

const ALL_TIME: Span = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

/**
 * Stores what was refused, so that it is not requested again. `onlyHere`: other chunks beyond the history limit were not refused, so only this span
 * is not requested again. @throws ConfigurationError, UpstreamError
 */
export async function settleRefusal(
  { sql, clock, historyLimits, plan, trust }: SettleRefusalDeps,
  job: ChunkJob,
  { record, fetchId, keySent }: SentRequest,
  answer: Refused,
  onlyHere = false,
): Promise<Outcome> {
  const { message } = answer;
  const span = record.span!;
  const refuse = async (reason: RefusalReason, of: Span): Promise<Outcome> => {
    const refusal = { plan: plan.name, seriesId: job.seriesId, span: of, reason, message, fetchId };
    await recordRefusal(sql, { ...refusal, refusedAt: clock.now() });
    return { kind: 'refused', reason, message };
  };
  switch (answer.reason) {
    case 'history limit': {
      trust.prove();
      if (onlyHere) return refuse('history limit', span);
      const depth = depthOf(job.interval, span, plan, answer);
      await historyLimits.learn(job.interval, { ...depth, message, fetchId });
      return { kind: 'refused', reason: depth.depthMs === 0 ? 'interval' : 'history limit', message };
    }
    case 'unknown id':
      // The upstream would refuse all chunks of the series.
      return refuse('unknown coin', ALL_TIME);
    case 'forbidden':
      if (!trust.proven) throw new ConfigurationError(wrongKey(message, keySent));
      return refuse('forbidden', ALL_TIME);
    case 'unknown route':
      if (!trust.proven) throw new ConfigurationError(wrongAddress(message));
      throw new UpstreamError(`${describeChunk(job)}: ${message}`, message);
    case 'bad request':
      return refuse('bad request', span);
  }
}
