/** Is an answer the answer to another request? Then nothing of it may be stored, and it proves no slot empty. Pure. */
import { type Instant, MOST_SKEW_MS } from '../../clock.ts';
import type { OhlcvRowRead } from '../../contract/record/ohlcv.ts';
import {
  describeInterval,
  INTERVAL_MS,
  INTERVALS,
  type Interval,
  isPriceInterval,
  PRICE_INTERVALS,
  settledUntil,
  widthOf,
} from '../../core/interval.ts';
import type { Exchange } from '../../upstream/answer.ts';

type GoodRow = Extract<OhlcvRowRead, { ok: true }>;

/** Fewer rows than this may be far apart by chance. */
const SPACED_ROWS = 4;

/** Why the whole answer cannot be used; null: it can be used. */
export function answersOtherRequest(
  interval: Interval,
  rows: readonly OhlcvRowRead[],
  time: Pick<Exchange, 'date' | 'latest'>,
): string | null {
  const good = rows.filter((row): row is GoodRow => row.ok);
  if (good.length === 0) return null;
  const last = latestOpen(time);
  const misfits = good.flatMap((row) => otherWidth(row, interval, last) ?? []);
  // A single row is quarantined instead, which proves no slot empty either.
  if (good.length > 1 && misfits.length > good.length / 2)
    return `its rows are not ${describeInterval(interval)}: ${misfits[0]}`;
  if (isOffGrid(good, interval))
    return `its rows are not ${describeInterval(interval)}: they lie off the ${widthOf(interval)} grid`;
  const unproven = good.filter((row) => !closesWithSlot(row, interval));
  const wider = unproven.length < SPACED_ROWS ? null : spacingOf(good, interval);
  if (wider !== null) return `its rows are ${widthOf(wider)} apart: they are not ${describeInterval(interval)}`;
  const after = good.filter(({ openTime }) => openTime > last && openTime <= time.latest);
  return after.length > good.length / 2 ? 'it is dated before its own rows' : null;
}

/**
 * What `time_close` says about the width of a row, if it is not the width of the interval. A candle that was open ends with the minute of its data,
 * and the form of closed intraday candles is unknown (upstream-api.md, 1.1 no 6 and 13). So two things prove another interval: an end beyond the
 * slot, and an end in the last second of a slot of a narrower interval. An end exactly with such a slot may be the minute of an open candle, so it
 * proves that only for a candle that had settled at `latest`.
 */
export function otherWidth({ openTime, closeTime }: GoodRow, interval: Interval, latest: Instant): string | null {
  if (closeTime === null) return null;
  const width = INTERVAL_MS[interval];
  const length = closeTime - openTime;
  if (length > width) return `time_close lies beyond the end of a ${interval} candle`;
  const least = openTime < settledUntil(latest, interval) ? 0 : 1;
  const isEndOf = (short: number) => short >= least && short <= 1_000;
  const other = INTERVALS.find((one) => INTERVAL_MS[one] < width && isEndOf(INTERVAL_MS[one] - length));
  return other === undefined ? null : `time_close is that of a ${other} candle`;
}

/** Does `time_close` prove that the row is of this interval? A coin that is rarely traded may have all its candles on the grid of a wider one. */
function closesWithSlot({ openTime, closeTime }: GoodRow, interval: Interval): boolean {
  const early = closeTime === null ? NaN : openTime + INTERVAL_MS[interval] - closeTime;
  return early >= 0 && early <= 1_000;
}

/** The latest open time that an answer can contain: by its own `Date`, if it has one. */
export function latestOpen({ date, latest }: Pick<Exchange, 'date' | 'latest'>): Instant {
  return date === null ? latest : Math.min(latest, date + MOST_SKEW_MS);
}

/** Are most rows off the grid? Of rows of half the width every second one is on it, so a third is enough for rows that are on the finest grid. */
function isOffGrid(rows: readonly GoodRow[], interval: Interval): boolean {
  const off = rows.filter(({ openTime }) => openTime % INTERVAL_MS[interval] !== 0);
  const narrower = off.filter(({ openTime }) => openTime % INTERVAL_MS[INTERVALS[0]] === 0);
  return off.length > 1 && (off.length > rows.length / 2 || narrower.length > rows.length / 3);
}

/** The widest interval whose grid contains all of these rows; null when some rows are closer together, or when there are only a few. */
function spacingOf(rows: readonly GoodRow[], interval: Interval): Interval | null {
  const times = new Set(rows.map(({ openTime }) => openTime));
  if (times.size < SPACED_ROWS) return null;
  const alike: readonly Interval[] = isPriceInterval(interval) ? PRICE_INTERVALS : INTERVALS;
  const wider = alike.filter((one) => INTERVAL_MS[one] > INTERVAL_MS[interval]);
  return wider.findLast((one) => [...times].every((at) => at % INTERVAL_MS[one] === 0)) ?? null;
}
