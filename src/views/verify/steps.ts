/** The evidence of a series as steps, and the stretches of time about which the same steps reported something. Pure. */
import type { Instant } from '../../clock.ts';
import { normalize, type Span, type Spans } from '../../core/span.ts';

type Kind = 'answer' | 'mended' | 'retention' | 'renamed' | 'adopted';

/** A row of `market.evidence`. Digests are unsigned, modulo 2^64. */
export type EvidenceRow = {
  readonly number: number;
  readonly kind: Kind;
  readonly slots: Spans;
  readonly knownAt: Instant;
  readonly candles: number;
  readonly digest: bigint;
  readonly locator: bigint;
  /** Hexadecimal. */
  readonly link: string;
  readonly stepSeconds: readonly number[] | null;
  readonly stepSlots: readonly number[] | null;
  readonly detail: string | null;
  /** Whether `link` follows from the row and the link before. Null: only the candles of its steps can show it. */
  readonly isLinked: boolean | null;
  readonly isOnGrid: boolean;
};

/** One step of a row. `row` is its index in the list of rows. */
export type Step = {
  readonly number: number;
  readonly row: number;
  readonly kind: Kind;
  readonly slots: Spans;
  readonly knownAt: Instant;
};

/** Slots about which the same steps reported something. `tellers`: indexes in the list of steps, ascending. */
export type Segment = Span & { readonly tellers: readonly number[] };

/** The steps of rows in the order of their numbers. `width`: that of a slot, in milliseconds. */
export function stepsOf(rows: readonly EvidenceRow[], width: number): Step[] {
  return rows.flatMap((row, place) => stepsOfRow(row, place, width));
}

function stepsOfRow(row: EvidenceRow, place: number, width: number): Step[] {
  const { number, kind, slots, knownAt, stepSeconds, stepSlots } = row;
  if (stepSeconds === null || slots.length === 0) return [{ number, row: place, kind, slots, knownAt }];
  let from = slots[0]!.from;
  const end = slots.at(-1)!.to;
  return stepSeconds.map((seconds, i) => {
    // Never more slots than the row has, whatever somebody wrote there.
    const to = Math.min(end, from + (stepSlots?.[i] ?? 1) * width);
    const told = from < to ? [{ from, to }] : [];
    const step = { number: number + i, row: place, kind, slots: told, knownAt: knownAt + seconds * 1000 };
    from = to;
    return step;
  });
}

/** Whether a row is well-formed: one of several steps must be of answers, with one stretch that they fill, the time of the first, and no detail. */
export function isWholeRow({ kind, slots, stepSeconds, stepSlots, detail }: EvidenceRow, width: number): boolean {
  if (stepSeconds === null) return stepSlots === null;
  // If a row has only its first step yet, its link does not include this number.
  if (kind !== 'answer' || stepSeconds[0] !== 0 || detail !== null) return false;
  if (slots.length !== 1 || (stepSlots !== null && stepSlots.length !== stepSeconds.length)) return false;
  const told = stepSlots === null ? stepSeconds.length : stepSlots.reduce((sum, slots) => sum + slots, 0);
  return slots[0]!.to - slots[0]!.from === told * width;
}

/** Whether the slot is final after this step. */
export function makesFinal({ kind }: Pick<Step, 'kind'>): boolean {
  return kind === 'answer' || kind === 'adopted';
}

/** Splits all time into segments, where the reporting steps change, and at the bounds of `others`. */
export function segmentsOf(steps: readonly Step[], others: readonly Spans[]): Segment[] {
  const begin = new Map<Instant, number[]>();
  const end = new Map<Instant, number[]>();
  const add = (to: Map<Instant, number[]>, at: Instant, step?: number) => {
    const list = to.get(at) ?? [];
    if (step !== undefined) list.push(step);
    to.set(at, list);
  };
  for (const [i, { slots }] of steps.entries()) {
    for (const { from, to } of slots) {
      add(begin, from, i);
      add(end, to, i);
    }
  }
  for (const { from, to } of others.flat()) {
    add(begin, from);
    add(end, to);
  }
  const cuts = [...new Set([...begin.keys(), ...end.keys()])].sort((a, b) => a - b);
  const segments: Segment[] = [];
  let tellers: readonly number[] = [];
  let from = Number.NEGATIVE_INFINITY;
  for (const at of cuts) {
    if (from < at) segments.push({ from, to: at, tellers });
    const over = end.get(at);
    const news = begin.get(at);
    if (over?.length) tellers = tellers.filter((step) => !over.includes(step));
    if (news?.length) tellers = [...tellers, ...news].sort((a, b) => a - b);
    from = at;
  }
  if (from < Number.POSITIVE_INFINITY) segments.push({ from, to: Number.POSITIVE_INFINITY, tellers });
  return segments;
}

/** The slots that are final according to the steps. */
export function finalBy(steps: readonly Step[], segments: readonly Segment[]): Span[] {
  return normalize(
    segments.filter(({ tellers }) => {
      const last = tellers.at(-1);
      return last !== undefined && makesFinal(steps[last]!);
    }),
  );
}

/** The index of the segment that holds `at`. Every instant is in one. */
export function segmentAt(segments: readonly Segment[], at: Instant): number {
  let [low, high] = [0, segments.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at < segments[middle]!.to) high = middle;
    else low = middle + 1;
  }
  return low;
}
