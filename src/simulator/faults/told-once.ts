/** Remembers which candles were lied about: about each a lie is told once, whatever question it is asked in. */
import { INTERVAL_MS } from '../../core/interval.ts';
import { intersect, type Spans, union } from '../../core/span.ts';
import { type CandleQuestion, candleQuestion } from './candle-question.ts';

export type ToldOnce = {
  /**
   * May a lie be told in answer to this request? If so, it is noted as told: call this when nothing else can prevent it. Answers that have no
   * candles are not noted.
   */
  readonly mayTell: (request: Request) => boolean;
};

export function createToldOnce(): ToldOnce {
  const told = new Map<string, Spans>();
  return {
    mayTell: (request) => {
      const question = candleQuestion(request);
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

function spanOf({ from, to, interval }: CandleQuestion) {
  return { from, to: to + INTERVAL_MS[interval] };
}
