/** Stores which candles were lied about. The simulator lies about each candle only once, in whatever request it appears. */
import { INTERVAL_MS } from '../../core/interval.ts';
import { intersect, type Spans, union } from '../../core/span.ts';
import { parseRowRequest, type RowRequest } from './row-request.ts';

type LieHistory = {
  /**
   * May the answer to this request be a lie? If so, the lie counts as told, so call this when nothing else can prevent it. Answers to requests for
   * neither candles nor prices may always be false, and are not stored.
   */
  readonly mayLie: (request: Request) => boolean;
};

export function createLieHistory(): LieHistory {
  const liedAbout = new Map<string, Spans>();
  return {
    mayLie: (request) => {
      const question = parseRowRequest(request);
      if (question === null) return true;
      const series = `${question.coinId} ${question.quote} ${question.interval}`;
      const before = liedAbout.get(series) ?? [];
      const requested = [spanOf(question)];
      if (intersect(before, requested).length > 0) return false;
      liedAbout.set(series, union(before, requested));
      return true;
    },
  };
}

function spanOf({ from, to, interval }: RowRequest) {
  return { from, to: to + INTERVAL_MS[interval] };
}
