import { describe, expect, test } from 'vitest';
import { DAY, HOUR, settledUntil, settleMs } from '../../../src/core/interval.ts';
import { normalize, type Span, union } from '../../../src/core/span.ts';
import { judgeSlots } from '../../../src/ingest/chunk/evidence.ts';
import { validate } from '../../../src/ingest/chunk/validate.ts';

const NOW = 1_000 * HOUR;
const hours = (from: number, to: number) => ({ from: from * HOUR, to: to * HOUR });

function row(hour: number, change: Record<string, unknown> = {}) {
  const values = { open: 2, high: 3, low: 1, close: 2, volume: 10, marketCap: 100 };
  return {
    ok: true as const,
    openTime: hour * HOUR,
    closeTime: null,
    coinId: null,
    row: { hour, open: 2 },
    ...values,
    ...change,
  };
}

/** What an answer with these rows proves, given the `after` answers in the order in which they were stored. */
function judge(
  rows: ReturnType<typeof row>[],
  options: {
    after?: readonly Judged[];
    asOf?: number;
    sentAt?: number;
    ageMs?: number;
    limit?: number;
    to?: number;
    repeated?: boolean;
    listedAt?: number;
    unproven?: readonly Span[];
  } = {},
) {
  const span = hours(100, options.to ?? 110);
  const { asOf = NOW, sentAt = asOf, ageMs = 0, after = [] } = options;
  const findings = validate({ coinId: 'btc-bitcoin', interval: '1h', span }, rows, asOf);
  const known = {
    pending: after.at(-1)?.pending ?? [],
    listedAt: options.listedAt ?? Number.POSITIVE_INFINITY,
    answeredByYounger: normalize(after.filter((other) => other.asOf > asOf).flatMap((other) => other.answeredSlots)),
    unconfirmedAnswers: after.map((other) => ({
      asOf: other.asOf,
      spans: other.unconfirmedSlots,
      isOlder: other.asOf < asOf,
    })),
    repeated: new Set((options.repeated ?? true) ? findings.quarantined.map((aside) => aside.openTime!) : []),
    covered: [],
    beside: { candles: [], covered: 0, coveredCandles: 0, final: [] },
    samples: [],
  };
  const verdict = judgeSlots({
    span,
    interval: '1h',
    findings,
    sentAt,
    receivedAt: sentAt,
    asOf,
    ageMs,
    settledTo: settledUntil(asOf, '1h'),
    settlesAfterMs: settleMs('1h'),
    limit: options.limit ?? 366,
    known,
    unproven: options.unproven ?? [],
  });
  return { findings, asOf, ...verdict, covered: union(verdict.proven, verdict.confirmed) };
}
type Judged = Pick<ReturnType<typeof judgeSlots>, 'pending' | 'answeredSlots' | 'unconfirmedSlots'> & {
  readonly asOf: number;
};

const all = Array.from({ length: 10 }, (_, i) => row(100 + i));
const without = (...hoursOut: number[]) => all.filter((r) => !hoursOut.includes(r.openTime / HOUR));

