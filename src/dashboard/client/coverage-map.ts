/** The map itself: what it shows, and how it draws that on the canvas, at most once per frame. */
import { type Cell, type Cursor, createCursor } from './coverage-cursor.ts';
import { createMapData, type MapData } from './coverage-data.ts';
import { type Looks, paintSwatches, readLooks } from './coverage-looks.ts';
import { paint, shownRows } from './coverage-paint.ts';
import { createScroll, type Scroll } from './coverage-scroll.ts';
import { createMapTexts, type MapTexts } from './coverage-texts.ts';
import { type Box, type Layout, layoutOf, type View } from './coverage-view.ts';

export type Parts = {
  readonly canvas: HTMLCanvasElement;
  /** Scrolls the rows, and has the focus. */
  readonly scroller: HTMLElement;
  readonly section: HTMLElement;
  readonly pen: CanvasRenderingContext2D;
};

export type CoverageMap = {
  readonly view: () => View;
  readonly layout: () => Layout;
  /** The time that the page shows without one in its address. */
  readonly all: { readonly from: number; readonly to: number };
  readonly total: () => number;
  readonly data: MapData;
  readonly texts: MapTexts;
  readonly scroll: Scroll;
  readonly cursor: Cursor;
  readonly draw: () => void;
  readonly show: (next: View) => void;
  /** The same as `show`, and scrolls to the first row of the view. */
  readonly goTo: (next: View) => void;
  /** Describes and draws the present cursor and selection. */
  readonly showCursor: () => void;
  readonly resize: () => void;
};

/** The cursor and the selection of the address. */
function marksOf(dataset: DOMStringMap): { readonly cell: Cell | null; readonly selection: Box | null } {
  const [place, at] = (dataset.cursor ?? '').split(',').map(Number);
  const [row, endRow, from, to] = (dataset.selection ?? '').split(',').map(Number);
  return {
    cell: at === undefined ? null : { row: place!, at },
    selection: to === undefined ? null : { row: row!, endRow: endRow!, from: from!, to },
  };
}

export function createMap(parts: Parts): CoverageMap {
  const { canvas, scroller, pen } = parts;
  const given = (name: string) => Number(canvas.dataset[name]);
  const all = { from: given('from') / 1000, to: given('to') / 1000 };
  let view: View = { ...all, top: given('row') };
  let layout: Layout = layoutOf(600, 300);
  let looks: Looks | null = null;
  let isDrawing = false;

  const first = marksOf(canvas.dataset);
  let toRemember = first.selection;

  const query = () => new URLSearchParams(location.search);
  const total = () => data.answer()?.total ?? given('total');
  const data = createMapData(query, (problem) => {
    scroll.setTotal(total());
    texts.problem(problem);
    if (problem === null && toRemember !== null) {
      void data.loadRows(toRemember).then(() => showCursor());
      toRemember = null;
    }
    showCursor();
  });
  const texts = createMapTexts(data, { ...all, ...first });
  const cursor = createCursor({ view: () => view, layout: () => layout, total, rowOf: data.rowOf, first });
  const scroll = createScroll({ canvas, scroller, total: given('total') }, (top) => {
    if (Math.abs(top - view.top) > 0.01) show({ ...view, top });
  });
  const cell = () => {
    const at = cursor.cell();
    return at && cursor.boxOf(at);
  };

  const drawNow = () => {
    isDrawing = false;
    if (looks === null) return;
    const answer = data.answer();
    const isByTier = query().get('group') === 'tier';
    const hasFocus = document.activeElement === scroller;
    paint(pen, looks, { view, layout, answer, cursor: cell(), selection: cursor.selection(), isByTier, hasFocus });
    texts.rows(shownRows({ view, layout, answer }).map(({ row }) => row));
    // For measurements: milliseconds from the page request to the first drawing.
    if (answer !== null) canvas.dataset.drawn ??= String(Math.round(performance.now()));
  };
  const draw = () => {
    if (isDrawing) return;
    isDrawing = true;
    requestAnimationFrame(drawNow);
  };
  const show = (next: View) => {
    view = next;
    data.need(view, layout);
    texts.address(view);
    draw();
  };
  const showCursor = () => {
    texts.cell(cell());
    texts.selection(cursor.selection());
    texts.marks(cursor.cell(), cursor.selection());
    draw();
  };
  return {
    ...{ all, total, data, texts, scroll, cursor, draw, show, showCursor },
    view: () => view,
    layout: () => layout,
    goTo(next) {
      show(next);
      scroll.setTop(next.top);
    },
    resize() {
      const { width, height } = scroll.fit();
      layout = layoutOf(width, height);
      canvas.width = Math.round(width * devicePixelRatio);
      canvas.height = Math.round(height * devicePixelRatio);
      pen.setTransform(canvas.width / width, 0, 0, canvas.height / height, 0, 0);
      looks = readLooks(pen, devicePixelRatio);
      paintSwatches(looks);
      scroll.setTop(view.top);
      show(view);
      // Resizing empties a canvas, so it is drawn now instead of in the next frame.
      drawNow();
    },
  };
}
