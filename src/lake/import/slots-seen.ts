/**
 * Finds the slots of a series that cannot have been written yet, in little memory. It stores stretches of time in which slots were seen, not single
 * slots. A file whose rows ascend, or descend, needs one stretch. A slot inside a stretch may have been seen, so it is compared later.
 */
import type { Instant } from '../../clock.ts';

/** A file in another order needs more stretches. Beyond this number, rows are compared instead. */
const MOST_STRETCHES = 1_000;

export type SlotsSeen = {
  /** Notes the slot. True: it was surely not seen before. */
  isNew(at: Instant): boolean;
};

type Stretch = { from: Instant; to: Instant };

/** `stored`: the stretch from the first to the last slot that was stored before. */
export function createSlotsSeen(stored: Readonly<Stretch> | null): SlotsSeen {
  const closed: Readonly<Stretch>[] = stored === null ? [] : [stored];
  let open: Stretch | null = null;
  // The nearest other stretches. The open one may grow up to them.
  let below = Number.NEGATIVE_INFINITY;
  let above = Number.POSITIVE_INFINITY;
  const begin = (at: Instant): boolean => {
    if (closed.some(({ from, to }) => at >= from && at <= to)) return false;
    if (open !== null) {
      if (closed.length >= MOST_STRETCHES) return false;
      closed.push(open);
    }
    open = { from: at, to: at };
    below = closed.reduce((most, { to }) => (to < at ? Math.max(most, to) : most), Number.NEGATIVE_INFINITY);
    above = closed.reduce((least, { from }) => (from > at ? Math.min(least, from) : least), Number.POSITIVE_INFINITY);
    return true;
  };
  return {
    isNew: (at) => {
      if (open === null) return begin(at);
      if (at > open.to && at < above) {
        open.to = at;
        return true;
      }
      if (at < open.from && at > below) {
        open.from = at;
        return true;
      }
      return at < open.from || at > open.to ? begin(at) : false;
    },
  };
}
