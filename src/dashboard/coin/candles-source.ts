import { slotAfter } from '../../views/chart/bar-width.ts';
import { type ChartOf, extentOf, gridOf, readBars, slotsIn, sourcesOf } from '../../views/chart/bars.ts';
import { readCoinFacts, readSeriesFacts } from '../../views/chart/coin-facts.ts';
import { BadAddress, type ScreenInput } from '../screen.ts';
import { describeState } from './bar-table.tsx';
import { canBeId, mostSlotsOf, readCoinAddress, windowOf } from './coin-address.ts';

/** The data for `client/coin.ts`. Times are in seconds, as the library for charts uses them. */
type CandlesAnswer = {
  readonly from: number;
  readonly to: number;
  /** Whether there are earlier slots. */
  readonly hasEarlier: boolean;
  /** A slot begins every `seconds`, or every `months` months. */
  readonly grid: { readonly seconds: number; readonly months: number };
  /** The texts for the states of bars: `final`, `incomplete, aggregated from finer candles`. */
  readonly states: readonly string[];
  /** Time, open, high, low, close, volume, 1 if final, 1 if revised, index in `states`. */
  readonly bars: readonly (readonly (number | null)[])[];
  /** Begin, end, slots, reason, detail. */
  readonly holes: readonly (readonly [number, number, number, string, string | null])[];
};

/** Parameters: `from` and `to`. Without them it reads all slots up to the newest. */
export async function readCoinCandles({ deps: { sql }, url, id, now }: ScreenInput): Promise<CandlesAnswer> {
  const coin = canBeId(id) ? await readCoinFacts(sql, id) : null;
  if (coin === null) throw new BadAddress(`There is no coin ${JSON.stringify(id)}.`);
  const series = await readSeriesFacts(sql, coin.id);
  const address = readCoinAddress(url.searchParams, series, now);
  const { chart } = address;
  const sources = sourcesOf(series, chart);
  const extent = extentOf(sources, chart, { firstDataAt: coin.firstDataAt, now });
  const grid = { seconds: gridOf(chart).ms / 1000, months: gridOf(chart).months };
  if (extent === null) return { from: 0, to: 0, hasEarlier: false, grid, states: [], bars: [], holes: [] };
  const whole = windowOf({ ...address, span: address.from === null ? 'all' : null }, extent);
  const part = newestPart(chart, whole, mostSlotsOf(sources, chart));
  const { from, to, bars, holes } = await readBars(sql, {
    coinId: coin.id,
    chart,
    sources,
    ...part,
    firstDataAt: coin.firstDataAt,
    now,
  });
  const states = [...new Set(bars.map(describeState))];
  return {
    ...{ from: from / 1000, to: to / 1000, hasEarlier: from > extent.from, grid, states },
    bars: bars.map((bar) => [
      ...[bar.at / 1000, bar.open, bar.high, bar.low, bar.close, bar.volume],
      ...[bar.isFinal ? 1 : 0, bar.isRevised ? 1 : 0, states.indexOf(describeState(bar))],
    ]),
    holes: holes.map((hole) => [hole.from / 1000, hole.to / 1000, hole.slots, hole.reason, hole.detail]),
  };
}

/** The last slots of a span, at most `most`. */
export function newestPart(chart: ChartOf, span: { readonly from: number; readonly to: number }, most: number) {
  return slotsIn(chart, span) <= most ? span : { from: slotAfter(gridOf(chart), span.to, -most), to: span.to };
}
