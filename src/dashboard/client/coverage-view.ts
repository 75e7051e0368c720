/** The visible part of the coverage map: its first and last second and its first row, and how these change. Pure. */

/** Seconds since 1970, and rows from 0. Fractions are parts of a pixel. */
export type View = {
  readonly from: number;
  readonly to: number;
  readonly top: number;
};

/** A range of rows and of seconds. Both ends are exclusive. */
export type Box = { readonly row: number; readonly endRow: number; readonly from: number; readonly to: number };

/** In CSS pixels. The plot lies to the right of the labels and below the axis. */
export type Layout = {
  readonly width: number;
  readonly height: number;
  readonly labels: number;
};

export const ROW_HEIGHT = 18;
export const AXIS_HEIGHT = 22;

const HOUR = 3_600;
const DAY = 86_400;
const SHORTEST = HOUR;
const LONGEST = 80 * 366 * DAY;
const FIRST = 0;
/** The year 2200. */
const LAST = 7_258_118_400;

export function layoutOf(width: number, height: number): Layout {
  return { width, height, labels: width < 560 ? 104 : 176 };
}

export function plotWidth({ width, labels }: Layout): number {
  return Math.max(1, width - labels);
}

export function visibleRows({ height }: Layout): number {
  return Math.max(1, (height - AXIS_HEIGHT) / ROW_HEIGHT);
}

export function xOf(view: View, layout: Layout, at: number): number {
  return layout.labels + ((at - view.from) / (view.to - view.from)) * plotWidth(layout);
}

export function timeAt(view: View, layout: Layout, x: number): number {
  return view.from + ((x - layout.labels) / plotWidth(layout)) * (view.to - view.from);
}

export function rowAt(view: View, y: number): number {
  return Math.floor(view.top + (y - AXIS_HEIGHT) / ROW_HEIGHT);
}

export function yOf(view: View, row: number): number {
  return AXIS_HEIGHT + (row - view.top) * ROW_HEIGHT;
}

/** Moves by this share of the visible time: 0.5 is half a map later. */
export function panned(view: View, part: number): View {
  return movedTo(view, view.from + part * (view.to - view.from));
}

export function movedTo(view: View, from: number): View {
  const span = view.to - view.from;
  const begin = Math.min(Math.max(from, FIRST), LAST - span);
  return { ...view, from: begin, to: begin + span };
}

/** A factor below one zooms in. The instant `around` stays in its place. */
export function zoomed(view: View, factor: number, around: number): View {
  const span = Math.min(Math.max((view.to - view.from) * factor, SHORTEST), LONGEST);
  const share = (around - view.from) / (view.to - view.from);
  return movedTo({ ...view, to: view.from + span }, around - share * span);
}

/** The first row to show so that `row` becomes visible with the least scrolling. */
export function topToShow(view: View, layout: Layout, row: number): number {
  const fit = Math.max(1, Math.floor(visibleRows(layout)));
  if (row < view.top) return row;
  return row >= view.top + fit ? row - fit + 1 : view.top;
}

/** Widths of the cells that the cursor moves by, in seconds. */
const CELLS = [300, 900, 1_800, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 7 * DAY, 30 * DAY, 90 * DAY, 365 * DAY];
const CELL_PIXELS = 8;

export function cellSeconds(view: View, layout: Layout): number {
  const least = (CELL_PIXELS * (view.to - view.from)) / plotWidth(layout);
  return CELLS.find((one) => one >= least) ?? CELLS.at(-1)!;
}

type Tick = { readonly at: number; readonly text: string };

const TICK_PIXELS = 84;
const MONTH = 30.4 * DAY;

/** Where the axis has a line and a date: at years, months, days, or hours. */
export function ticksOf(view: View, layout: Layout): Tick[] {
  const least = (TICK_PIXELS * (view.to - view.from)) / plotWidth(layout);
  const months = [1, 3, 6, 12, 24, 60, 120, 240].find((one) => one * MONTH >= least) ?? 240;
  if (least > 14 * DAY) return monthTicks(view, months);
  const step = [300, 900, 1_800, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY].find(
    (one) => one >= least,
  )!;
  const ticks: Tick[] = [];
  for (let at = Math.ceil(view.from / step) * step; at < view.to; at += step)
    ticks.push({ at, text: tickText(at, step) });
  return ticks;
}

function monthTicks(view: View, months: number): Tick[] {
  const ticks: Tick[] = [];
  const first = new Date(view.from * 1000);
  let month = Math.floor((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months;
  for (let at = 0; at < view.to; month += months) {
    at = Date.UTC(Math.floor(month / 12), month % 12) / 1000;
    const text = new Date(at * 1000).toISOString();
    if (at >= view.from && at < view.to) ticks.push({ at, text: text.slice(0, months % 12 === 0 ? 4 : 7) });
  }
  return ticks;
}

function tickText(at: number, step: number): string {
  const text = new Date(at * 1000).toISOString();
  return step >= DAY || at % DAY === 0 ? text.slice(0, 10) : text.slice(11, 16);
}
