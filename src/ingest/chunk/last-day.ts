/**
 * Requests for the last full day and the open day, which have no start and no end. It is not documented when after midnight the upstream moves on to
 * the next day. A row of the day before shows that it has not moved on yet. Then Chandler requests no coin's last day for a while.
 */
import type { Clock, Instant } from '../../clock.ts';
import { ohlcvLatestPath, ohlcvTodayPath } from '../../contract/interface/paths.ts';
import type { OhlcvRowRead } from '../../contract/record/ohlcv.ts';
import { DAY } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import { expectedDepth } from '../limits/history-limit.ts';
import { lastDayOf, openDayOf } from '../limits/last-day.ts';
import type { LearnedLimits } from '../limits/learned-limits.ts';
import { type AnswerTime, type SecondOpinions, toReceivedAnswer } from '../limits/second-opinions.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';

/** The value of `ops.fetch.subject` for such requests. */
export const LAST_DAY = 'last full day';
export const OPEN_DAY = 'open day';

export type DayRequest = {
  readonly subject: typeof LAST_DAY | typeof OPEN_DAY;
  readonly span: Span;
  readonly path: string;
};

/** The request for a chunk that the history limit allows in no other way; null: candles are requested as usual. */
export function dayRequestOf(
  { kind, coinId, interval, from, to }: Pick<ChunkJob, 'kind' | 'coinId' | 'interval' | 'from' | 'to'>,
  historyLimits: Pick<LearnedLimits, 'of'>,
  now: Instant,
): DayRequest | null {
  const limit = historyLimits.of(interval);
  const lastDay = lastDayOf(expectedDepth(limit), interval, now);
  if (lastDay === null || kind === 'holes') return null;
  // A chunk that begins before the last full day probes a documented limit, and such a request needs a start.
  if (kind === 'backfill' && limit.kind === 'documented' && from < lastDay.from) return null;
  const isOfLastDay = from < lastDay.to && to > lastDay.from;
  // A refresh that waited beyond midnight requests the day that has ended meanwhile.
  const isOfOlder = kind === 'freshness' && to <= lastDay.from;
  if (isOfLastDay || isOfOlder) return { subject: LAST_DAY, span: lastDay, path: ohlcvLatestPath(coinId) };
  const openDay = openDayOf(now);
  if (kind !== 'freshness' || from >= openDay.to || to <= openDay.from) return null;
  return { subject: OPEN_DAY, span: openDay, path: ohlcvTodayPath(coinId) };
}

/**
 * The day that an answer about the last full day covers. It is the requested day, unless the row of the answer is of the day after, which has ended
 * meanwhile, or of the day before, because the upstream has not moved on yet (`isLate`).
 */
export function answeredDay(
  requested: Span,
  rows: readonly OhlcvRowRead[],
  latest: Instant,
): { readonly span: Span; readonly isLate: boolean } {
  const [row] = rows;
  const at = rows.length === 1 && row?.ok ? row.openTime : null;
  if (at === requested.from - DAY) return { span: { from: at, to: requested.from }, isLate: true };
  if (at === requested.to && at + DAY <= latest) return { span: { from: at, to: at + DAY }, isLate: false };
  return { span: requested, isLate: false };
}

export type LastDayWatch = {
  /** When the last full day may be requested next; null: now. */
  waitingFor(day: Span): Instant | null;
  /** Called when the answer had the day before. Resolves to when the next request is worth it; null: other coins already have the day. */
  late(day: Span, exchange: AnswerTime): Promise<Instant | null>;
  /** Called when the answer had the day: no coin waits any more. */
  arrived(day: Span): Promise<void>;
};

/** When the last full day may be requested next, because the upstream had not moved on to it at the last request; null: now. */
export function lateUntil(day: Span, opinions: Pick<SecondOpinions, 'find'>, now: Instant): Instant | null {
  const retryAt = opinions.find('day is late', keyOf(day))?.retryAt ?? 0;
  return retryAt > now ? retryAt : null;
}

function keyOf({ from }: Span): string {
  return new Date(from).toISOString().slice(0, 10);
}

export function createLastDayWatch(clock: Clock, opinions: SecondOpinions): LastDayWatch {
  /** The start of the newest day that any coin had. */
  let newest = Number.NEGATIVE_INFINITY;
  return {
    waitingFor: (day) => (day.from > newest ? lateUntil(day, opinions, clock.now()) : null),
    late: async (day, exchange) => {
      if (day.from <= newest) return null;
      const received = toReceivedAnswer(clock.now(), exchange);
      const opinion = await opinions.record('day is late', keyOf(day), received, () => ({ says: 'agrees' }));
      return opinion.claim?.retryAt ?? null;
    },
    arrived: async (day) => {
      newest = Math.max(newest, day.from);
      await opinions.drop('day is late', keyOf(day));
    },
  };
}
