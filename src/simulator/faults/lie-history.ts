/** Stores which candles were lied about. The simulator lies about each candle only once, in whatever request it appears. */
import { INTERVAL_MS } from '../../core/interval.ts';
import { intersect, type Spans, union } from '../../core/span.ts';
import { type RowQuestion, rowQuestion } from './row-request.ts';

export type ToldOnce = {
  /**
   * May the answer to this request be a lie? If so, the lie counts as told, so call this when nothing else can prevent it. Answers to requests for
   * neither candles nor prices may always be false, and are not stored.
   */
  readonly mayTell: (request: Request) => boolean;
};

export function createToldOnce(): ToldOnce {
  const told = new Map<string, Spans>();
  return {
    mayTell: (request) => {
      const question = rowQuestion(request);
      if (question === null) return true;
      const series = `${question.coinId} ${question.quote} ${question.interval}`;
      const before = told.get(series) ?? [];
      const asked = [spanOf(question)];
      if (intersect(before, asked).length > 0) return false;
      told.set(series, union(before, asked));
      return true;
    },
  };
}

function spanOf({ from, to, interval }: RowQuestion) {
  return { from, to: to + INTERVAL_MS[interval] };
}
