/**
 * Scrolls the rows of the map as the browser scrolls everything: by wheel, finger and scroll bar. The canvas stays where it is, before an
 * empty space that is as high as all rows would be.
 */
import { AXIS_HEIGHT, ROW_HEIGHT } from './coverage-view.ts';

type Parts = { readonly canvas: HTMLCanvasElement; readonly scroller: HTMLElement; readonly total: number };

export type Scroll = {
  readonly top: () => number;
  readonly setTop: (row: number) => void;
  readonly setTotal: (rows: number) => void;
  /** Makes map and space as large as they can be. */
  readonly fit: () => { readonly width: number; readonly height: number };
};

/** Browsers cannot scroll much further than 30 million pixels: with more rows, a pixel of the scroll bar is more than one of the map. */
const MOST_PIXELS = 15_000_000;
const LEAST_HEIGHT = 8 * ROW_HEIGHT + AXIS_HEIGHT;
/** What a sheet between its margins has in portrait, A4 or Letter: wider ones would be scaled down, with their letters. */
const PAPER_PIXELS = 680;
/** Of what the window has. */
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
      // With its borders: else there are two pixels to scroll where all rows fit, and a finger scrolls these instead of the page.
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
