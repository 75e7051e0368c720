/**
 * Questions about the last full day and the open one, which have no start and no end. When after midnight the upstream goes on to the next day
 * is not documented: a row of the day before says that it has not yet. Then nobody asks about any coin for a while.
 */
import type { Clock, Instant } from '../../clock.ts';
import { ohlcvLatestPath, ohlcvTodayPath } from '../../contract/interface/paths.ts';
import type { OhlcvRowRead } from '../../contract/record/ohlcv.ts';
import { DAY } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import { expectedDepth } from '../limits/history-limit.ts';
import { lastDayOf, openDayOf } from '../limits/last-day.ts';
import type { LearnedLimits } from '../limits/learned-limits.ts';
import { type Heard, heardAt, type SecondOpinions } from '../limits/second-opinions.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';

/** `ops.fetch.subject` of such questions. */
export const LAST_DAY = 'last full day';
export const OPEN_DAY = 'open day';

export type DayQuestion = {
  readonly subject: typeof LAST_DAY | typeof OPEN_DAY;
  readonly span: Span;
  readonly path: string;
};

/** The question for a chunk that the history limit leaves no other way; null: candles are asked for as ever. */
export function dayQuestionOf(
  { kind, coinId, interval, from, to }: Pick<ChunkJob, 'kind' | 'coinId' | 'interval' | 'from' | 'to'>,
  historyLimits: Pick<LearnedLimits, 'of'>,
  now: Instant,
): DayQuestion | null {
  const limit = historyLimits.of(interval);
  const lastDay = lastDayOf(expectedDepth(limit), interval, now);
  if (lastDay === null || kind === 'holes') return null;
  // What begins before it probes a documented limit: that question has a start.
  if (kind === 'backfill' && limit.kind === 'documented' && from < lastDay.from) return null;
  const isOfLastDay = from < lastDay.to && to > lastDay.from;
  // A refresh that waited beyond midnight is about the day that has ended meanwhile.
  const isOfOlder = kind === 'freshness' && to <= lastDay.from;
  if (isOfLastDay || isOfOlder) return { subject: LAST_DAY, span: lastDay, path: ohlcvLatestPath(coinId) };
  const openDay = openDayOf(now);
  if (kind !== 'freshness' || from >= openDay.to || to <= openDay.from) return null;
  return { subject: OPEN_DAY, span: openDay, path: ohlcvTodayPath(coinId) };
}

/**
 * The slots that an answer about the last full day tells of: that of its row, if the day after the one that was asked for ended meanwhile, or
 * if the upstream has not gone on yet (`isLate`).
 */
export function toldDay(
  asked: Span,
  rows: readonly OhlcvRowRead[],
  latest: Instant,
): { readonly span: Span; readonly isLate: boolean } {
  const [row] = rows;
  const at = rows.length === 1 && row?.ok ? row.openTime : null;
  if (at === asked.from - DAY) return { span: { from: at, to: asked.from }, isLate: true };
  if (at === asked.to && at + DAY <= latest) return { span: { from: at, to: at + DAY }, isLate: false };
  return { span: asked, isLate: false };
}

export type LastDayTurn = {
  /** When the next question about the last full day is worth a request; null: now. */
  waitingFor(day: Span): Instant | null;
  /** The answer had the day before. Resolves to when the next question is worth a request; null: the day has come for other coins. */
  late(day: Span, exchange: Heard): Promise<Instant | null>;
  /** The answer had the day: nobody waits any more. */
  came(day: Span): Promise<void>;
};

/** When the next question about the last full day is worth a request, because the upstream had not gone on to it lately; null: now. */
export function lateUntil(day: Span, opinions: Pick<SecondOpinions, 'find'>, now: Instant): Instant | null {
  const retryAt = opinions.find('day is late', keyOf(day))?.retryAt ?? 0;
  return retryAt > now ? retryAt : null;
}

function keyOf({ from }: Span): string {
  return new Date(from).toISOString().slice(0, 10);
}

export function createLastDayTurn(clock: Clock, opinions: SecondOpinions): LastDayTurn {
  /** The newest day that any coin had. */
  let newest = Number.NEGATIVE_INFINITY;
  return {
    waitingFor: (day) => (day.from > newest ? lateUntil(day, opinions, clock.now()) : null),
    late: async (day, exchange) => {
      if (day.from <= newest) return null;
      const heard = heardAt(clock.now(), exchange);
      const opinion = await opinions.record('day is late', keyOf(day), heard, () => ({ says: 'agrees' }));
      return opinion.claim?.retryAt ?? null;
    },
    came: async (day) => {
      newest = Math.max(newest, day.from);
      await opinions.drop('day is late', keyOf(day));
    },
  };
}
