/**
 * What an answer stands on, told in headers beside a body that stays the upstream's. A source of market data may attach it to what it
 * answers; it costs no second question. Who answers the same object again has nothing new to say: what was written of it may be kept.
 */
import type { Instant } from '../clock.ts';
import { formatTime } from './time.ts';

export type Basis = {
  /** When the newest of it was seen at the upstream; null: nothing was. */
  readonly asOf: Instant | null;
  /** The first slot asked for that is neither in the answer nor known to be empty; null: there is none, or it is no history. */
  readonly firstMissing: Instant | null;
};

export const COVERAGE_HEADER = 'X-Chandler-Coverage';
export const AS_OF_HEADER = 'X-Chandler-As-Of';

const bases = new WeakMap<object, Basis>();

/** The same answer, which from now on tells what it stands on. */
export function standingOn<T extends object>(answer: T, basis: Basis): T {
  bases.set(answer, basis);
  return answer;
}

/** Null where the source does not say. */
export function basisOf(answer: object | null): Basis | null {
  return answer === null ? null : (bases.get(answer) ?? null);
}

/**
 * The headers of an answer: `X-Chandler-Coverage: full`, `partial; first-missing=<RFC 3339>` or `none` (nothing of it was ever seen),
 * and `X-Chandler-As-Of: <RFC 3339>`. None where the source does not say.
 */
export function basisHeaders(answer: object | null): Readonly<Record<string, string>> {
  const basis = basisOf(answer);
  if (basis === null) return {};
  const { asOf, firstMissing } = basis;
  if (asOf === null) return { [COVERAGE_HEADER]: 'none' };
  return {
    [COVERAGE_HEADER]: firstMissing === null ? 'full' : `partial; first-missing=${formatTime(firstMissing)}`,
    [AS_OF_HEADER]: formatTime(asOf),
  };
}
