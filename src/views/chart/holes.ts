/**
 * Slots without a bar, and the reasons: the chart shows them as bands. The reasons are those of `market.on_grid`, in spans instead of slots. Pure.
 */
import type { Instant } from '../../clock.ts';
import type { Spans } from '../../core/span.ts';
import type { GapReason } from '../operations/gaps.ts';
import { slotAfter } from './bar-width.ts';

/** `empty`: known to have no candle. `empty, not confirmed yet`: one answer said so, and a second one must confirm it. */
type HoleReason = GapReason | 'empty' | 'empty, not confirmed yet' | 'not yet' | 'before its data' | 'not wanted';

export type Hole = {
  readonly from: Instant;
  readonly to: Instant;
  readonly slots: number;
  readonly reason: HoleReason;
  /** The message of the upstream; null: nothing more is known. */
  readonly detail: string | null;
};

/** A wanted span that is not final. */
export type KnownGap = {
  readonly from: Instant;
  readonly to: Instant;
  readonly reason: GapReason;
  readonly detail: string | null;
};

type HoleContext = {
  readonly grid: Parameters<typeof slotAfter>[0];
  /** Starts of slots. */
  readonly from: Instant;
  readonly to: Instant;
  readonly now: Instant;
  /** Slots that have their bar, or are known to have none. */
  readonly final: Spans;
  readonly emptyOnce: Spans;
  /** The gaps of each series, ascending. The first series with a gap in a slot gives the reason. */
  readonly gaps: readonly (readonly KnownGap[])[];
  readonly firstDataAt: Instant | null;
};

/** The holes between the bars. Neighbours with the same reason are one hole. `bars`: their starts, ascending. */
export function holesBetween(bars: readonly Instant[], why: HoleContext): Hole[] {
  const holes: { -readonly [K in keyof Hole]: Hole[K] }[] = [];
  const inFinal = within(why.final);
  const inEmptyOnce = within(why.emptyOnce);
  const gapsAt = why.gaps.map(firstGap);
  let next = 0;
  for (let slot = why.from; slot < why.to; slot = slotAfter(why.grid, slot)) {
    if (bars[next] === slot) {
      next++;
      continue;
    }
    const end = slotAfter(why.grid, slot);
    const gap = inFinal(slot, end) ? null : gapAt(slot, end);
    const reason = gap?.reason ?? reasonOf(slot, end);
    const detail = gap?.detail ?? null;
    const last = holes.at(-1);
    if (last !== undefined && last.to === slot && last.reason === reason && last.detail === detail) {
      last.to = end;
      last.slots++;
    } else holes.push({ from: slot, to: end, slots: 1, reason, detail });
  }
  return holes;

  function gapAt(slot: Instant, end: Instant): KnownGap | null {
    return gapsAt.reduce<KnownGap | null>((found, next) => found ?? next(slot, end), null);
  }

  function reasonOf(slot: Instant, end: Instant): HoleReason {
    if (inFinal(slot, end)) return inEmptyOnce(slot, end) ? 'empty, not confirmed yet' : 'empty';
    if (end > why.now) return 'not yet';
    return why.firstDataAt !== null && why.firstDataAt >= end ? 'before its data' : 'not wanted';
  }
}

/** Returns whether one of the spans holds the whole slot. The slots must come in ascending order. */
function within(spans: Spans): (from: Instant, to: Instant) => boolean {
  let i = 0;
  return (from, to) => {
    while (i < spans.length && spans[i]!.to <= from) i++;
    const span = spans[i];
    return span !== undefined && span.from <= from && to <= span.to;
  };
}

/** Returns the first gap that touches the slot. The slots must come in ascending order. */
function firstGap(gaps: readonly KnownGap[]): (from: Instant, to: Instant) => KnownGap | null {
  let i = 0;
  return (from, to) => {
    while (i < gaps.length && gaps[i]!.to <= from) i++;
    const gap = gaps[i];
    return gap !== undefined && gap.from < to ? gap : null;
  };
}
