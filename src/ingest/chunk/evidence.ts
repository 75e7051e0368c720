/**
 * What an answer proves about each requested slot. Pure.
 *
 * A slot with a settled candle is final. A slot without one is believed empty at once when the same answer has candles on both sides of it. At the
 * edge of an answer, or in an answer with quarantined rows, it needs a second opinion: another empty answer at least an hour before or after, about a
 * coin that a list of coins or tickers still had at or after the first of the two (the upstream also answers with an empty list for an id that it
 * does not know). Until then the slot is *pending*: a gap with a claim, and with an instant before which another request is not worth it.
 *
 * The slots in `answeredSlots` need no other answer: the youngest answer that covers a slot decides about it, in whatever order answers are stored.
 * The slots in `unconfirmedSlots` need a second answer; the two may come in any order, too.
 *
 * There are two clocks. The as-of instant orders answers and decides what has settled; it may lie hours before our clock, when our clock is wrong or
 * a cache answered. When a request was sent, and when the next one may be, is measured on our clock, or one request would never count as sent.
 */
import type { Instant } from '../../clock.ts';
import { DAY, INTERVAL_MS, type Interval } from '../../core/interval.ts';
import { afterCaches, judgeAnswer, nextWait, RULES } from '../../core/second-opinion.ts';
import { contains, intersect, normalize, type Span, type Spans, slotsAt, subtract } from '../../core/span.ts';
import type { Verdict } from '../../store/candle/chunk.ts';
import type { OtherAnswers, UnconfirmedAnswer } from '../../store/candle/lock-series.ts';
import type { Pending } from '../../store/work/second-opinion.ts';
import type { Findings } from './validate.ts';

/** An answer with a much older date must not delay the next request by more than this. */
const MOST_LAG_MS = DAY;
/** This long after an answer without a candle, another one counts. */
export const CONFIRM_AFTER_MS = RULES.unconfirmed.waitMs;

export type AnswerToJudge = {
  readonly span: Span;
  readonly interval: Interval;
  readonly findings: Findings;
  /** When the request was sent, on our clock. */
  readonly sentAt: Instant;
  /** When the answer came, on our clock. */
  readonly receivedAt: Instant;
  readonly asOf: Instant;
  /** How long a cache has held the answer; 0: no cache. */
  readonly ageMs: number;
  /** The most rows the answer could have. A full answer says nothing about slots after its last row. */
  readonly limit: number;
  readonly known: OtherAnswers;
  /** Where the plan's documents expect a history limit, and no answer has disproved it yet: the upstream may omit candles there. */
  readonly unproven?: Spans;
  /** Slots that open before this instant have settled in the answer. */
  readonly settledTo: Instant;
  /** How long after its end a candle becomes final, so that another request is worth it. */
  readonly settlesAfterMs: number;
  /** The request was about covered slots that one answer reported as empty. */
  readonly isOfHoles?: boolean;
  /** The request had no start and no end: it was about the last full day. */
  readonly isOfLastDay?: boolean;
};

export function judgeSlots(answer: AnswerToJudge): Verdict {
  const { known, asOf, unproven = [] } = answer;
  const slots = readSlots(answer);
  const answeredSlots = normalize([...slots.present, ...slots.empty]);
  // An answer with quarantined rows proves nothing about missing slots, because such a slot may belong to one of these rows. The slots are requested
  // again soon, and their count of answers starts at zero.
  const unconfirmedSlots = isWitness(answer) ? slots.missing : [];
  // An earlier answer with missing slots does not count if this younger answer has any slot of the same span: the earlier answer was cut. The
  // upstream may send fewer rows than the limit that Chandler knows.
  const cut = known.unconfirmedAnswers.flatMap((other) => (other.isOlder ? touched(other.spans, answeredSlots) : []));
  const unconfirmed = known.unconfirmedAnswers.map((other) => ({
    ...other,
    spans: other.isOlder ? apart(other.spans, answeredSlots) : other.spans,
  }));
  const seconds = unconfirmed.filter(
    (other) => Math.abs(other.asOf - asOf) >= CONFIRM_AFTER_MS && known.listedAt >= Math.min(other.asOf, asOf),
  );
  // Beyond a history limit that may exist, two answers without a candle prove nothing: a third is requested the next day.
  const uncontradicted = apart(unconfirmedSlots, known.answeredByYounger);
  const agreed = intersect(uncontradicted, normalize(seconds.flatMap((second) => second.spans)));
  const confirmed = subtract(agreed, unproven);
  const pending = [
    ...stillUnconfirmed(answer, { ...slots, missing: subtract(slots.missing, confirmed) }, unconfirmed),
    ...slots.malformed.flatMap((part) => stillMalformed(part, answer)),
    ...slots.provisional.map((part) => stillProvisional(part, answer)),
  ];
  return {
    answeredSlots,
    proven: normalize([...intersect(slots.present, slots.final), ...slots.empty]),
    unconfirmedSlots,
    confirmed,
    uncontradicted,
    contradicted: normalize(cut),
    pending: pending.sort((a, b) => a.span.from - b.span.from),
  };
}

