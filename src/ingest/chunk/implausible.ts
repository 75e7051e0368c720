/** Weighs an implausible answer against earlier ones: it is believed, or withheld until a second answer agrees. Pure. */
import { createHash } from 'node:crypto';
import type { Instant } from '../../clock.ts';
import type { CandleColumns } from '../../core/candle.ts';
import { DAY, INTERVAL_MS, type Interval, settledUntil } from '../../core/interval.ts';
import { type JudgedAnswer, judgeAnswer, RULES } from '../../core/second-opinion.ts';
import { contains, intersect, normalize, type Span, slotsAt, subtract } from '../../core/span.ts';
import type { Verdict } from '../../store/candle/chunk.ts';
import type { Sample } from '../../store/candle/other-intervals.ts';
import type { Pending } from '../../store/work/second-opinion.ts';
import type { Implausible } from '../plausibility/implausible-candles.ts';
import { findImplausible } from '../plausibility/plausibility.ts';
import type { AnswerToJudge } from './evidence.ts';

const NOTHING = {
  answeredSlots: [],
  proven: [],
  unconfirmedSlots: [],
  confirmed: [],
  uncontradicted: [],
  contradicted: [],
};

/** The as-of instant of an earlier answer may lie this far before its request. */
const MOST_LAG_MS = DAY;

/** `found` null: the answer is plausible. `verdict` null: the answer is plausible or believed. Otherwise nothing of the answer is stored now. */
type Doubt = { readonly found: Implausible | null; readonly verdict: Verdict | null };

export function judgeImplausible({
  span,
  interval,
  findings,
  sentAt,
  receivedAt,
  settledTo,
  ageMs,
  known,
  isOfHoles = false,
  isOfLastDay = false,
}: AnswerToJudge): Doubt {
  const { candles } = findings;
  const settled = [{ from: span.from, to: Math.min(Math.max(settledTo, span.from), span.to) }];
  const isSettled = settled[0]!.from < settled[0]!.to;
  const found =
    findImplausible({ interval, candles, beside: known.beside, samples: wholeSamples(known.samples, findings) }) ??
    (isOfLastDay ? stillOpen(findings) : endsOpen(findings, settledTo));
  if (found === null) return { found, verdict: null };
  // A request about holes is about final slots: its answer must not change them before a second one agrees.
  const wanted = subtract(isOfHoles ? [span] : subtract([span], known.covered), known.answeredByYounger);
  const repeated = stillInvalid({ interval, findings, known });
  const others = subtract(wanted, normalize(repeated.map((one) => one.span)));
  // If nothing else is open, these slots wait for the second opinion. Their old claims would be due at once, and the request would be sent for ever.
  const [open, malformed] = others.length > 0 ? [others, repeated] : [wanted, []];
  const parts = isSettled ? [...intersect(open, settled), ...subtract(open, settled)] : open;
  const claims = known.pending.filter(({ claim }) => claim === 'implausible');
  const claimed = normalize(claims.map((one) => one.span));
  const pieces = [...subtract(parts, claimed), ...claims.flatMap((one) => intersect(parts, [one.span]))];
  // Every slot has been answered meanwhile. Nothing is missing, so there is no second opinion to wait for, and the stored candles stay.
  if (pieces.length === 0) return withheld([], receivedAt, found);
  const weighed = pieces.map((piece) => {
    const before = claims.find((one) => contains([one.span], piece.from)) ?? null;
    const says = agrees(before, { span, found, candles }) ? 'agrees' : 'differs';
    const opinion = judgeAnswer(before, { says, sentAt, receivedAt, ageMs }, RULES.implausible);
    const isWaiting = opinion.kind !== 'believed' && !(before === null && isLater(piece, claims, interval));
    return { piece, before, opinion, isWaiting };
  });
  const waiting = weighed.filter((one) => one.isWaiting);
  if (waiting.length === 0) return { found, verdict: null };
  const { kind, detail } = found;
  const pending = weighed.flatMap(({ piece, before, opinion }): Pending[] => {
    if (opinion.kind === 'dropped') return [];
    // The candles of a slot that has not settled change with every answer, so they have no digest.
    const digest = contains(settled, piece.from) ? digestOf(candles, piece) : '';
    const evidence = opinion.isCounted ? { kind, detail, digest } : before!.evidence;
    // Slots on which two answers agree wait for the rest of this answer, and no longer.
    const retryAt = Math.min(opinion.standing.retryAt, Math.max(...waiting.map((one) => retryAtOf(one.opinion))));
    return [{ span: piece, claim: 'implausible', evidence, ...opinion.standing, retryAt }];
  });
  return withheld([...pending, ...malformed], Math.max(...pending.map(({ retryAt }) => retryAt)), found);
}