describe('what an answer proves', () => {
  test('beyond a possible history limit, no number of answers without a candle proves anything; once the limit is gone, one more does', () => {
    const unproven = [hours(0, 105)];
    const rows = all.slice(8);
    const first = judge(rows, { unproven });
    expect(first.covered).toEqual([hours(108, 110)]);
    const second = judge(rows, { after: [first], asOf: NOW + HOUR, unproven });
    // Slots on this side of the history limit are believed.
    expect(second.covered).toEqual([hours(105, 110)]);
    expect(second.pending).toEqual([
      { ...first.pending[0]!, span: hours(100, 105), requestedAt: NOW + HOUR, retryAt: NOW + 25 * HOUR },
    ]);
    const third = judge(rows, { after: [first, second], asOf: NOW + 25 * HOUR, unproven });
    expect(third.pending).toEqual([
      { ...first.pending[0]!, span: hours(100, 105), requestedAt: NOW + 25 * HOUR, retryAt: NOW + 49 * HOUR },
    ]);
    const open = judge(rows, { after: [first, second, third], asOf: NOW + 49 * HOUR });
    expect(open).toMatchObject({ covered: [hours(100, 110)], pending: [] });
  });

  test('a full answer covers the whole requested span', () => {
    expect(judge(all)).toMatchObject({ covered: [hours(100, 110)], pending: [] });
  });

  test('a hole with candles on both sides is known to be empty at once', () => {
    expect(judge(without(103, 104))).toMatchObject({ covered: [hours(100, 110)], pending: [] });
  });

  test('a hole at the edge waits for a second answer at least an hour later', () => {
    const first = judge(without(100, 108, 109));
    expect(first.covered).toEqual([hours(101, 108)]);
    expect(first.pending).toEqual([
      { span: hours(100, 101), claim: 'unconfirmed', answers: 1, requestedAt: NOW, retryAt: NOW + HOUR },
      { span: hours(108, 110), claim: 'unconfirmed', answers: 1, requestedAt: NOW, retryAt: NOW + HOUR },
    ]);
    const tooSoon = judge(without(100, 108, 109), { after: [first], asOf: NOW + HOUR - 1 });
    expect(tooSoon.covered).toEqual([hours(101, 108)]);
    expect(tooSoon.pending).toEqual(first.pending);
    const inTime = judge(without(100, 108, 109), { after: [first, tooSoon], asOf: NOW + HOUR });
    expect(inTime.covered).toEqual([hours(100, 110)]);
    expect(inTime.pending).toEqual([]);
    // It does not matter which of the two is stored first.
    const older = judge(without(100, 108, 109), { after: [first], asOf: NOW - HOUR });
    expect(older.confirmed).toEqual([hours(100, 101), hours(108, 110)]);
  });

  test('answers that are cut without saying so confirm nothing of what they left out, in whatever order they come', () => {
    const first = judge(all.slice(0, 4));
    const later = { asOf: NOW + HOUR };
    const second = judge(all.slice(4, 8), { ...later, after: [first] });
    expect(second.covered).toEqual([hours(104, 108)]);
    const late = judge(all.slice(0, 4), { after: [judge(all.slice(4, 8), later)] });
    expect(late.confirmed).toEqual([]);
    // The second answer counts as a witness until it is refuted as well.
    const third = judge([], { asOf: NOW + 2 * HOUR, after: [second] });
    expect(third.confirmed).toEqual(second.unconfirmedSlots);
  });

  test('two empty answers prove nothing about a coin that was seen in the list only before the first of them', () => {
    const first = judge([]);
    const later = { after: [first], asOf: NOW + 2 * HOUR };
    const unlisted = judge([], { ...later, listedAt: NOW - 1 });
    expect(unlisted).toMatchObject({ covered: [] });
    // Requested once a day, in case a list has the coin again: then the first of all answers still counts.
    expect(unlisted.pending).toMatchObject([
      { claim: 'unconfirmed', answers: 1, requestedAt: later.asOf, retryAt: later.asOf + 24 * HOUR },
    ]);
    expect(judge([], { ...later, listedAt: NOW }).covered).toEqual([hours(100, 110)]);
    // It does not matter which of the two is stored first.
    const older = { after: [first], asOf: NOW - HOUR };
    expect(judge([], { ...older, listedAt: NOW - HOUR - 1 }).covered).toEqual([]);
    expect(judge([], { ...older, listedAt: NOW - HOUR }).covered).toEqual([hours(100, 110)]);
  });

  test('an empty answer proves nothing until a second one says the same', () => {
    const first = judge([]);
    expect(first.covered).toEqual([]);
    expect(first.pending).toMatchObject([{ span: hours(100, 110), claim: 'unconfirmed' }]);
    expect(judge([], { after: [first], asOf: NOW + 2 * HOUR })).toMatchObject({
      covered: [hours(100, 110)],
      pending: [],
    });
    expect(judge(all, { after: [first], asOf: NOW + 60_000 })).toMatchObject({
      covered: [hours(100, 110)],
      pending: [],
    });
  });

  test('what has not settled is stored but stays a gap, due when its first slot settles', () => {
    const asOf = 110 * HOUR;
    const { covered, pending, findings } = judge(all, { asOf });
    expect(findings.candles.openTime).toHaveLength(10);
    expect(covered).toEqual([hours(100, 109)]);
    expect(pending).toEqual([
      { span: hours(109, 110), claim: 'provisional', answers: 1, requestedAt: asOf, retryAt: 111 * HOUR },
    ]);
  });

  test('an answer that is full proves nothing about the slots after its last row', () => {
    const rows = all.slice(0, 5);
    expect(judge(rows, { limit: 5 })).toMatchObject({ covered: [hours(100, 105)], pending: [] });
    expect(judge(rows, { limit: 6 })).toMatchObject({
      covered: [hours(100, 105)],
      pending: [{ span: hours(105, 110), claim: 'unconfirmed' }],
    });
    // Earlier evidence about these slots stands.
    const first = judge(rows, { limit: 6 });
    expect(judge(rows, { limit: 5, after: [first], asOf: NOW + 2 * HOUR }).pending).toEqual(first.pending);
  });

  test('an impossible row stays a gap until five answers agree, requested with growing spacing', () => {
    const rows = [...without(104), row(104, { high: 0.5 })];
    const first = judge(rows);
    expect(first.covered).toEqual([hours(100, 104), hours(105, 110)]);
    expect(first.pending).toMatchObject([
      { span: hours(104, 105), claim: 'malformed', answers: 1, retryAt: NOW + 2_000 },
    ]);
    const early = judge(rows, { after: [first], asOf: NOW + 1_000 });
    expect(early.pending).toEqual(first.pending);
    const second = judge(rows, { after: [first], asOf: NOW + 2_000 });
    expect(second.pending).toMatchObject([{ answers: 2, retryAt: NOW + 7_000 }]);
    const third = judge(rows, { after: [second], asOf: NOW + 7_000 });
    expect(third.pending).toMatchObject([{ answers: 3, retryAt: NOW + 7_000 + 2 * 60_000 }]);
    const fourth = judge(rows, { after: [third], asOf: NOW + 3 * 60_000 });
    expect(fourth.pending).toMatchObject([{ answers: 4, retryAt: NOW + 23 * 60_000 }]);
    const fifth = judge(rows, { after: [fourth], asOf: NOW + 23 * 60_000 });
    expect(fifth.pending).toMatchObject([{ claim: 'malformed', answers: 5, retryAt: Number.POSITIVE_INFINITY }]);
    expect(judge(all, { after: [second], asOf: NOW + HOUR })).toMatchObject({
      covered: [hours(100, 110)],
      pending: [],
    });
  });

  test('an impossible row that a cache repeats counts once, and is not requested again before the cache has dropped it', () => {
    const rows = [...without(104), row(104, { high: 0.5 })];
    const first = judge(rows);
    const sentAt = NOW + 3 * 60_000;
    const cached = judge(rows, { after: [first], sentAt, asOf: NOW, ageMs: 3 * 60_000 });
    expect(cached.pending).toMatchObject([{ answers: 1, requestedAt: sentAt, retryAt: NOW + 11 * 60_000 }]);
    const fresh = judge(rows, { after: [first, cached], asOf: NOW + 11 * 60_000 });
    expect(fresh.pending).toMatchObject([{ answers: 2 }]);
  });

  test('the next request is timed by our clock, however far from it the times of the answers are', () => {
    const sentAt = NOW + 90 * 60_000;
    const first = judge(without(100), { sentAt, asOf: NOW });
    expect(first.pending).toMatchObject([{ requestedAt: sentAt, retryAt: sentAt + HOUR }]);
    // It is due, and still of the same hour: a second answer is missing.
    const again = { sentAt: sentAt + HOUR, asOf: NOW + 30 * 60_000 };
    const tooSoon = judge(without(100), { after: [first], ...again });
    expect(tooSoon.pending).toMatchObject([{ requestedAt: again.sentAt, retryAt: again.sentAt + 30 * 60_000 }]);
    // As of 110:00 the last slot has not settled; an answer an hour later, as late by our clock, shows it settled.
    const settling = judge(all, { sentAt: 111.5 * HOUR, asOf: 110 * HOUR });
    expect(settling.pending).toMatchObject([
      { claim: 'provisional', requestedAt: 111.5 * HOUR, retryAt: 112.5 * HOUR },
    ]);
  });

  test('impossible rows that differ from answer to answer do not agree: they are requested less and less often, and never confirmed', () => {
    const rows = [...without(104), row(104, { high: 0.5 })];
    let last = judge(rows);
    const waits: number[] = [];
    for (let i = 0; i < 7; i++) {
      const { requestedAt, retryAt } = last.pending[0]!;
      waits.push((retryAt - requestedAt) / 60_000);
      last = judge(rows, { after: [last], asOf: retryAt, repeated: false });
      expect(last.pending).toMatchObject([{ claim: 'malformed', answers: 1 }]);
    }
    expect(waits).toEqual([2 / 60, 5 / 60, 2, 20, 200, 1_440, 1_440]);
  });

  test('a slot whose answers never count as a witness is requested less and less often', () => {
    const rows = [...without(104), row(104.5)];
    let last = judge(rows);
    const waits: number[] = [];
    for (let i = 0; i < 6; i++) {
      const { requestedAt, retryAt } = last.pending[0]!;
      waits.push((retryAt - requestedAt) / 60_000);
      last = judge(rows, { after: [last], asOf: retryAt });
    }
    expect(waits).toEqual([2 / 60, 5 / 60, 2, 20, 200, 1_440]);
  });

  test('an answer with a quarantined row proves no slot empty: the bad row may be the one of that slot', () => {
    const first = judge([...without(104), row(104.5)]);
    expect(first.covered).toEqual([hours(100, 104), hours(105, 110)]);
    expect(first.pending).toMatchObject([
      { span: hours(104, 105), claim: 'unconfirmed', answers: 0, retryAt: NOW + 2_000 },
    ]);
    // Nor does it count as the first of the two answers that must agree.
    const edge = judge([], { after: [first], asOf: NOW + 5 * HOUR });
    expect(edge.covered).toEqual([]);
    expect(edge.pending).toMatchObject([{ claim: 'unconfirmed', answers: 1, requestedAt: NOW + 5 * HOUR }]);
  });

  test('a row that five equal answers made final keeps no other slot open', () => {
    const rows = [...without(104, 106, 109), row(104, { high: 0.5 })];
    let last = judge(rows);
    for (let answers = 1; answers < 5; answers++) {
      expect(last.covered).toEqual([hours(100, 104), hours(105, 106), hours(107, 109)]);
      const due = last.pending.find(({ claim }) => claim === 'malformed')!.retryAt;
      last = judge(rows, { after: [last], asOf: due });
    }
    const later = judge(rows, { after: [last], asOf: NOW + DAY });
    expect(later.covered).toEqual([hours(100, 104), hours(105, 109)]);
    expect(later.pending).toMatchObject([
      { span: hours(104, 105), claim: 'malformed', retryAt: Number.POSITIVE_INFINITY },
      { span: hours(109, 110), claim: 'unconfirmed', answers: 1 },
    ]);
    const confirming = judge(rows, { after: [last, later], asOf: NOW + 2 * DAY });
    expect(confirming.covered).toEqual([hours(100, 104), hours(105, 110)]);
    // Another invalid row in its place is news.
    const other = judge(rows, { after: [last], asOf: NOW + DAY, repeated: false });
    expect(other.covered).toEqual([hours(100, 104), hours(105, 106), hours(107, 109)]);
  });

  test('a second answer that is no witness leaves the first one in force, and is not requested again at once', () => {
    const first = judge(without(100));
    const later = NOW + 2 * HOUR;
    const clouded = judge([...without(100, 104), row(104, { high: 0.5 })], {
      after: [first],
      asOf: later,
    });
    const again = clouded.pending.find((p) => p.span.from === 100 * HOUR)!;
    expect(again).toMatchObject({ claim: 'unconfirmed', answers: 1, requestedAt: later });
    expect(again.retryAt).toBeGreaterThan(later);
    expect(judge(without(100), { after: [first, clouded], asOf: again.retryAt }).covered).toEqual([hours(100, 110)]);
  });
});