/** What the answer has for the requested slots. Each slot is in one of the lists; only `final` and `present` overlap with others. */
type Slots = {
  /** Settled, with or without a candle. */
  readonly final: Spans;
  readonly provisional: Spans;
  /** With a candle, settled or not. */
  readonly present: Spans;
  /** Settled, without a candle, with candles on both sides. */
  readonly empty: Spans;
  /** Settled, without a candle, at an edge of the answer or beside quarantined rows. */
  readonly missing: Spans;
  /** Settled, with a quarantined row. */
  readonly malformed: Spans;
  /** After the last row of a full answer, which may have been cut: the answer says nothing about them, and they stay as they were. */
  readonly unanswered: Spans;
};

/**
 * May the answer prove slots empty? Not with a quarantined row, which may belong to any of these slots; except a row that the upstream has repeated
 * until it was believed to be all that it has for its own slot. Otherwise one such row would keep all holes around it open for ever.
 */
function isWitness({ findings, known }: Pick<AnswerToJudge, 'findings' | 'known'>): boolean {
  const isBelieved = (at: Instant) =>
    known.repeated.has(at) &&
    known.pending.some(
      ({ span, claim, answers }) =>
        claim === 'malformed' && answers >= RULES.malformed.agreeing && contains([span], at),
    );
  return findings.quarantined.every(({ openTime }) => openTime !== null && isBelieved(openTime));
}

function readSlots(answer: AnswerToJudge): Slots {
  const { span, interval, findings, settledTo, limit } = answer;
  const width = INTERVAL_MS[interval];
  const settled = Math.min(Math.max(settledTo, span.from), span.to);
  const final = normalize([{ from: span.from, to: settled }]);
  const times = findings.candles.openTime;
  const present = slotsAt(times, width);
  const badTimes = findings.quarantined.flatMap((row) => (row.openTime === null ? [] : [row.openTime]));
  const malformed = intersect(
    slotsAt(
      badTimes.sort((a, b) => a - b),
      width,
    ),
    final,
  );
  const absent = subtract(subtract(final, present), malformed);
  const [first, last] = [times[0], times.at(-1)];
  const isWhole = first !== undefined && last !== undefined && isWitness(answer);
  const inside = isWhole ? [{ from: first, to: last + width }] : [];
  const atEdges = subtract(absent, inside);
  const isFull = last !== undefined && findings.rowCount >= limit;
  const answered = isFull ? [{ from: span.from, to: last + width }] : [span];
  return {
    final,
    provisional: subtract(normalize([span]), final),
    present,
    empty: intersect(absent, inside),
    missing: intersect(atEdges, answered),
    malformed,
    unanswered: subtract(atEdges, answered),
  };
}

