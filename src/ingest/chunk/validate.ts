/** Checks an answer against its request: what may be stored, and what is quarantined, and why. Pure. */
import type { Instant } from '../../clock.ts';
import { hasPrices, type OhlcvRowRead } from '../../contract/record/ohlcv.ts';
import { hasPrice } from '../../contract/record/price.ts';
import type { CandleColumns } from '../../core/candle.ts';
import { floorToGrid, INTERVAL_MS, type Interval, isPriceInterval } from '../../core/interval.ts';
import { impossibleTime, impossibleValues, TWO_ROWS_OF_A_SLOT } from '../../core/possible-candle.ts';
import type { Span } from '../../core/span.ts';
import type { OpenCandle } from '../../store/candle/candle.ts';
import type { QuarantinedRow } from '../../store/candle/quarantine.ts';
import { otherWidth } from './other-request.ts';

type OhlcvQuestion = {
  readonly coinId: string;
  readonly interval: Interval;
  /** On the grid. The requested slots are those that open inside it. */
  readonly span: Span;
};

export type Findings = {
  /** Sorted, each slot once, and only slots of the request. */
  readonly candles: CandleColumns;
  /** The candles whose `time_close` lies before the end of their slot. */
  readonly cutShort: readonly OpenCandle[];
  readonly quarantined: readonly QuarantinedRow[];
  /** The number of rows in the answer, before any was dropped. */
  readonly rowCount: number;
};

/**
 * Splits the rows of one answer into candles and impossible rows: wrong type, wrong coin, wrong width, off the grid, outside the request, from the
 * future (after `latest`), high below low, negative, or two different rows for one slot. Exact repetitions of a row are dropped silently; the order
 * does not matter.
 */
export function validate(question: OhlcvQuestion, rows: readonly OhlcvRowRead[], latest: Instant): Findings {
  const quarantined: QuarantinedRow[] = [];
  const possible: GoodRow[] = [];
  let ascends = true;
  let last = Number.NEGATIVE_INFINITY;
  for (const read of rows) {
    // As far as is known, the end of such a request is exclusive (upstream-api.md, 1.7). One more row does no harm.
    if (isPriceInterval(question.interval) && read.openTime === question.span.to) continue;
    if (!read.ok) {
      quarantined.push({ openTime: slotOf(read, question), reason: read.problem, row: read.row });
      continue;
    }
    const reason = impossible(read, question, latest);
    if (reason !== null) {
      quarantined.push({ openTime: slotOf(read, question), reason, row: read.row });
      continue;
    }
    possible.push(read);
    if (read.openTime <= last) ascends = false;
    last = read.openTime;
  }
  // Nearly every answer is in order: then no slot has two rows, and no search is needed.
  const good = ascends ? possible : onePerSlot(possible, quarantined);
  return { candles: toColumns(good), cutShort: cutShort(good, question.interval), quarantined, rowCount: rows.length };
}

const VALUES = ['open', 'high', 'low', 'close', 'volume', 'marketCap'] as const;

type GoodRow = Extract<OhlcvRowRead, { ok: true }>;

/** The slot of the request that a row names; null if it names none. */
function slotOf({ openTime }: OhlcvRowRead, { interval, span }: OhlcvQuestion): Instant | null {
  const isSlot = openTime !== null && openTime >= span.from && openTime < span.to;
  return isSlot && floorToGrid(openTime, interval) === openTime ? openTime : null;
}

/** Sorts the rows. If a slot has two different rows, all its rows are quarantined. */
function onePerSlot(rows: readonly GoodRow[], quarantined: QuarantinedRow[]): GoodRow[] {
  const bySlot = new Map<Instant, GoodRow>();
  const contested = new Set<Instant>();
  for (const read of rows) {
    const at = read.openTime;
    const other = bySlot.get(at);
    if (other === undefined) bySlot.set(at, read);
    else if (!sameValues(other, read)) {
      contested.add(at);
      quarantined.push({ openTime: at, reason: TWO_ROWS_OF_A_SLOT, row: read.row });
    }
  }
  for (const at of contested) {
    quarantined.push({ openTime: at, reason: TWO_ROWS_OF_A_SLOT, row: bySlot.get(at)!.row });
    bySlot.delete(at);
  }
  return [...bySlot.values()].sort((a, b) => a.openTime - b.openTime);
}

function impossible(row: GoodRow, { coinId, interval, span }: OhlcvQuestion, latest: Instant): string | null {
  const at = row.openTime;
  const isPrice = isPriceInterval(interval);
  const time = isPrice ? 'timestamp' : 'time_open';
  if (row.coinId !== null && row.coinId !== coinId) return `is of coin ${row.coinId}, not ${coinId}`;
  const when = impossibleTime(at, { interval, latest, name: time });
  if (when !== null) return when;
  if (at < span.from || at >= span.to) return `${time} lies outside the requested span`;
  if (row.closeTime !== null && row.closeTime < at) return 'time_close lies before time_open';
  const misfit = otherWidth(row, interval, latest);
  if (misfit !== null) return misfit;
  if (isPrice && !hasPrice(row.row)) return 'has no price';
  if (!isPrice && !hasPrices(row.row)) return 'has none of open, high, low, close';
  return impossibleValues(row.open, row.high, row.low, row.close, row.volume, row.marketCap);
}

function sameValues(a: GoodRow, b: GoodRow): boolean {
  return VALUES.every((name) => a[name] === b[name]);
}

function cutShort(rows: readonly GoodRow[], interval: Interval): OpenCandle[] {
  const lastSecond = INTERVAL_MS[interval] - 1_000;
  const out: OpenCandle[] = [];
  for (const { openTime, closeTime } of rows) {
    if (closeTime !== null && closeTime < openTime + lastSecond) out.push({ openTime, closeTime });
  }
  return out;
}

function toColumns(rows: readonly GoodRow[]): CandleColumns {
  const columns = (['openTime', ...VALUES] as const).map((name) => [name, rows.map((row) => row[name])]);
  return Object.fromEntries(columns);
}