describe('which rows are impossible', () => {
  test.each([
    ['high below low', row(104, { high: 0.5, open: 0.5, close: 0.5 }), /high is below low/],
    ['open above high', row(104, { open: 4 }), /above high/],
    ['close below low', row(104, { close: 0.5 }), /below low/],
    ['a negative price', row(104, { low: -1 }), /negative/],
    ['a negative volume', row(104, { volume: -1 }), /volume/],
    ['an infinite market cap', row(104, { marketCap: Number.POSITIVE_INFINITY }), /market_cap/],
    ['off the grid', row(104.25), /grid/],
    ['outside the question', row(120), /outside/],
    ['from the future', row(2_000), /future/],
    ['another coin', row(104, { coinId: 'eth-ethereum' }), /eth-ethereum/],
    ['a close before its open', row(104, { closeTime: 0 }), /time_close/],
  ])('%s', (_, bad, reason) => {
    const { findings } = judge([...without(104), bad]);
    expect(findings.quarantined).toHaveLength(1);
    expect(findings.quarantined[0]!.reason).toMatch(reason);
    expect(findings.candles.openTime).toHaveLength(9);
  });

  test('repeated rows count once; rows that contradict each other are both quarantined', () => {
    const { findings } = judge([...all, row(104)]);
    expect(findings.candles.openTime).toHaveLength(10);
    expect(findings.quarantined).toEqual([]);
    const contradiction = judge([...all, row(104, { close: 2.5 })]);
    expect(contradiction.findings.candles.openTime).toHaveLength(9);
    expect(contradiction.findings.quarantined).toHaveLength(2);
    expect(contradiction.pending).toMatchObject([{ span: hours(104, 105), claim: 'malformed' }]);
  });

  test('nulls are values, and the order of rows does not matter', () => {
    const nothing = { open: null, high: null, low: null, close: null, volume: null, marketCap: null };
    const { findings, covered } = judge([...without(104), row(104, nothing)].reverse());
    expect(findings.candles.openTime).toEqual(all.map((r) => r.openTime));
    expect(findings.candles.open[4]).toBeNull();
    expect(covered).toEqual([hours(100, 110)]);
  });
});
