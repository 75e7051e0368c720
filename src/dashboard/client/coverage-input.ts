/** Handles keys, pointer, wheel and fingers on the map. */

/** CSS pixels from the corner of the canvas. */
export type Point = { readonly x: number; readonly y: number };

/** The operations of the map. `coverage.ts` implements them. */
export type Controls = {
  readonly zoom: (factor: number, x: number | null) => void;
  /** Moves by pixels. A drag to the right shows earlier times. */
  readonly slide: (dx: number, dy: number) => void;
  readonly hover: (at: Point | null) => void;
  /** Puts the cursor there. `extend`: selects from where it was. */
  readonly press: (at: Point, extend: boolean) => void;
  readonly select: (from: Point, to: Point) => void;
  /** Called when a drag that selects is over. */
  readonly selected: () => void;
  readonly open: (at: Point) => void;
  /** Moves by a number of cells and rows. */
  readonly step: (cells: number, rows: number, extend: boolean) => void;
  readonly page: (pages: number, extend: boolean) => void;
  readonly edge: (isLast: boolean, extend: boolean) => void;
  readonly openPrice: () => void;
  readonly clear: () => void;
  /** Whether a drag moves the map instead of selecting. */
  readonly dragMoves: () => boolean;
  readonly isOnAxis: (at: Point) => boolean;
};

const KEY_ZOOM = 0.7;
const WHEEL_ZOOM = 0.0025;
/** A shorter move is a click of an unsteady hand. */
const DRAG_PIXELS = 4;

export function listen(canvas: HTMLCanvasElement, scroller: HTMLElement, controls: Controls): void {
  listenToKeys(scroller, controls);
  listenToWheel(canvas, scroller, controls);
  listenToPointers(canvas, controls);
}

function listenToKeys(scroller: HTMLElement, controls: Controls): void {
  const { step, page, edge, zoom, openPrice, clear } = controls;
  const keys: Readonly<Record<string, (extend: boolean) => void>> = {
    ArrowLeft: (extend) => step(-1, 0, extend),
    ArrowRight: (extend) => step(1, 0, extend),
    ArrowUp: (extend) => step(0, -1, extend),
    ArrowDown: (extend) => step(0, 1, extend),
    PageUp: (extend) => page(-1, extend),
    PageDown: (extend) => page(1, extend),
    Home: (extend) => edge(false, extend),
    End: (extend) => edge(true, extend),
    '+': () => zoom(KEY_ZOOM, null),
    '=': () => zoom(KEY_ZOOM, null),
    '-': () => zoom(1 / KEY_ZOOM, null),
    _: () => zoom(1 / KEY_ZOOM, null),
    Enter: () => openPrice(),
    Escape: () => clear(),
  };
  scroller.addEventListener('keydown', (event) => {
    const act = keys[event.key];
    // With these modifiers, the keys belong to the browser.
    if (act === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act(event.shiftKey);
  });
}

function listenToWheel(canvas: HTMLCanvasElement, scroller: HTMLElement, { zoom, slide, isOnAxis }: Controls): void {
  scroller.addEventListener(
    'wheel',
    (event) => {
      const at = pointOf(canvas, event);
      // Browsers send a pinch of a touchpad as a wheel event with Ctrl.
      if (event.ctrlKey || event.metaKey || isOnAxis(at)) {
        event.preventDefault();
        zoom(Math.exp(event.deltaY * WHEEL_ZOOM), at.x);
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        slide(-(event.deltaX || event.deltaY), 0);
      }
    },
    { passive: false },
  );
}

type Drag = { readonly begin: Point; last: Point; readonly moves: boolean; isDrag: boolean; readonly extend: boolean };

function listenToPointers(canvas: HTMLCanvasElement, controls: Controls): void {
  const fingers = new Map<number, Point>();
  let drag: Drag | null = null;
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button > 1) return;
    const at = pointOf(canvas, event);
    fingers.set(event.pointerId, at);
    canvas.setPointerCapture(event.pointerId);
    // Two fingers pinch, and do not drag.
    drag = null;
    if (fingers.size > 1) return;
    const moves = event.shiftKey || event.button === 1 || controls.dragMoves();
    drag = { begin: at, last: at, moves, isDrag: false, extend: event.shiftKey };
  });
  canvas.addEventListener('pointermove', (event) => {
    const at = pointOf(canvas, event);
    const before = fingers.get(event.pointerId);
    if (before === undefined) return controls.hover(at);
    fingers.set(event.pointerId, at);
    if (fingers.size === 2) return pinch(controls, fingers, event.pointerId, before);
    if (drag === null) return;
    drag.isDrag ||= Math.hypot(at.x - drag.begin.x, at.y - drag.begin.y) > DRAG_PIXELS;
    if (!drag.isDrag) return;
    if (drag.moves) controls.slide(at.x - drag.last.x, at.y - drag.last.y);
    else controls.select(drag.begin, at);
    drag.last = at;
  });
  canvas.addEventListener('pointerup', (event) => {
    if (drag !== null && !drag.isDrag) controls.press(drag.begin, drag.extend);
    else if (drag !== null && !drag.moves) controls.selected();
    fingers.delete(event.pointerId);
    drag = null;
  });
  canvas.addEventListener('pointercancel', (event) => {
    fingers.delete(event.pointerId);
    drag = null;
  });
  // When two fingers move up or down, the browser would scroll instead and cancel the touch.
  for (const kind of ['touchstart', 'touchmove'] as const)
    canvas.addEventListener(kind, (event) => event.touches.length > 1 && event.cancelable && event.preventDefault(), {
      passive: false,
    });
  canvas.addEventListener('pointerleave', () => controls.hover(null));
  canvas.addEventListener('dblclick', (event) => controls.open(pointOf(canvas, event)));
}

function pinch({ zoom, slide }: Controls, fingers: ReadonlyMap<number, Point>, moved: number, before: Point): void {
  const still = [...fingers].find(([id]) => id !== moved)?.[1];
  const now = fingers.get(moved);
  if (still === undefined || now === undefined) return;
  const wide = (a: Point) => Math.max(20, Math.hypot(a.x - still.x, a.y - still.y));
  zoom(wide(before) / wide(now), (still.x + now.x) / 2);
  slide(0, (now.y - before.y) / 2);
}

function pointOf(canvas: HTMLCanvasElement, event: MouseEvent): Point {
  const { left, top } = canvas.getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top };
}
