/** "Not found", with its provenance: the upstream answered so, or the warehouse never received the data. */
import type { Instant } from '../../clock.ts';
import { completeAsOf, NO_DATA, type Provenance, provenanceOf, withProvenance } from './provenance.ts';

const NOT_FOUND: unique symbol = Symbol('not found');

/** The provenance is attached to it, as to any other answer. */
export type NotFound = { readonly [NOT_FOUND]: true };

/** The answer of a source that finds nothing; null from a source without provenance. */
export type Missing = NotFound | null;

export function notFound(provenance: Provenance): NotFound {
  return withProvenance({ [NOT_FOUND]: true }, provenance);
}

/** The upstream answered "not found" at that instant; null when such an id is impossible. */
export function confirmedNotFound(asOf: Instant | null): NotFound {
  return notFound({ coverage: 'full', asOf, firstMissing: null });
}

/** Not found in this list. This proves something only if the list is complete. */
export function notFoundIn(list: object): NotFound {
  const provenance = provenanceOf(list);
  return notFound(provenance?.coverage === 'full' ? completeAsOf(provenance.asOf) : NO_DATA);
}

export function isFound<T extends object>(answer: T | Missing): answer is T {
  return answer !== null && !(NOT_FOUND in answer);
}
