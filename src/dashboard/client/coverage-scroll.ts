/**
 * Scrolls the rows of the map as the browser scrolls everything: by wheel, finger and scroll bar. The canvas stays in place, in front of an
 * empty space with the height of all rows.
 */
import { AXIS_HEIGHT, ROW_HEIGHT } from './coverage-view.ts';

type Parts = { readonly canvas: HTMLCanvasElement; readonly scroller: HTMLElement; readonly total: number };

export type Scroll = {
  readonly top: () => number;
  readonly setTop: (row: number) => void;
  readonly setTotal: (rows: number) => void;
  /** Makes the map and the space as large as possible. */
  readonly fit: () => { readonly width: number; readonly height: number };
};

/** Browsers cannot scroll much further than 30 million pixels. With more rows, one pixel of the scroll bar is more than one of the map. */
const MOST_PIXELS = 15_000_000;
const LEAST_HEIGHT = 8 * ROW_HEIGHT + AXIS_HEIGHT;
/** The width of a portrait sheet (A4 or Letter) between its margins. The browser would scale down a wider map, including its letters. */
const PAPER_PIXELS = 680;
/** The map's share of the window's height. */
const SHARE = 0.62;

export function createScroll({ canvas, scroller, total: first }: Parts, onScroll: (top: number) => void): Scroll {
  const space = canvas.parentElement!;
  let total = first;
  let height = LEAST_HEIGHT;
  const mostTop = () => Math.max(0, total - (height - AXIS_HEIGHT) / ROW_HEIGHT);
  const room = () => Math.max(0, Math.min(MOST_PIXELS, mostTop() * ROW_HEIGHT));
  const spread = () => {
    space.style.height = `${height + room()}px`;
  };
  const top = () => (room() === 0 ? 0 : (scroller.scrollTop / room()) * mostTop());
  scroller.addEventListener('scroll', () => onScroll(top()));
  return {
    top,
    setTop(row) {
      if (room() > 0) scroller.scrollTop = (Math.min(Math.max(row, 0), mostTop()) / mostTop()) * room();
    },
    setTotal(rows) {
      if (rows === total) return;
      total = rows;
      spread();
    },
    fit() {
      const most = Math.max(LEAST_HEIGHT, Math.floor(window.innerHeight * SHARE));
      height = Math.min(most, Math.max(LEAST_HEIGHT, AXIS_HEIGHT + total * ROW_HEIGHT));
      // Includes the borders: otherwise two pixels remain to scroll when all rows fit, and a finger scrolls these instead of the page.
      scroller.style.height = `${height + scroller.offsetHeight - scroller.clientHeight}px`;
      spread();
      const isOnPaper = document.documentElement.hasAttribute('data-paper');
      const width = isOnPaper ? Math.min(PAPER_PIXELS, scroller.clientWidth) : scroller.clientWidth;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      return { width, height };
    },
  };
}
