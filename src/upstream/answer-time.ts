/**
 * Which instant an answer knows, from its `Date` and `Age` and from our own clock (decision 77). Our clock may be hours or days off, and so may
 * what a server or a proxy writes. So headers that cannot be true are ignored, and of two instants that can, the earlier one counts: it makes
 * less final.
 */
import type { Instant } from '../clock.ts';
import { DAY } from '../core/interval.ts';

/** A `Date` further from our clock is no date: no machine whose clock is so wrong gets through TLS for long. */
const MOST_CLOCK_ERROR_MS = 7 * DAY;
/** The upstream's caches keep an answer for 11 minutes. One that says more than a day counts as a day old. */
const MOST_AGE_MS = DAY;

export type AnswerTime = {
  /** No fact in the body is newer than this: the earlier of our clock at sending and the response's `Date`, less its `Age`. */
  readonly asOf: Instant;
  /** How long a cache has had the response (`Age`); 0: it comes from no cache. */
  readonly ageMs: number;
  /** The server's time when the response was made: its `Date`, less its `Age`; null when it does not say, or not credibly. */
  readonly date: Instant | null;
  /** The later of our clock and the server's: nothing true can lie after it. */
  readonly latest: Instant;
};

/**
 * Reads the time of the answers of one upstream. Where an answer has no credible `Date`, the `Date` of the last one that had tells how far our
 * clock is off.
 */
export function createAnswerClock(): (
  sent: { readonly sentAt: Instant; readonly now: Instant },
  header: (name: string) => string | null,
) => AnswerTime {
  /** The upstream's clock less ours, as far as its answers have told. */
  let offset = 0;
  return ({ sentAt, now }, header) => {
    const { ageMs, isBounded } = readAge(header('age'));
    const told = Date.parse(header('date') ?? '');
    const isCredible = Math.abs(told - now) <= MOST_CLOCK_ERROR_MS;
    if (isCredible) offset = told - now;
    const theirs = isCredible ? told : sentAt + offset;
    return {
      asOf: Math.min(sentAt, theirs) - ageMs,
      ageMs,
      date: isCredible && isBounded ? told - ageMs : null,
      latest: Math.max(now, isCredible ? told : now + offset),
    };
  };
}

function readAge(text: string | null) {
  const told = Number(text ?? 0) * 1000;
  const ageMs = told > 0 ? Math.min(told, MOST_AGE_MS) : 0;
  return { ageMs, isBounded: !(told > MOST_AGE_MS) };
}
