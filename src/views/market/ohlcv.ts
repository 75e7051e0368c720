/**
 * Candles as upstream answers them: the stored ones. A slot without a stored candle that is not known to be empty gets a candle made of finer ones,
 * if all of them are final. No other candle is made up.
 */
import type { Instant } from '../../clock.ts';
import type { NotFound } from '../../contract/answer/not-found.ts';
import { historyProvenance, withProvenance } from '../../contract/answer/provenance.ts';
import { revalidatedBy } from '../../contract/answer/revalidation.ts';
import type { OhlcvCandle, OhlcvQuery } from '../../contract/record/market-data.ts';
import { type CandleInterval, floorToGrid, INTERVAL_MS, INTERVALS } from '../../core/interval.ts';
import { intersect, normalize, type Span, type Spans, subtract, union } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { CoinVersion, SeriesVersion, ViewDeps } from './data-versions.ts';
import { type CandlesRead, readCoarsened, readStored } from './read-candles.ts';

type OhlcvView = (query: OhlcvQuery) => Promise<readonly OhlcvCandle[] | NotFound>;

export function createOhlcvView({ sql, clock, versions, noCoin }: ViewDeps): OhlcvView {
  const questionOf = async (query: OhlcvQuery) => {
    const coin = await versions.coin(query.coinId);
    if (coin === null) return null;
    const { interval } = query;
    // A slot that has not opened has no candle. The first slot that could have one is in the year 1970.
    const openSlot = floorToGrid(clock.now(), interval);
    const to = Math.min(floorToGrid(query.to, interval), openSlot);
    const sources = sourcesOf(coin, query);
    // When the open slot ends, an answer that reaches into it is no longer complete.
    const version = `${to} ${to === openSlot} ${coin.firstDataAt} ${sources.map((s) => `${s.id}:${s.version}`).join(' ')}`;
    return { coin, sources, to, openSlot, version };
  };
  return async (query) => {
    const question = await questionOf(query);
    if (question === null) return noCoin();
    const { coin, sources, to, openSlot, version } = question;
    const candles = await readCandles(sql, coin, sources, { ...query, from: Math.max(query.from, 0), to, openSlot });
    return revalidatedBy(candles, async () => (await questionOf(query))?.version === version);
  };
}

type CandleSource = SeriesVersion<CandleInterval>;

/** The series that can provide candles: first the one of this interval, then finer ones, the coarsest first. */
function sourcesOf(coin: CoinVersion, { quote, interval }: OhlcvQuery): CandleSource[] {
  const order = INTERVALS.slice(0, INTERVALS.indexOf(interval) + 1).reverse();
  return order.flatMap((one) => coin.series.filter((s): s is CandleSource => s.quote === quote && s.interval === one));
}

async function readCandles(
  sql: Sql,
  coin: CoinVersion,
  sources: readonly CandleSource[],
  query: OhlcvQuery & { readonly openSlot: Instant },
): Promise<readonly OhlcvCandle[]> {
  const { interval, limit, openSlot } = query;
  const width = INTERVAL_MS[interval];
  const requested = { from: query.from, to: query.to + width };
  let candles: OhlcvCandle[] = [];
  let known: Spans = [];
  const reads: (CandlesRead & { readonly answeredAt: Instant | null })[] = [];
  for (const source of sources) {
    const span = spanOf(candles, requested, { limit, width });
    const missing = subtract([span], known);
    if (missing.length === 0) break;
    const found =
      source.interval === interval
        ? await readStored(sql, source, { span, limit })
        : await readCoarsened(sql, source, { interval, missing, limit });
    reads.push({ ...found, answeredAt: source.answeredAt });
    candles = found.candles.length === 0 ? candles : merge(candles, found.candles, limit);
    known = union(known, knownOf(found, width));
  }
  const whole = spanOf(candles, requested, { limit, width });
  const began = coin.firstDataAt === null ? whole.from : floorToGrid(coin.firstDataAt, interval);
  const span = { from: Math.max(whole.from, began), to: whole.to };
  // The answer depends only on those series that have data about it.
  const used = reads.filter((found) => intersect([span].filter(isSpan), knownOf(found, width)).length > 0);
  const seen = used.flatMap(({ answeredAt }) => answeredAt ?? []);
  const asOf = seen.length === 0 ? null : Math.max(...seen);
  const answered = subtract(known, unfinishedOf(candles, { openSlot, width }));
  const hasRows = candles.length > 0;
  return withProvenance(candles, historyProvenance({ requested: span, known: answered, hasRows, asOf }));
}

/** Slots that have ended, and whose candle was answered last while they were open: nobody knows the rest of them. */
function unfinishedOf(
  candles: readonly OhlcvCandle[],
  { openSlot, width }: { readonly openSlot: Instant; readonly width: number },
): Spans {
  const isUnfinished = ({ openTime, closeTime }: OhlcvCandle) =>
    openTime < openSlot && closeTime < openTime + width - 1_000;
  return normalize(candles.filter(isUnfinished).map(({ openTime }) => ({ from: openTime, to: openTime + width })));
}

/** The requested span, up to the last candle that the limit allows. */
function spanOf(
  candles: readonly OhlcvCandle[],
  requested: Span,
  { limit, width }: { readonly limit: number; readonly width: number },
): Span {
  return candles.length < limit ? requested : { from: requested.from, to: candles[limit - 1]!.openTime + width };
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
