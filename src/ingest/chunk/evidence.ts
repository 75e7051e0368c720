/**
 * What an answer proves about each slot it was asked for. Pure.
 *
 * A slot with a settled candle is final. A slot without one is believed empty at once when the same answer has candles on
 * both sides of it; at the edge of an answer, or in an answer of which anything had to be set aside, only when two answers
 * at least an hour apart say so, of a coin that the list of coins still had at or after the first of them (an id that upstream
 * does not know is answered with nothing, too). Until then it is *pending*: a gap with a reason and an instant when asking again is worth
 * a request (design, section 5, "Absence needs evidence").
 *
 * What one answer `told` needs no other answer, so the youngest answer that told of a slot has the last word about it, in
 * whatever order they are stored. What it `doubted` needs a second one; the two may come in any order, too.
 *
 * Two clocks: the as-of instant orders answers and says what has settled; it may lie hours before ours, when ours is wrong or a
 * cache answered. When we asked and when we ask again is on our own clock, or one question would never count as asked.
 */
import type { Instant } from '../../clock.ts';
import { DAY, HOUR, INTERVAL_MS, type Interval, settledUntil, settleMs } from '../../core/interval.ts';
import { contains, intersect, normalize, type Span, type Spans, subtract } from '../../core/span.ts';
import type { Known, Verdict } from '../../store/candle/chunk.ts';
import type { Pending } from '../../store/candle/pending.ts';
import type { Findings } from './validate.ts';

const CONFIRM_AFTER_MS = HOUR;
/** Answers in a row that must give the same impossible row before it is taken as upstream's last word. */
const MALFORMED_ANSWERS = 3;
/** The waits between them grow tenfold, and go on growing when they do not agree: 2 min, 20 min, 200 min, a day. */
const MALFORMED_FIRST_WAIT_MS = 2 * 60_000;
const MALFORMED_LONGEST_WAIT_MS = DAY;
/** Upstream's caches keep an answer so long at most: a minute, and ten more while it fails (upstream-api.md, section 0). */
const LONGEST_CACHED_MS = 11 * 60_000;
/** For an answer that is older than any should be. */
const LEAST_WAIT_MS = 60_000;

export type Weighing = {
  readonly span: Span;
  readonly interval: Interval;
  readonly findings: Findings;
  /** When we asked, on our clock. */
  readonly sentAt: Instant;
  readonly asOf: Instant;
  /** How long a cache has had the answer; 0: no cache. */
  readonly ageMs: number;
  /** Rows the answer could hold at most: an answer that is full says nothing about what lies after its last row. */
  readonly limit: number;
  readonly known: Known;
  /** Where the plan's documents expect a wall, and nothing has shown yet that none is there: what is left out may be refused. */
  readonly unproven?: Spans;
};

export function weigh({
  span,
  interval,
  findings,
  sentAt,
  asOf,
  ageMs,
  limit,
  known,
  unproven = [],
}: Weighing): Verdict {
  const width = INTERVAL_MS[interval];
  const settled = Math.min(Math.max(settledUntil(asOf, interval), span.from), span.to);
  const whole: Span[] = normalize([span]);
  const final: Span[] = normalize([{ from: span.from, to: settled }]);
  const provisional = subtract(whole, final);

  const times = findings.candles.openTime;
  const present = slotsToSpans(times, width);
  const setAside = intersect(
    slotsToSpans(
      findings.setAside.flatMap((row) => (row.openTime === null ? [] : [row.openTime])).sort((a, b) => a - b),
      width,
    ),
    final,
  );
  const missing = subtract(subtract(final, present), setAside);

  const first = times[0];
  const last = times.at(-1);
  const inside =
    first === undefined || last === undefined || findings.setAside.length > 0
      ? []
      : [{ from: first, to: last + width }];
  const empty = intersect(missing, inside);
  let doubtful = subtract(missing, inside);
  let unanswered: Span[] = [];
  if (last !== undefined && findings.rowCount >= limit) {
    // A full answer may have been cut: what follows its last row was not answered at all, and stays as it was.
    const answered = [{ from: span.from, to: last + width }];
    unanswered = subtract(doubtful, answered);
    doubtful = intersect(doubtful, answered);
  }

  // An answer with impossible rows is no witness: a missing slot may be one of theirs. It is asked again soon, from the start.
  const witness = findings.setAside.length === 0;
  const doubted = witness ? doubtful : [];
  const told = normalize([...present, ...empty]);
  // Who doubted a slot of which a younger answer tells did not know all there was from there on: upstream may hand out less than we take
  // for its most.
  const doubts = known.doubts.map((doubt) => ({
    ...doubt,
    spans: doubt.asOf < asOf ? apart(doubt.spans, told) : doubt.spans,
  }));
  const seconds = doubts.filter(
    (doubt) => Math.abs(doubt.asOf - asOf) >= CONFIRM_AFTER_MS && known.listedAt >= Math.min(doubt.asOf, asOf),
  );
  // Beyond a wall that may stand, two answers without a candle are no proof: a third is worth a request the next day.
  const agreed = intersect(apart(doubted, known.toldByYounger), normalize(seconds.flatMap((doubt) => doubt.spans)));
  const confirmed = subtract(agreed, unproven);
  doubtful = subtract(doubtful, confirmed);
  // What a cache has answered it answers again, until it has forgotten it.
  const notBefore = ageMs > 0 ? sentAt + Math.max(LONGEST_CACHED_MS - ageMs, LEAST_WAIT_MS) : sentAt;
  const pending: Pending[] = [];
  for (const before of known.pending) {
    pending.push(...intersect(unanswered, [before.span]).map((part) => ({ ...before, span: part })));
    if (before.reason !== 'unconfirmed' || before.answers === 0) continue;
    // The first answer still counts; the second has yet to come, but not in this run.
    const again = intersect(doubtful, [before.span]);
    const wait = witness ? confirmWait(doubts, before.span, asOf) : nextWait(before);
    const asked = before.dueAt > sentAt ? {} : { askedAt: sentAt, dueAt: Math.max(sentAt + wait, notBefore) };
    pending.push(...again.map((part) => ({ ...before, ...asked, span: part })));
    doubtful = subtract(doubtful, again);
  }
  const unconfirmed = (part: Span): Pending => {
    const before = known.pending.find(
      (p) => p.reason === 'unconfirmed' && p.answers === 0 && contains([p.span], part.from),
    );
    return {
      span: part,
      reason: 'unconfirmed',
      answers: witness ? 1 : 0,
      askedAt: sentAt,
      dueAt: Math.max(sentAt + (witness ? CONFIRM_AFTER_MS : nextWait(before)), notBefore),
    };
  };
  // Worth asking again when its first slot has settled for an answer as far behind our clock as this one: none before is final.
  const provisionally = (part: Span): Pending => ({
    span: part,
    reason: 'provisional',
    answers: 1,
    askedAt: sentAt,
    dueAt: Math.max(part.from + width + settleMs(interval) + (sentAt - asOf), notBefore),
  });
  pending.push(
    ...doubtful.map(unconfirmed),
    ...setAside.flatMap((part) => stillMalformed(part, { sentAt, ageMs, known }, notBefore, width)),
    ...provisional.map(provisionally),
  );

  return {
    told,
    proven: normalize([...intersect(present, final), ...empty]),
    doubted,
    confirmed,
    pending: pending.sort((a, b) => a.span.from - b.span.from),
  };
}

