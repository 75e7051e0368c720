/** When does a second answer agree with an implausible one, although time has passed between them? */
import { expect, test } from 'vitest';
import type { CandleColumns } from '../../../src/core/candle.ts';
import { HOUR, settledUntil, settleMs } from '../../../src/core/interval.ts';
import type { Span } from '../../../src/core/span.ts';
import { judgeImplausible } from '../../../src/ingest/chunk/implausible.ts';
import type { StoredCandle } from '../../../src/store/candle/neighbours.ts';
import type { Pending } from '../../../src/store/work/second-opinion.ts';

const WIDTH = 5 * 60_000;
const NOON = Date.UTC(2026, 9, 1, 12);
const SECOND = 1_000;
const stored = (at: number): StoredCandle => [at, 10, 10.002, 9.998, 10.001, 5 + at / NOON, null];
/** Final until noon. */
const BESIDE = {
  candles: Array.from({ length: 12 }, (_, i) => stored(NOON - (12 - i) * WIDTH)),
  covered: 288,
  coveredCandles: 288,
  final: [{ from: NOON - HOUR, to: NOON }],
};

/** The prices of one coin become those of another coin, a hundred times as high. */
function candlesOf({ from, to }: Span, price = 1_000): CandleColumns {
  const openTime = Array.from({ length: (to - from) / WIDTH }, (_, i) => from + i * WIDTH);
  const column = (times: number) => openTime.map((at) => price * times + (at - NOON) / WIDTH / 1_000);
  const volume = openTime.map((at) => 7 + at / NOON);
  return {
    openTime,
    open: column(1),
    high: column(1.001),
    low: column(0.999),
    close: column(1),
    volume,
    marketCap: openTime.map(() => null),
  };
}

/** The result for an answer that came at this time: null when it is believed, else the claims that wait. */
function weigh(
  span: Span,
  at: number,
  pending: readonly Pending[],
  candles = candlesOf(span),
  invalid: readonly number[] = [],
) {
  const quarantined = invalid.map((openTime) => ({ openTime, reason: 'high is below low', row: {} }));
  const { verdict, found } = judgeImplausible({
    span,
    interval: '5m',
    findings: { candles, cutShort: [], quarantined, rowCount: candles.openTime.length + invalid.length },
    sentAt: at,
    receivedAt: at,
    asOf: at,
    ageMs: 0,
    settledTo: settledUntil(at, '5m'),
    settlesAfterMs: settleMs('5m'),
    limit: 366,
    known: {
      beside: BESIDE,
      samples: [],
      covered: BESIDE.final,
      answeredByYounger: [],
      unconfirmedAnswers: [],
      listedAt: at,
      repeated: new Set(invalid),
      pending,
    },
  });
  expect(found).not.toBeNull();
  return verdict === null ? null : verdict.pending;
}

test('slots that have settled or opened since do not make the second answer a different one', () => {
  for (const [first, second] of [
    [31 * 60 * SECOND, 33 * 60 * SECOND],
    [29 * 60 * SECOND, 31 * 60 * SECOND],
    [34 * 60 * SECOND, 36 * 60 * SECOND],
    [44 * 60 * SECOND, 6 * HOUR],
  ] as const) {
    const spanAt = (at: number) => ({ from: NOON, to: NOON + Math.ceil(at / WIDTH) * WIDTH });
    const claims = weigh(spanAt(first), NOON + first, [])!;
    expect(claims.length).toBeGreaterThan(0);
    expect(weigh(spanAt(second), NOON + second, claims), `${first} ${second}`).toBeNull();
  }
});

test('another price in a slot that had settled is a different answer', () => {
  const span = { from: NOON, to: NOON + 6 * WIDTH };
  const claims = weigh(span, NOON + HOUR, [])!;
  const other = candlesOf(span);
  const close = other.close.map((value, i) => (i === 2 ? value! + 0.5 : value));
  const again = weigh(span, NOON + HOUR + 80 * SECOND, claims, { ...other, close })!;
  expect(again.map(({ answers }) => answers)).toEqual([1]);
  // This new price now needs a second answer.
  expect(weigh(span, NOON + 2 * HOUR, again)).toMatchObject([{ answers: 1 }]);
  expect(weigh(span, NOON + 2 * HOUR, again, { ...other, close })).toBeNull();
});

test('an answer about a longer span waits for the part without an earlier answer, and confirmed parts are not forgotten meanwhile', () => {
  const short = { from: NOON + 12 * WIDTH, to: NOON + 24 * WIDTH };
  const long = { from: NOON, to: NOON + 24 * WIDTH };
  const at = (minutes: number) => NOON + 3 * HOUR + minutes * 60 * SECOND;
  const claims = weigh(short, at(0), []);
  const longer = weigh(long, at(2), claims!)!;
  expect(longer.map(({ span, answers }) => [span.from, answers])).toEqual([
    [long.from, 1],
    [short.from, 2],
  ]);
  expect(Math.max(...longer.map(({ retryAt }) => retryAt))).toBeLessThan(at(4));
  expect(weigh(long, at(4), longer)).toBeNull();
});

test('an implausible answer leaves the claim about an invalid row as it was, and starts none of its own about that slot', () => {
  const span = { from: NOON, to: NOON + 6 * WIDTH };
  const slot = { from: NOON + 2 * WIDTH, to: NOON + 3 * WIDTH };
  const at = NOON + HOUR;
  const malformed = { span: slot, claim: 'malformed', answers: 3, requestedAt: at - 1, retryAt: at + 60_000 } as const;
  const claims = weigh(span, at, [malformed], candlesOf(span), [slot.from])!;
  expect(claims.filter(({ claim }) => claim === 'malformed')).toEqual([malformed]);
  expect(claims.flatMap((one) => (one.claim === 'implausible' ? [one.span] : []))).toEqual([
    { from: span.from, to: slot.from },
    { from: slot.to, to: span.to },
  ]);
  // A valid row of the slot is implausible like the others.
  expect(weigh(span, at, [malformed])!.every(({ claim }) => claim === 'implausible')).toBe(true);
});

test('an invalid row waits for the second opinion if nothing else is open: its own claim would be due at once', () => {
  const span = { from: NOON - HOUR, to: NOON + WIDTH };
  const at = NOON + HOUR;
  const slot = { from: NOON, to: NOON + WIDTH };
  const malformed = { span: slot, claim: 'malformed', answers: 3, requestedAt: at - 9, retryAt: at - 1 } as const;
  const first = weigh(span, at, [malformed], candlesOf({ from: span.from, to: NOON }), [NOON])!;
  expect(first).toMatchObject([{ span: slot, claim: 'implausible', answers: 1 }]);
  expect(weigh(span, first[0]!.retryAt, first, candlesOf({ from: span.from, to: NOON }), [NOON])).toBeNull();
});
