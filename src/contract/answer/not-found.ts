/** "There is no such thing", said with what that stands on: upstream has told so, or nobody has looked. */
import type { Instant } from '../../clock.ts';
import { completeAsOf, NO_DATA, type Provenance, provenanceOf, withProvenance } from './provenance.ts';

const ABSENT: unique symbol = Symbol('absent');

/** What it stands on is attached to it, as to any other answer. */
export type NotFound = { readonly [ABSENT]: true };

/** What a source answers where there is nothing: null, if it does not say what its answers stand on. */
export type Missing = NotFound | null;

export function notFound(basis: Provenance): NotFound {
  return withProvenance({ [ABSENT]: true }, basis);
}

/** Upstream has said so, at that instant; null: it cannot be, whoever is asked. */
export function confirmedNotFound(asOf: Instant | null): NotFound {
  return notFound({ coverage: 'full', asOf, firstMissing: null });
}

/** It is not in this list: which says something only when upstream has told all of it. */
export function notFoundIn(list: object): NotFound {
  const basis = provenanceOf(list);
  return notFound(basis?.coverage === 'full' ? completeAsOf(basis.asOf) : NO_DATA);
}

export function isFound<T extends object>(answer: T | Missing): answer is T {
  return answer !== null && !(ABSENT in answer);
}
