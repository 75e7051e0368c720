/**
 * Computes the as-of instant of an answer from its `Date` and `Age` and from our own clock (decision 77). Our clock may be hours or days off, and
 * so may the headers of a server or a proxy. So headers that cannot be true are ignored. Of two instants that can be true, the earlier one
 * counts, because it makes fewer slots final.
 */
import { type Instant, MOST_SKEW_MS } from '../clock.ts';
import { DAY } from '../core/interval.ts';

/** A `Date` further from our clock is ignored: with such a wrong clock, TLS would soon fail. */
export const MOST_CLOCK_ERROR_MS = 7 * DAY;
/** The upstream's caches keep an answer for 11 minutes. An `Age` above a day counts as a day. */
const MOST_AGE_MS = DAY;

export type AnswerTime = {
  /** No fact in the body is newer than this: the earlier of our clock at sending and the response's `Date`, minus its `Age`. */
  readonly asOf: Instant;
  /** True when `asOf` comes from our own clock alone, because no answer has had a credible `Date` yet. */
  readonly isByOurClock: boolean;
  /** Milliseconds that a cache has stored the response (`Age`); 0 when it does not come from a cache. */
  readonly ageMs: number;
  /** The server's time when it made the response: its `Date` minus its `Age`; null without credible headers. */
  readonly date: Instant | null;
  /** The later of our clock and the server's. No true instant in the body can be after it. */
  readonly latest: Instant;
};

/**
 * Computes the times of the answers of one upstream. A `Date` behind our clock counts at once, because it makes fewer slots final. A `Date` ahead of
 * our clock may be as wrong as our clock, until the next answer confirms it. Until then, the last confirmed difference of the clocks counts; if there
 * is none, the function subtracts the new difference from our clock.
 */
export function createAnswerClock(): (
  sent: { readonly sentAt: Instant; readonly now: Instant },
  header: (name: string) => string | null,
) => AnswerTime {
  /** The upstream's clock minus ours, in the last answer and as confirmed by two answers; null when there is none yet. */
  let last: number | null = null;
  let confirmed: number | null = null;
  return ({ sentAt, now }, header) => {
    const { ageMs, isBounded } = readAge(header('age'));
    const stated = Date.parse(header('date') ?? '');
    const isCredible = Math.abs(stated - now) <= MOST_CLOCK_ERROR_MS;
    const difference = isCredible ? stated - now : 0;
    if (isCredible) {
      if (areNear(difference, last ?? 0)) confirmed = difference;
      last = difference;
    }
    const theirs = isCredible ? stated : sentAt + (confirmed ?? Math.min(0, last ?? 0));
    const isUnconfirmed = difference > MOST_SKEW_MS && (confirmed === null || !areNear(difference, confirmed));
    const untilConfirmed = sentAt + (confirmed ?? -difference);
    return {
      asOf: Math.min(sentAt, theirs, isUnconfirmed ? untilConfirmed : sentAt) - ageMs,
      isByOurClock: last === null,
      ageMs,
      date: isCredible && isBounded ? stated - ageMs : null,
      latest: Math.max(now, isCredible ? stated : now + (confirmed ?? 0)),
    };
  };
}

function areNear(one: number, other: number): boolean {
  return Math.abs(one - other) <= MOST_SKEW_MS;
}

function readAge(text: string | null) {
  const stated = Number(text ?? 0) * 1000;
  const ageMs = stated > 0 ? Math.min(stated, MOST_AGE_MS) : 0;
  return { ageMs, isBounded: !(stated > MOST_AGE_MS) };
}
