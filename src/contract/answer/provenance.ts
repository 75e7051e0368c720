/**
 * The provenance of an answer: how much of it upstream said, and when. REST sends it in headers, tools under `_meta`; the body stays the
 * upstream's. A source of market data attaches it to its answers, so nobody has to ask for it separately.
 *
 * One rule for all answers (decision 74). Coverage is about the request, as-of about the answer:
 *
 * - `full`: upstream said all of it, or it is known not to exist;
 * - `partial`: upstream said some of it; for a history, the first incomplete slot is named;
 * - `none`: upstream said none of it, so an empty answer proves nothing;
 * - as-of: when the newest part of the answer was received.
 */
import type { Instant } from '../../clock.ts';
import { intersect, normalize, type Span, type Spans, subtract } from '../../core/span.ts';
import { formatTime } from '../time.ts';

export type Provenance = {
  readonly coverage: 'full' | 'partial' | 'none';
  /** When the newest part was received; null: never, or at an unknown time. */
  readonly asOf: Instant | null;
  /** The first incomplete slot of a partial history. */
  readonly firstMissing: Instant | null;
};

export const COVERAGE_HEADER = 'X-Chandler-Coverage';
export const AS_OF_HEADER = 'X-Chandler-As-Of';
/** For the OpenAPI document. */
export const COVERAGE_DESCRIPTION =
  'How much of the requested data upstream has said. full: all of it, or it is known that there is no more. partial: some of it; for a ' +
  'history followed by "; first-missing=<RFC 3339>", the first incomplete slot. none: nothing of it, so an empty answer proves nothing.';
export const AS_OF_DESCRIPTION = 'When the newest part of the answer was received from upstream (RFC 3339).';

/** The warehouse never received any of it. */
export const NO_DATA: Provenance = { coverage: 'none', asOf: null, firstMissing: null };

/** Received as a whole at that instant; null: never received. */
export function completeAsOf(asOf: Instant | null): Provenance {
  return asOf === null ? NO_DATA : { coverage: 'full', asOf, firstMissing: null };
}

/** Received, but not all of it. */
export function partialAsOf(asOf: Instant | null): Provenance {
  return { coverage: 'partial', asOf, firstMissing: null };
}

/**
 * The provenance of a history. `requested`: the slots whose rows belong into the answer: from the first data of the coin, up to now, and no
 * further than the last row of an answer that its limit cut. Without such slots nothing is missing. `known`: slots whose row is in the
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

/** The provenance of an answer that is made of several. An answer that needs no data (a dollar in dollars) is full. */
export function combineProvenance(parts: readonly Provenance[]): Provenance {
  const seen = parts.flatMap(({ asOf }) => asOf ?? []);
  const asOf = seen.length === 0 ? null : Math.max(...seen);
  if (parts.every(({ coverage }) => coverage === 'full')) return { coverage: 'full', asOf, firstMissing: null };
  return parts.every(({ coverage }) => coverage === 'none') ? NO_DATA : partialAsOf(asOf);
}

const provenances = new WeakMap<object, Provenance>();

/** The same answer, with its provenance attached. */
export function withProvenance<T extends object>(answer: T, provenance: Provenance): T {
  provenances.set(answer, provenance);
  return answer;
}

/** Null from a source without provenance. */
export function provenanceOf(answer: object | null): Provenance | null {
  return answer === null ? null : (provenances.get(answer) ?? null);
}

/** A view of an answer has the provenance of the answer. */
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
