/**
 * What an answer stands on, told in headers beside a body that stays the upstream's, and under `_meta` in the result of a tool. A source
 * of market data may attach it to what it answers; it costs no second question. Who answers the same object again has nothing new to
 * say: what was written of it may be kept.
 *
 * There is one rule for all of them (decision 74). Coverage is about what was asked for, as-of about what was answered:
 *
 * - `full`: all of it was told by the upstream, or is known not to exist;
 * - `partial`: some of it was; of a history, the first slot that was not told from its beginning to its end is named;
 * - `none`: nothing of it was ever told: an empty answer that proves nothing;
 * - as-of: when the newest of what is answered was seen at the upstream.
 */
import type { Instant } from '../../clock.ts';
import { intersect, normalize, type Span, type Spans, subtract } from '../../core/span.ts';
import { formatTime } from '../time.ts';

export type Basis = {
  readonly coverage: 'full' | 'partial' | 'none';
  /** When the newest of it was seen at the upstream; null: nothing was, or it is older than what is known of that. */
  readonly asOf: Instant | null;
  /** Of a history that is there in part. */
  readonly firstMissing: Instant | null;
};

export const COVERAGE_HEADER = 'X-Chandler-Coverage';
export const AS_OF_HEADER = 'X-Chandler-As-Of';
/** For the documents of the interface. */
export const COVERAGE_MEANS =
  'How much of what was asked for upstream has told. full: all of it, or it is known that there is no more. partial: some of it; of a ' +
  'history followed by "; first-missing=<RFC 3339>", the first slot that was not told from its beginning to its end. none: nothing of ' +
  'it was ever told, so that an empty answer proves nothing.';
export const AS_OF_MEANS = 'When the newest of what is answered was seen at the upstream (RFC 3339).';

/** Nothing of it was ever told. */
export const NOTHING: Basis = { coverage: 'none', asOf: null, firstMissing: null };

/** What was told as a whole, at that instant; null: it never was. */
export function wholeAsOf(asOf: Instant | null): Basis {
  return asOf === null ? NOTHING : { coverage: 'full', asOf, firstMissing: null };
}

/** What was told, but not all of it. */
export function partAsOf(asOf: Instant | null): Basis {
  return { coverage: 'partial', asOf, firstMissing: null };
}

/**
 * Of a history. `asked`: the slots whose rows belong into the answer: from when there are data at all, up to now, and no further than
 * to the last row of an answer that its limit cut. Where there are none, nothing is missing. `known`: slots that the answer has as they
 * are, or that are known to be empty. `hasRows`: of those, or of others.
 */
export function historyBasis({
  asked,
  known,
  hasRows,
  asOf,
}: {
  readonly asked: Span;
  readonly known: Spans;
  readonly hasRows: boolean;
  readonly asOf: Instant | null;
}): Basis {
  const wanted = normalize([asked]);
  const [missing] = subtract(wanted, known);
  if (missing === undefined) return { coverage: 'full', asOf, firstMissing: null };
  if (!hasRows && intersect(wanted, known).length === 0) return NOTHING;
  return { coverage: 'partial', asOf, firstMissing: missing.from };
}

/** Of an answer that is made of several. One that needs none of them (a dollar in dollars) is full. */
export function together(bases: readonly Basis[]): Basis {
  const seen = bases.flatMap(({ asOf }) => asOf ?? []);
  const asOf = seen.length === 0 ? null : Math.max(...seen);
  if (bases.every(({ coverage }) => coverage === 'full')) return { coverage: 'full', asOf, firstMissing: null };
  return bases.every(({ coverage }) => coverage === 'none') ? NOTHING : partAsOf(asOf);
}

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

/** A view of an answer stands on what the answer stands on. */
export function standingOnSame<T extends object>(view: T, answer: object): T {
  const basis = basisOf(answer);
  return basis === null ? view : standingOn(view, basis);
}

/**
 * The headers of an answer: `X-Chandler-Coverage: full`, `partial`, `partial; first-missing=<RFC 3339>` or `none`, and
 * `X-Chandler-As-Of: <RFC 3339>`. None where the source does not say.
 */
export function basisHeaders(answer: object | null): Readonly<Record<string, string>> {
  const basis = basisOf(answer);
  return basis === null ? {} : headersOf(basis);
}

export function headersOf({ coverage, asOf, firstMissing }: Basis): Readonly<Record<string, string>> {
  const from = coverage === 'partial' && firstMissing !== null ? `; first-missing=${formatTime(firstMissing)}` : '';
  return {
    [COVERAGE_HEADER]: coverage + from,
    ...(asOf !== null && { [AS_OF_HEADER]: formatTime(asOf) }),
  };
}
