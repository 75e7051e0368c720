/**
 * Candles as upstream answers them: those that are stored, and where a slot has none and is not known to be empty, those that finer
 * candles make up, if every one of them is final. Never anything else.
 */
import type { Clock, Instant } from '../../clock.ts';
import type { Absent } from '../../contract/answer/not-found.ts';
import { historyBasis, standingOn } from '../../contract/answer/provenance.ts';
import type { OhlcvCandle, OhlcvQuery } from '../../contract/record/market-data.ts';
import { floorToGrid, INTERVAL_MS, INTERVALS } from '../../core/interval.ts';
import { intersect, normalize, type Span, type Spans, subtract, union } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { CoinVersion, SeriesVersion, Versions } from './data-versions.ts';
import { type CandlesRead, readCoarsened, readStored } from './read-candles.ts';
import { createKept } from './versioned-cache.ts';

/** Of candles, however many answers they are in: some 30 MB with their texts. */
const MOST_KEPT = 100_000;
/** An empty answer takes room as well. */
const LEAST_WEIGHT = 20;

export type OhlcvView = (query: OhlcvQuery) => Promise<readonly OhlcvCandle[] | Absent>;

export function createOhlcvView({
  sql,
  clock,
  versions,
  noCoin,
}: {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly versions: Versions;
  readonly noCoin: () => Promise<Absent>;
}): OhlcvView {
  const kept = createKept<readonly OhlcvCandle[]>({
    onGet: versions.counted('ohlcv'),
    most: MOST_KEPT,
    weigh: (candles) => Math.max(LEAST_WEIGHT, candles.length),
  });
  return async (query) => {
    const coin = await versions.coin(query.coinId);
    if (coin === null) return noCoin();
    const { coinId, quote, interval, limit } = query;
    // A slot that has not opened has no candle; the first slot that could have one is that of the year 1970.
    const to = Math.min(floorToGrid(query.to, interval), floorToGrid(clock.now(), interval));
    const from = Math.max(query.from, 0);
    const sources = sourcesOf(coin, query);
    const key = `${coinId} ${quote} ${interval} ${from} ${to} ${limit}`;
    const version = `${coin.firstDataAt} ${sources.map((s) => `${s.id}:${s.version}`).join(' ')}`;
    return kept.get(key, version, () => readCandles(sql, coin, sources, { ...query, from, to }));
  };
}

/** The series that can answer: first the one of this interval, then finer ones, the coarsest first. */
function sourcesOf(coin: CoinVersion, { quote, interval }: OhlcvQuery): SeriesVersion[] {
  const order = INTERVALS.slice(0, INTERVALS.indexOf(interval) + 1).reverse();
  return order.flatMap((one) => coin.series.filter((s) => s.quote === quote && s.interval === one));
}

async function readCandles(
  sql: Sql,
  coin: CoinVersion,
  sources: readonly SeriesVersion[],
  query: OhlcvQuery,
): Promise<readonly OhlcvCandle[]> {
  const { interval, limit } = query;
  const width = INTERVAL_MS[interval];
  const asked = { from: query.from, to: query.to + width };
  let candles: OhlcvCandle[] = [];
  let known: Spans = [];
  const told: (CandlesRead & { readonly answeredAt: Instant | null })[] = [];
  for (const source of sources) {
    const span = stretchOf(candles, asked, { limit, width });
    const missing = subtract([span], known);
    if (missing.length === 0) break;
    const found =
      source.interval === interval
        ? await readStored(sql, source, { span, limit })
        : await readCoarsened(sql, source, { interval, missing, limit });
    told.push({ ...found, answeredAt: source.answeredAt });
    candles = found.candles.length === 0 ? candles : merge(candles, found.candles, limit);
    known = union(known, knownOf(found, width));
  }
  const stretch = stretchOf(candles, asked, { limit, width });
  const began = coin.firstDataAt === null ? stretch.from : floorToGrid(coin.firstDataAt, interval);
  const span = { from: Math.max(stretch.from, began), to: stretch.to };
  // A series that had nothing to say about this is nothing that it stands on.
  const of = told.filter((found) => intersect([span].filter(isSpan), knownOf(found, width)).length > 0);
  const seen = of.flatMap(({ answeredAt }) => answeredAt ?? []);
  const asOf = seen.length === 0 ? null : Math.max(...seen);
  return standingOn(candles, historyBasis({ asked: span, known, hasRows: candles.length > 0, asOf }));
}

/** What is asked, but no further than to the last candle that is still to be answered. */
function stretchOf(
  candles: readonly OhlcvCandle[],
  asked: Span,
  { limit, width }: { readonly limit: number; readonly width: number },
): Span {
  return candles.length < limit ? asked : { from: asked.from, to: candles[limit - 1]!.openTime + width };
}

/** Slots that have their candle, and slots that are known to have none. */
function knownOf({ candles, covered }: CandlesRead, width: number): Spans {
  const slots = candles.map(({ openTime }) => ({ from: openTime, to: openTime + width }));
  return union(covered, normalize(slots));
}

function merge(a: readonly OhlcvCandle[], b: readonly OhlcvCandle[], limit: number): OhlcvCandle[] {
  const merged = a.length === 0 ? [...b] : [...a, ...b].sort((x, y) => x.openTime - y.openTime);
  return merged.length > limit ? merged.slice(0, limit) : merged;
}

function isSpan({ from, to }: { readonly from: Instant; readonly to: Instant }): boolean {
  return from < to;
}