/** The claims about invalid rows that this answer repeats. They stay as they are: a claim that starts anew would never be believed. */
function stillInvalid({
  interval,
  findings,
  known,
}: Pick<AnswerToJudge, 'interval' | 'findings' | 'known'>): Pending[] {
  const times = findings.quarantined.flatMap(({ openTime }) => openTime ?? []).sort((a, b) => a - b);
  const invalid = slotsAt(times, INTERVAL_MS[interval]);
  const claims = known.pending.filter(({ claim }) => claim === 'malformed');
  return claims.flatMap((one) => intersect(invalid, [one.span]).map((part) => ({ ...one, span: part })));
}

/** A full day must close with its last second (upstream-api.md, 1.1 no 6). If a plan gives no other day, a wrong row would never be corrected. */
function stillOpen({ cutShort: [row] }: AnswerToJudge['findings']): Implausible | null {
  if (row === undefined) return null;
  return { kind: 'open', detail: `the last full day says that it closes at ${new Date(row.closeTime).toISOString()}` };
}

/**
 * Only the last candle of an answer can be open. If it has settled and still ends within its slot, the body is older than its `Date` says: a server
 * or a cache repeats it. If other candles end early, too, that is how the upstream writes them.
 */
function endsOpen({ candles, cutShort }: AnswerToJudge['findings'], settledTo: Instant): Implausible | null {
  const [row] = cutShort;
  if (row === undefined || cutShort.length > 1) return null;
  const { openTime, closeTime } = row;
  if (openTime !== candles.openTime.at(-1) || openTime >= settledTo) return null;
  return { kind: 'open', detail: `the last candle says that it closes at ${new Date(closeTime).toISOString()}` };
}

/** The samples without slots in which a row was quarantined: the remaining rows of such a slot are not all that the answer has. */
function wholeSamples(samples: readonly Sample[], { quarantined }: AnswerToJudge['findings']): readonly Sample[] {
  if (quarantined.length === 0) return samples;
  const isIn = ({ from, to }: Span) => quarantined.some(({ openTime: at }) => at !== null && at >= from && at < to);
  return samples.filter(({ slot }) => !isIn(slot));
}

const retryAtOf = (opinion: JudgedAnswer) => (opinion.kind === 'dropped' ? 0 : opinion.standing.retryAt);

/**
 * Is the slot later than all slots that earlier answers had, and has it settled since? Then it is believed together with the others. Otherwise an
 * answer about short candles would never equal the one before.
 */
function isLater(piece: Span, claims: readonly Pending[], interval: Interval): boolean {
  const last = claims.reduce<Pending | null>((a, b) => (a === null || b.span.to > a.span.to ? b : a), null);
  return (
    last !== null && piece.from >= last.span.to && piece.from >= settledUntil(last.requestedAt - MOST_LAG_MS, interval)
  );
}

function withheld(pending: readonly Pending[], until: Instant, found: Implausible): Doubt {
  return { found, verdict: { ...NOTHING, pending, withheld: { until, detail: found.detail } } };
}

/**
 * Does the answer agree with the earlier claim? Its settled slots must have the same candles. For slots that had not settled, the kind of the
 * implausible finding must be the same.
 */
function agrees(
  before: Pending | null,
  { span, found, candles }: { readonly span: Span; readonly found: Implausible; readonly candles: CandleColumns },
): boolean {
  if (!before?.evidence) return false;
  const { kind, digest } = before.evidence;
  if (digest === '') return kind === found.kind;
  const isWhole = before.span.from >= span.from && before.span.to <= span.to;
  return isWhole && digest === digestOf(candles, before.span);
}

function digestOf(candles: CandleColumns, { from, to }: Span): string {
  const inside = candles.openTime.flatMap((at, i) =>
    at >= from && at < to ? [[at, ...Object.values(candles).map((column) => column[i])]] : [],
  );
  return createHash('sha256').update(JSON.stringify(inside)).digest('hex').slice(0, 32);
}