/** The spans of which nothing is in the others. */
function apart(spans: Spans, others: Spans): Span[] {
  return spans.filter((span) => intersect([span], others).length === 0);
}

/** What is lacking to an hour since the first answer that doubted `span`; when nothing is, a list of coins or a candle from beyond a wall is: once a day. */
function confirmWait(doubts: Known['doubts'], span: Span, asOf: Instant): number {
  const those = doubts.filter((doubt) => intersect(doubt.spans, [span]).length > 0).map((doubt) => doubt.asOf);
  const since = asOf - Math.min(...those, asOf);
  return since < CONFIRM_AFTER_MS ? CONFIRM_AFTER_MS - since : DAY;
}

/**
 * Counts one more answer for each slot whose row was set aside just so again, unless it was asked before its time, or a cache
 * gave the answer before once more.
 */
function stillMalformed(
  span: Span,
  { sentAt, ageMs, known }: Pick<Weighing, 'sentAt' | 'ageMs' | 'known'>,
  notBefore: Instant,
  width: number,
): Pending[] {
  const out: Pending[] = [];
  for (let at = span.from; at < span.to; at += width) {
    const before = known.pending.find((p) => p.reason === 'malformed' && contains([p.span], at));
    const tooEarly = before !== undefined && sentAt < before.dueAt;
    const sameAgain = before !== undefined && sentAt - ageMs <= before.askedAt;
    const counts = !tooEarly && !sameAgain;
    const agreed = before !== undefined && (!counts || known.repeated.has(at)) ? before.answers : 0;
    const answers = counts ? agreed + 1 : agreed;
    const wait = answers >= MALFORMED_ANSWERS ? Number.POSITIVE_INFINITY : nextWait(before);
    const askedAt = tooEarly ? before.askedAt : sentAt;
    const dueAt = tooEarly ? before.dueAt : Math.max(sentAt + (counts ? wait : 0), notBefore);
    const last = out.at(-1);
    const continues =
      last?.span.to === at && last.answers === answers && last.askedAt === askedAt && last.dueAt === dueAt;
    if (continues) out[out.length - 1] = { ...last, span: { from: last.span.from, to: at + width } };
    else out.push({ span: { from: at, to: at + width }, reason: 'malformed', answers, askedAt, dueAt });
  }
  return out;
}

function nextWait(before: Pending | undefined): number {
  if (before === undefined) return MALFORMED_FIRST_WAIT_MS;
  return Math.min((before.dueAt - before.askedAt) * 10, MALFORMED_LONGEST_WAIT_MS);
}

/** Ascending open times as spans. */
function slotsToSpans(times: readonly Instant[], width: number): Span[] {
  const out: { from: Instant; to: Instant }[] = [];
  for (const at of times) {
    const open = out.at(-1);
    if (open && at <= open.to) open.to = Math.max(open.to, at + width);
    else out.push({ from: at, to: at + width });
  }
  return out;
}
