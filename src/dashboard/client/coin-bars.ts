/** The bars of a coin as the server sends them, and how the loaded parts become one row of slots. */

type Bar = {
  /** Seconds since 1970, as the library for charts uses them. */
  readonly time: number;
  readonly open: number | null;
  readonly high: number | null;
  readonly low: number | null;
  readonly close: number | null;
  readonly volume: number | null;
  readonly isFinal: boolean;
  readonly isRevised: boolean;
  /** `final`, `incomplete, aggregated from finer candles`. */
  readonly state: string;
};

export type Hole = {
  readonly from: number;
  readonly to: number;
  readonly slots: number;
  readonly reason: string;
  readonly detail: string | null;
};

export type Loaded = {
  readonly from: number;
  readonly to: number;
  readonly hasEarlier: boolean;
  readonly grid: { readonly seconds: number; readonly months: number };
  readonly bars: readonly Bar[];
  readonly holes: readonly Hole[];
};

type Answer = Omit<Loaded, 'bars' | 'holes'> & {
  readonly states: readonly string[];
  readonly bars: readonly (readonly (number | null)[])[];
  readonly holes: readonly (readonly [number, number, number, string, string | null])[];
};

/** Null when the server cannot answer now. The page itself reports that. */
export async function loadBars(source: string, query: URLSearchParams): Promise<Loaded | null> {
  const answer = await fetch(`${source}?${query}`).catch(() => null);
  if (answer === null || !answer.ok || answer.redirected) return null;
  // The connection may end within the body.
  const whole = (await answer.json().catch(() => null)) as Answer | null;
  if (whole === null) return null;
  const { bars, holes, states, ...rest } = whole;
  return {
    ...rest,
    bars: bars.map(([time, open, high, low, close, volume, isFinal, isRevised, state]) => ({
      time: time!,
      open: open!,
      high: high!,
      low: low!,
      close: close!,
      volume: volume!,
      isFinal: isFinal === 1,
      isRevised: isRevised === 1,
      state: states[state!]!,
    })),
    holes: holes.map(([from, to, slots, reason, detail]) => ({ from, to, slots, reason, detail })),
  };
}

/** `newer` replaces the part of `all` in its span. It must touch or overlap `all`. */
export function joined(all: Loaded, newer: Loaded): Loaded {
  if (newer.from >= newer.to) return all;
  const isOther = ({ time }: Bar) => time < newer.from || time >= newer.to;
  const bars = [...all.bars.filter(isOther), ...newer.bars].sort((a, b) => a.time - b.time);
  const kept = all.holes.flatMap((hole) => [
    ...(hole.from < newer.from ? [cut(hole, hole.from, Math.min(hole.to, newer.from), all)] : []),
    ...(hole.to > newer.to ? [cut(hole, Math.max(hole.from, newer.to), hole.to, all)] : []),
  ]);
  return {
    grid: all.grid,
    from: Math.min(all.from, newer.from),
    to: Math.max(all.to, newer.to),
    hasEarlier: newer.from <= all.from ? newer.hasEarlier : all.hasEarlier,
    bars,
    holes: [...kept, ...newer.holes].sort((a, b) => a.from - b.from),
  };
}

function cut(hole: Hole, from: number, to: number, { grid }: Loaded): Hole {
  let slots = 0;
  for (let slot = from; slot < to; slot = slotAfter(grid, slot)) slots++;
  return { ...hole, from, to, slots };
}

function slotAfter({ seconds, months }: Loaded['grid'], slot: number): number {
  if (months === 0) return slot + seconds;
  const date = new Date(slot * 1000);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months) / 1000;
}

/** A slot with its bar, or with the hole that contains it. */
export type Slot = { readonly time: number; readonly bar: Bar | null; readonly hole: Hole | null };

/** All slots in order of time. */
export function slotsOf({ grid, bars, holes }: Loaded): Slot[] {
  const slots: Slot[] = bars.map((bar) => ({ time: bar.time, bar, hole: null }));
  for (const hole of holes)
    for (let time = hole.from; time < hole.to; time = slotAfter(grid, time)) slots.push({ time, bar: null, hole });
  return slots.sort((a, b) => a.time - b.time);
}
