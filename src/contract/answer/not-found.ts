/** "There is no such thing", said with what that stands on: upstream has told so, or nobody has looked. */
import type { Instant } from '../../clock.ts';
import { type Basis, basisOf, NOTHING, standingOn, wholeAsOf } from './provenance.ts';

const ABSENT: unique symbol = Symbol('absent');

/** What it stands on is attached to it, as to any other answer. */
export type Absent = { readonly [ABSENT]: true };

/** What a source answers where there is nothing: null, if it does not say what its answers stand on. */
export type Nothing = Absent | null;

export function absent(basis: Basis): Absent {
  return standingOn({ [ABSENT]: true }, basis);
}

/** Upstream has said so, at that instant; null: it cannot be, whoever is asked. */
export function knownAbsent(asOf: Instant | null): Absent {
  return absent({ coverage: 'full', asOf, firstMissing: null });
}

/** It is not in this list: which says something only when upstream has told all of it. */
export function notIn(list: object): Absent {
  const basis = basisOf(list);
  return absent(basis?.coverage === 'full' ? wholeAsOf(basis.asOf) : NOTHING);
}

export function isThere<T extends object>(answer: T | Nothing): answer is T {
  return answer !== null && !(ABSENT in answer);
}