/** Slots without a candle that need another answer. If an earlier answer missed a slot as well, its claim still stands. */
function stillUnconfirmed(
  answer: AnswerToJudge,
  { missing, unanswered }: Pick<Slots, 'missing' | 'unanswered'>,
  answers: readonly UnconfirmedAnswer[],
): Pending[] {
  const { sentAt, asOf, ageMs, known } = answer;
  const counts = isWitness(answer);
  const notBefore = afterCaches(sentAt, ageMs);
  const pending: Pending[] = [];
  let others = missing;
  for (const before of known.pending) {
    pending.push(...intersect(unanswered, [before.span]).map((part) => ({ ...before, span: part })));
    if (before.claim !== 'unconfirmed' || before.answers === 0) continue;
    // The first answer still counts. The second has not come yet, and this run does not request it.
    const again = intersect(others, [before.span]);
    const wait = counts ? confirmWait(answers, before.span, asOf) : nextWait(before, RULES.malformed);
    const asked = before.retryAt > sentAt ? {} : { requestedAt: sentAt, retryAt: Math.max(sentAt + wait, notBefore) };
    pending.push(...again.map((part) => ({ ...before, ...asked, span: part })));
    others = subtract(others, again);
  }
  const first = (span: Span): Pending => {
    const before = known.pending.find(
      (p) => p.claim === 'unconfirmed' && p.answers === 0 && contains([p.span], span.from),
    );
    const wait = counts ? CONFIRM_AFTER_MS : nextWait(before ?? null, RULES.malformed);
    const retryAt = Math.max(sentAt + wait, notBefore);
    return { span, claim: 'unconfirmed', answers: counts ? 1 : 0, requestedAt: sentAt, retryAt };
  };
  return [...pending, ...others.map(first)];
}

/**
 * The slots are worth another request when the first of them settles, if the next answer is as far behind our clock as this one: no slot is final
 * before that.
 */
function stillProvisional(span: Span, { interval, sentAt, asOf, ageMs, settlesAfterMs }: AnswerToJudge): Pending {
  const lagMs = Math.min(sentAt - asOf, MOST_LAG_MS);
  const settlesAt = span.from + INTERVAL_MS[interval] + settlesAfterMs + lagMs;
  const retryAt = Math.max(settlesAt, afterCaches(sentAt, ageMs));
  return { span, claim: 'provisional', answers: 1, requestedAt: sentAt, retryAt };
}

/** Weighs each slot with a quarantined row. The answer agrees with the one before if it has exactly the same row. */
function stillMalformed(span: Span, { interval, sentAt, receivedAt, ageMs, known }: AnswerToJudge): Pending[] {
  const width = INTERVAL_MS[interval];
  const out: Pending[] = [];
  for (let at = span.from; at < span.to; at += width) {
    const before = known.pending.find((p) => p.claim === 'malformed' && contains([p.span], at)) ?? null;
    const says = known.repeated.has(at) ? 'agrees' : 'differs';
    const weighed = judgeAnswer(before, { says, sentAt, receivedAt, ageMs }, RULES.malformed);
    if (weighed.kind === 'dropped') continue;
    const { answers, requestedAt, retryAt } = weighed.standing;
    const last = out.at(-1);
    const continues = last?.answers === answers && last.requestedAt === requestedAt && last.retryAt === retryAt;
    if (continues) out[out.length - 1] = { ...last, span: { from: last.span.from, to: at + width } };
    else out.push({ span: { from: at, to: at + width }, claim: 'malformed', answers, requestedAt, retryAt });
  }
  return out;
}

/** The spans that overlap with `others`, each as a whole. */
function touched(spans: Spans, others: Spans): Span[] {
  return spans.filter((span) => intersect([span], others).length > 0);
}

/** The spans that do not overlap with `others`. */
function apart(spans: Spans, others: Spans): Span[] {
  return spans.filter((span) => intersect([span], others).length === 0);
}

/**
 * The rest of the hour since the first answer without a candle in `span`, in milliseconds. If the hour is over, the confirmation lacks a list of
 * coins, or a candle from beyond a history limit: then one request a day.
 */
function confirmWait(others: readonly UnconfirmedAnswer[], span: Span, asOf: Instant): number {
  const those = others.filter((other) => intersect(other.spans, [span]).length > 0).map((other) => other.asOf);
  const since = asOf - Math.min(...those, asOf);
  return since < CONFIRM_AFTER_MS ? CONFIRM_AFTER_MS - since : DAY;
}
