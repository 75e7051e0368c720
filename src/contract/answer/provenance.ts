/**
 * The provenance of an answer: how much of the requested data came from the upstream, and when. REST sends it in headers, tools under `_meta`;
 * the body keeps the upstream's form. A source of market data attaches it to its answers, so no second call is needed.
 *
 * One rule holds for all answers (decision 74). Coverage is about the request, as-of about the answer:
 *
 * - `full`: the upstream sent all of the data, or it is known not to exist;
 * - `partial`: the upstream sent some of the data; for a history, the header names the first incomplete slot;
 * - `none`: the upstream sent none of the data, so an empty answer proves nothing;
 * - as-of: when the newest part of the answer was received.
 */
import type { Instant } from '../../clock.ts';
import { intersect, normalize, type Span, type Spans, subtract } from '../../core/span.ts';
import { formatTime } from '../time.ts';

export type Provenance = {
  readonly coverage: 'full' | 'partial' | 'none';
  /** When the newest part was received; null for never, or for an unknown time. */
  readonly asOf: Instant | null;
  /** The first incomplete slot of a partial history. */
  readonly firstMissing: Instant | null;
};

export const COVERAGE_HEADER = 'X-Chandler-Coverage';
export const AS_OF_HEADER = 'X-Chandler-As-Of';
/** Texts for the OpenAPI document. */
export const COVERAGE_DESCRIPTION =
  'How much of the requested data the warehouse has received. full: all of it, or upstream has no more. partial: some of it; for a ' +
  'history followed by "; first-missing=<RFC 3339>", the first incomplete slot. none: no part of it, so an empty answer proves nothing.';
export const AS_OF_DESCRIPTION = 'When the newest part of the answer was received from upstream (RFC 3339).';

/** The warehouse never received any of the data. */
export const NO_DATA: Provenance = { coverage: 'none', asOf: null, firstMissing: null };

/** The data was received completely at that instant; null when it was never received. */
export function completeAsOf(asOf: Instant | null): Provenance {
  return asOf === null ? NO_DATA : { coverage: 'full', asOf, firstMissing: null };
}

/** Some of the data was received. */
export function partialAsOf(asOf: Instant | null): Provenance {
  return { coverage: 'partial', asOf, firstMissing: null };
}

/**
 * The provenance of a history. `requested`: the slots whose rows belong into the answer. They begin at the first data of the coin, and end at now
 * or, if the limit cut the answer, at its last row. If there are no such slots, nothing is missing. `known`: slots whose row is in the
 * answer, or that are known to be empty. `hasRows`: the answer has rows, in these slots or in others.
 */
export function historyProvenance({
  requested,
  known,
  hasRows,
  asOf,
}: {
  readonly requested: Span;
  readonly known: Spans;
  readonly hasRows: boolean;
  readonly asOf: Instant | null;
}): Provenance {
  const wanted = normalize([requested]);
  const [missing] = subtract(wanted, known);
  if (missing === undefined) return { coverage: 'full', asOf, firstMissing: null };
  if (!hasRows && intersect(wanted, known).length === 0) return NO_DATA;
  return { coverage: 'partial', asOf, firstMissing: missing.from };
}

/** The provenance of an answer that combines several. An answer that needs no data (a dollar in dollars) is full. */
export function combineProvenance(parts: readonly Provenance[]): Provenance {
  const seen = parts.flatMap(({ asOf }) => asOf ?? []);
  const asOf = seen.length === 0 ? null : Math.max(...seen);
  if (parts.every(({ coverage }) => coverage === 'full')) return { coverage: 'full', asOf, firstMissing: null };
  return parts.every(({ coverage }) => coverage === 'none') ? NO_DATA : partialAsOf(asOf);
}

const provenances = new WeakMap<object, Provenance>();

/** Attaches the provenance to the answer, and returns the same answer. */
export function withProvenance<T extends object>(answer: T, provenance: Provenance): T {
  provenances.set(answer, provenance);
  return answer;
}

/** The provenance of an answer; null from a source without provenance. */
export function provenanceOf(answer: object | null): Provenance | null {
  return answer === null ? null : (provenances.get(answer) ?? null);
}

/** Gives a view of an answer the provenance of the answer. */
export function withSameProvenance<T extends object>(view: T, answer: object): T {
  const provenance = provenanceOf(answer);
  return provenance === null ? view : withProvenance(view, provenance);
}

/**
 * The headers of an answer: `X-Chandler-Coverage: full`, `partial`, `partial; first-missing=<RFC 3339>` or `none`, and
 * `X-Chandler-As-Of: <RFC 3339>`. None from a source without provenance.
 */
export function provenanceHeaders(answer: object | null): Readonly<Record<string, string>> {
  const provenance = provenanceOf(answer);
  return provenance === null ? {} : headersOf(provenance);
}

function headersOf({ coverage, asOf, firstMissing }: Provenance): Readonly<Record<string, string>> {
  const from = coverage === 'partial' && firstMissing !== null ? `; first-missing=${formatTime(firstMissing)}` : '';
  return {
    [COVERAGE_HEADER]: coverage + from,
    ...(asOf !== null && { [AS_OF_HEADER]: formatTime(asOf) }),
  };
}
