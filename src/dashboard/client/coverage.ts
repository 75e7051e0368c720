/**
 * The coverage map in the browser: what keys, pointer and buttons do. The address contains the view. The data is loaded before it is drawn:
 * `coverage-data.ts` requests what lies around the view.
 */
import type { Cell } from './coverage-cursor.ts';
import { type Controls, listen } from './coverage-input.ts';
import { type CoverageMap, createMap, type Parts } from './coverage-map.ts';
import {
  AXIS_HEIGHT,
  movedTo,
  panned,
  plotWidth,
  ROW_HEIGHT,
  timeAt,
  topToShow,
  visibleRows,
  zoomed,
} from './coverage-view.ts';

const BUTTON_ZOOM = 0.5;
const BUTTON_PAN = 0.5;

const canvas = document.querySelector<HTMLCanvasElement>('#map-canvas');
const scroller = document.getElementById('map-scroll');
const section = document.getElementById('map');
const pen = canvas?.getContext('2d', { alpha: false });
if (canvas && scroller && section && pen) start({ canvas, scroller, section, pen });

function start(parts: Parts): void {
  parts.section.hidden = false;
  const map = createMap(parts);
  let dragMoves = matchMedia('(pointer: coarse)').matches;
  const controls: Controls = { ...byPointer(map), ...byKeys(map), dragMoves: () => dragMoves };
  listen(parts.canvas, parts.scroller, controls);
  listenToButtons(parts, map, controls, {
    isOn: () => dragMoves,
    set: (moves) => {
      dragMoves = moves;
    },
  });
  for (const event of ['focus', 'blur']) parts.scroller.addEventListener(event, map.draw);
  document.addEventListener('chandler:changed', () => map.data.renew(map.view(), map.layout()));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', map.resize);
  for (const event of ['beforeprint', 'afterprint']) addEventListener(event, map.resize);
  new ResizeObserver(map.resize).observe(parts.section);
}

function byPointer(map: CoverageMap) {
  const { cursor, texts, scroll, show, view, layout, showCursor } = map;
  return {
    zoom(factor, x) {
      const at = cursor.cell()?.at ?? Number.NaN;
      const { from, to } = view();
      const middle = at > from && at < to ? at : (from + to) / 2;
      show(zoomed(view(), factor, x === null ? middle : timeAt(view(), layout(), Math.max(x, layout().labels))));
    },
    slide(dx, dy) {
      if (dy !== 0) scroll.setTop(view().top - dy / ROW_HEIGHT);
      show({ ...panned(view(), -dx / plotWidth(layout())), top: scroll.top() });
    },
    hover(at) {
      const cell = (at && cursor.cellAt(at)) ?? cursor.cell();
      texts.cell(cell && cursor.boxOf(cell));
    },
    press(at, extend) {
      const cell = cursor.cellAt(at);
      if (cell === null) return;
      cursor.set(cell, extend);
      showCursor();
    },
    select(from, to) {
      const [a, b] = [cursor.cellAt(from), cursor.cellAt({ x: to.x, y: Math.max(to.y, AXIS_HEIGHT) })];
      if (a === null || b === null) return;
      cursor.select(a, b);
      showCursor();
    },
    selected: texts.reveal,
    open(at) {
      const cell = cursor.cellAt(at);
      if (cell !== null) texts.open(cell.row);
    },
    isOnAxis: ({ y }) => y < AXIS_HEIGHT,
  } satisfies Partial<Controls>;
}

function byKeys(map: CoverageMap) {
  const { cursor, texts, total, goTo, view, layout, showCursor } = map;
  /** Moves the cursor, and the map too if the cursor would leave it. */
  const moveTo = ({ row, at }: Cell, extend: boolean) => {
    const next = { at: Math.max(0, at), row: Math.min(Math.max(row, 0), Math.max(0, total() - 1)) };
    const cell = cursor.boxOf(next);
    const { from, to } = view();
    const [earlier, later] = [cell.from - (to - from) / 4, cell.to - ((to - from) * 3) / 4];
    const begin = cell.from < from ? earlier : cell.to > to ? later : from;
    goTo({ ...movedTo(view(), begin), top: topToShow(view(), layout(), next.row) });
    cursor.set(next, extend);
    showCursor();
  };
  return {
    step(cells, rows, extend) {
      const { row, at } = cursor.here();
      // The first key only shows the cursor in its place.
      if (cursor.cell() === null) return moveTo({ row, at }, false);
      const { from, to } = cursor.boxOf({ row, at });
      const middle = (from + to) / 2;
      moveTo({ row: row + rows, at: cells === 0 ? at : middle + cells * (to - from) }, extend);
    },
    page(pages, extend) {
      const { row, at } = cursor.here();
      moveTo({ at, row: row + pages * Math.floor(visibleRows(layout())) }, extend);
    },
    edge(isLast, extend) {
      moveTo({ at: cursor.here().at, row: isLast ? total() - 1 : 0 }, extend);
    },
    openPrice() {
      if (cursor.selection() === null) moveTo(cursor.here(), true);
      texts.openPrice();
    },
    clear() {
      cursor.clear();
      showCursor();
    },
  } satisfies Partial<Controls>;
}

type Switch = { readonly isOn: () => boolean; readonly set: (isOn: boolean) => void };

function listenToButtons({ canvas, section }: Parts, map: CoverageMap, { zoom }: Controls, drag: Switch): void {
  const { show, view, all } = map;
  const setDrag = (moves: boolean, button: HTMLButtonElement) => {
    drag.set(moves);
    button.setAttribute('aria-pressed', String(moves));
    // A finger that moves the map may also scroll the rows, but a finger that selects must not.
    canvas.style.touchAction = moves ? 'pan-y' : 'none';
  };
  const buttons: Readonly<Record<string, (button: HTMLButtonElement) => void>> = {
    in: () => zoom(BUTTON_ZOOM, null),
    out: () => zoom(1 / BUTTON_ZOOM, null),
    earlier: () => show(panned(view(), -BUTTON_PAN)),
    later: () => show(panned(view(), BUTTON_PAN)),
    all: () => show({ ...view(), ...all }),
    drag: (button) => setDrag(!drag.isOn(), button),
  };
  for (const button of section.querySelectorAll<HTMLButtonElement>('button[data-do]')) {
    const act = buttons[button.dataset.do ?? ''];
    if (button.dataset.do === 'drag') setDrag(drag.isOn(), button);
    if (act !== undefined) button.addEventListener('click', () => act(button));
  }
}
