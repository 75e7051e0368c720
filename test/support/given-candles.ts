/** Stores answers with candles of any interval as the ingestion stores them, with the evidence that the test chooses. */
import type { CandleColumns } from '../../src/core/candle.ts';
import { type CandleInterval, INTERVAL_MS } from '../../src/core/interval.ts';
import type { Span } from '../../src/core/span.ts';
import type { OpenCandle } from '../../src/store/candle/candle.ts';
import { storeChunk } from '../../src/store/candle/chunk.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';

export type GivenSeries = { readonly id: number; readonly coinId: string; readonly interval: CandleInterval };

/** The series of a coin, which is created if it does not exist. */
export async function givenSeries(
  sql: Sql,
  { coinId, interval, span }: { readonly coinId: string; readonly interval: CandleInterval; readonly span: Span },
): Promise<GivenSeries> {
  const symbol = coinId.split('-')[0]!.toUpperCase();
  const coin = { id: coinId, name: coinId, symbol, rank: 1, is_new: false, is_active: true, type: 'coin' };
  await recordCoins(sql, [coin], span.from);
  await ensurePartitions(sql, interval, span);
  const [id = 0] = await wantSeries(sql, { coinIds: [coinId], quote: 'usd', interval, span, priority: 0 });
  return { id, coinId, interval };
}

export type CandleValues = readonly [open: number, high: number | null, low: number | null, volume: number | null];

export type GivenAnswer = {
  readonly span: Span;
  /** The candle of each slot in the span; null for a slot without one. */
  readonly slots: readonly (CandleValues | null)[];
  /** Default true: the answer covers the whole span. */
  readonly isFinal?: boolean;
  /** The candles that had not closed, and the end of their data. Default: none. */
  readonly open?: readonly OpenCandle[];
};

/** The instant of the first answer; each later one is a second younger. */
const FIRST_AS_OF = Date.UTC(2025, 0, 1);
let answers = 0;

/** Stores an answer that is younger than all before. */
export function storeAnswer(sql: Sql, { id, interval }: GivenSeries, answer: GivenAnswer): Promise<unknown> {
  const { span, slots, isFinal = true, open: unclosed = [] } = answer;
  const candles: { -readonly [K in keyof CandleColumns]: CandleColumns[K][number][] } = {
    openTime: [],
    open: [],
    high: [],
    low: [],
    close: [],
    volume: [],
    marketCap: [],
  };
  slots.forEach((values, i) => {
    if (values === null) return;
    const [open, high, low, volume] = values;
    candles.openTime.push(span.from + i * INTERVAL_MS[interval]);
    candles.open.push(open);
    candles.high.push(high as number);
    candles.low.push(low as number);
    candles.close.push(open * 1.01);
    candles.volume.push(volume);
    candles.marketCap.push(volume === null ? null : Math.floor(volume * 3));
  });
  const asOf = FIRST_AS_OF + ++answers * 1_000;
  const fetch = {
    sentAt: asOf,
    asOf,
    accountId: 'anonymous@example',
    endpoint: 'ohlcv',
    seriesId: id,
    span,
    backfillId: null,
    attempt: 1,
    status: 200,
    outcome: 'stored',
    durationMs: 1,
    rows: candles.openTime.length,
    bytes: 1,
    bodySha256: null,
    message: null,
  } as const;
  const chunk = {
    series: { id, interval },
    span,
    asOf,
    candles: candles as CandleColumns,
    open: unclosed,
    quarantined: [],
    fetch,
  };
  return storeChunk(sql, chunk, () => ({
    answeredSlots: [span],
    proven: isFinal ? [span] : [],
    unconfirmedSlots: [],
    confirmed: [],
    uncontradicted: [],
    contradicted: [],
    pending: [],
  }));
}
