/**
 * Which instant an answer knows, from its `Date` and `Age` and from our own clock (decision 77). Our clock may be hours or days off, and so may
 * what a server or a proxy writes. So headers that cannot be true are ignored, and of two instants that can, the earlier one counts: it makes
 * less final.
 */
import { type Instant, MOST_SKEW_MS } from '../clock.ts';
import { DAY } from '../core/interval.ts';

/** A `Date` further from our clock is no date: no machine whose clock is so wrong gets through TLS for long. */
export const MOST_CLOCK_ERROR_MS = 7 * DAY;
/** The upstream's caches keep an answer for 11 minutes. One that says more than a day counts as a day old. */
const MOST_AGE_MS = DAY;

export type AnswerTime = {
  /** No fact in the body is newer than this: the earlier of our clock at sending and the response's `Date`, less its `Age`. */
  readonly asOf: Instant;
  /** `asOf` is by our own clock alone: no answer has had a credible `Date` yet. */
  readonly isByOurClock: boolean;
  /** How long a cache has had the response (`Age`); 0: it comes from no cache. */
  readonly ageMs: number;
  /** The server's time when the response was made: its `Date`, less its `Age`; null when it does not say, or not credibly. */
  readonly date: Instant | null;
  /** The later of our clock and the server's: nothing true can lie after it. */
  readonly latest: Instant;
};

/**
 * Reads the time of the answers of one upstream. A `Date` behind our clock counts at once: it makes less final. One that is ahead of it may be as
 * wrong as our clock, until the next answer confirms it. Until then what answers have confirmed counts, or, if they have confirmed nothing,
 * our clock less all by which the two differ.
 */
export function createAnswerClock(): (
  sent: { readonly sentAt: Instant; readonly now: Instant },
  header: (name: string) => string | null,
) => AnswerTime {
  /** The upstream's clock less ours, as the last answer had it, and as answers have confirmed it; null: none has. */
  let last: number | null = null;
  let confirmed: number | null = null;
  return ({ sentAt, now }, header) => {
    const { ageMs, isBounded } = readAge(header('age'));
    const told = Date.parse(header('date') ?? '');
    const isCredible = Math.abs(told - now) <= MOST_CLOCK_ERROR_MS;
    const difference = isCredible ? told - now : 0;
    if (isCredible) {
      if (areNear(difference, last ?? 0)) confirmed = difference;
      last = difference;
    }
    const theirs = isCredible ? told : sentAt + (confirmed ?? Math.min(0, last ?? 0));
    const isUnconfirmed = difference > MOST_SKEW_MS && (confirmed === null || !areNear(difference, confirmed));
    const untilConfirmed = sentAt + (confirmed ?? -difference);
    return {
      asOf: Math.min(sentAt, theirs, isUnconfirmed ? untilConfirmed : sentAt) - ageMs,
      isByOurClock: last === null,
      ageMs,
      date: isCredible && isBounded ? told - ageMs : null,
      latest: Math.max(now, isCredible ? told : now + (confirmed ?? 0)),
    };
  };
}

function areNear(one: number, other: number): boolean {
  return Math.abs(one - other) <= MOST_SKEW_MS;
}

function readAge(text: string | null) {
  const told = Number(text ?? 0) * 1000;
  const ageMs = told > 0 ? Math.min(told, MOST_AGE_MS) : 0;
  return { ageMs, isBounded: !(told > MOST_AGE_MS) };
}
