/** Remembers which candles were lied about: about each a lie is told once, whatever question it is asked in. */
import { INTERVAL_MS } from '../../core/interval.ts';
import { intersect, type Spans, union } from '../../core/span.ts';
import { type RowQuestion, rowQuestion } from './row-question.ts';

export type ToldOnce = {
  /**
   * May a lie be told in answer to this request? If so, it is noted as told: call this when nothing else can prevent it. Answers that have
   * neither candles nor prices are not noted.
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
