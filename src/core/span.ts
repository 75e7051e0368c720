/** Half-open spans of time `[from, to)`, and set arithmetic on sorted, disjoint lists of them. */
import type { Instant } from '../clock.ts';

export type Span = { readonly from: Instant; readonly to: Instant };
/** A list that is sorted by `from`, without empty, overlapping or touching spans. The functions of this file take and return such lists. */
export type Spans = readonly Span[];

/** Makes such a list of any spans: in any order, overlapping or empty. */
export function normalize(spans: Iterable<Span>): Span[] {
  const sorted = [...spans].filter((s) => s.from < s.to).sort((a, b) => a.from - b.from);
  const out: Span[] = [];
  for (const span of sorted) {
    const last = out.at(-1);
    if (last && span.from <= last.to) {
      if (span.to > last.to) out[out.length - 1] = { from: last.from, to: span.to };
    } else out.push({ from: span.from, to: span.to });
  }
  return out;
}

/** The slots of `width` milliseconds that open at `times`. The times must ascend. */
export function slotsAt(times: readonly Instant[], width: number): Span[] {
  const out: { from: Instant; to: Instant }[] = [];
  for (const at of times) {
    const last = out.at(-1);
    if (last && at <= last.to) last.to = Math.max(last.to, at + width);
    else out.push({ from: at, to: at + width });
  }
  return out;
}

export function union(a: Spans, b: Spans): Span[] {
  return normalize([...a, ...b]);
}

export function intersect(a: Spans, b: Spans): Span[] {
  const out: Span[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const x = a[i]!;
    const y = b[j]!;
    const from = Math.max(x.from, y.from);
    const to = Math.min(x.to, y.to);
    if (from < to) out.push({ from, to });
    if (x.to < y.to) i++;
    else j++;
  }
  return out;
}

export function subtract(a: Spans, b: Spans): Span[] {
  const out: Span[] = [];
  let j = 0;
  for (const span of a) {
    let from = span.from;
    while (j < b.length && b[j]!.to <= from) j++;
    for (let k = j; k < b.length && b[k]!.from < span.to; k++) {
      const hole = b[k]!;
      if (hole.from > from) out.push({ from, to: hole.from });
      from = Math.max(from, hole.to);
    }
    if (from < span.to) out.push({ from, to: span.to });
  }
  return out;
}

export function contains(spans: Spans, at: Instant): boolean {
  return spans.some((s) => s.from <= at && at < s.to);
}
