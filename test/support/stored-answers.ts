/** Stores answers about days as the ingestion stores them, without a queue or an upstream. */
import type { CandleColumns } from '../../src/core/candle.ts';
import { DAY, isPriceInterval, settledUntil } from '../../src/core/interval.ts';
import type { Span } from '../../src/core/span.ts';
import { judgeSlots } from '../../src/ingest/chunk/evidence.ts';
import { type ChunkCommit, storeChunk } from '../../src/store/candle/chunk.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { candlesAt } from './warehouse.ts';

/** The first day; days are counted from here. */
export const FIRST_DAY = Date.UTC(2024, 0, 1);
export const day = (n: number) => FIRST_DAY + n * DAY;

export const coinNamed = (id: string) => ({
  id,
  name: id,
  symbol: 'X',
  rank: 1,
  is_new: false,
  is_active: true,
  type: 'coin',
});

export type DailyInterval = '24h' | 'prices-1d';

/** A series of days, wanted without an end. Resolves to its number. */
export async function newDailySeries(sql: Sql, coinId: string, interval: DailyInterval = '24h'): Promise<number> {
  await recordCoins(sql, [coinNamed(coinId)], day(1_000));
  const span = { from: FIRST_DAY, to: Number.POSITIVE_INFINITY };
  const [id] = await wantSeries(sql, { coinIds: [coinId], quote: 'usd', interval, span, priority: 0 });
  return id!;
}

export type AnswerOptions = {
  /** Days without a candle. */
  readonly without?: readonly number[];
  /** Days whose candles are null throughout. */
  readonly nulls?: readonly number[];
  /** The factor for the usual volumes. */
  readonly times?: number;
  /** The factor for the usual prices, in a price series. */
  readonly priceTimes?: number;
  /** How many days before its arrival the answer is dated; default 0. */
  readonly ageDays?: number;
  /** It was implausible, and an answer before it agreed. */
  readonly toldTwice?: boolean;
  /** The interval of the series; default: candles. */
  readonly interval?: DailyInterval;
};

/** Plausible prices, a different one for each time. As everywhere, a price is a candle with that price throughout. */
export function pricesAt(times: readonly number[], factor = 1): CandleColumns {
  const candles = candlesAt(times);
  const price = candles.close.map((value) => value && value * factor);
  return { ...candles, open: price, high: price, low: price, close: price };
}

/** Stores the answer to a request for the days from `from` to `to` that arrived on the day `at`. */
export function storeAnswer(
  sql: Sql,
  id: number,
  [from, to]: readonly [number, number],
  at: number,
  {
    without = [],
    nulls = [],
    times = 1,
    priceTimes = 1,
    ageDays = 0,
    toldTwice: wasImplausible = false,
    interval = '24h',
  }: AnswerOptions = {},
): Promise<ChunkCommit> {
  const span: Span = { from: day(from), to: day(to) };
  const days = Array.from({ length: to - from }, (_, i) => from + i).filter((n) => !without.includes(n));
  const rows = isPriceInterval(interval) ? pricesAt(days.map(day), priceTimes) : candlesAt(days.map(day));
  const candles = withNulls(rows, new Set(nulls.map(day)));
  const findings = {
    candles: { ...candles, volume: candles.volume.map((volume) => volume && volume * times) },
    cutShort: [],
    quarantined: [],
    rowCount: days.length,
  };
  const exchange = { sentAt: day(at), asOf: day(at - ageDays), ageMs: 0 };
  return storeChunk(
    sql,
    {
      series: { id, interval },
      span,
      asOf: exchange.asOf,
      candles: findings.candles,
      open: [],
      quarantined: [],
      fetch: {
        sentAt: exchange.sentAt,
        asOf: exchange.asOf,
        accountId: 'anonymous@test',
        endpoint: isPriceInterval(interval) ? 'prices' : 'ohlcv',
        seriesId: id,
        span,
        backfillId: null,
        attempt: 1,
        status: 200,
        outcome: 'stored',
        durationMs: 0,
        rows: days.length,
        bytes: 1,
        bodySha256: new Uint8Array(32).fill(7),
        message: null,
      },
    },
    (known) => ({
      ...judgeSlots({
        span,
        interval,
        findings,
        ...exchange,
        heardAt: exchange.sentAt,
        limit: 366,
        known,
        settledTo: settledUntil(exchange.asOf, interval),
        settlesAfterMs: DAY,
      }),
      wasImplausible,
    }),
  );
}

function withNulls({ openTime, ...values }: CandleColumns, nulls: ReadonlySet<number>): CandleColumns {
  const blank = (column: readonly (number | null)[]) => column.map((v, i) => (nulls.has(openTime[i]!) ? null : v));
  const entries = Object.entries(values).map(([name, column]) => [name, blank(column)]);
  return { openTime, ...Object.fromEntries(entries) } as CandleColumns;
}
