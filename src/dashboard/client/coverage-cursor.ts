/** The cursor of the map and the box that it selects. Both use cells, whose width depends on the zoom and is at least one slot. */
import type { Row } from './coverage-data.ts';
import type { Point } from './coverage-input.ts';
import { AXIS_HEIGHT, type Box, cellSeconds, type Layout, rowAt, timeAt, type View } from './coverage-view.ts';

/** A row, and a time in seconds within the cell. */
export type Cell = { readonly row: number; readonly at: number };

export type Cursor = {
  readonly cell: () => Cell | null;
  /** Where the cursor is, or where it would appear first. */
  readonly here: () => Cell;
  readonly boxOf: (cell: Cell) => Box;
  readonly cellAt: (point: Point) => Cell | null;
  /** The selected box. Null when nothing is selected. */
  readonly selection: () => Box | null;
  /** `extend`: selects from where the cursor was, or from where the selection began. */
  readonly set: (next: Cell, extend: boolean) => void;
  readonly select: (from: Cell, to: Cell) => void;
  readonly clear: () => void;
};

type Surroundings = {
  readonly view: () => View;
  readonly layout: () => Layout;
  readonly total: () => number;
  readonly rowOf: (row: number) => Row | undefined;
  /** The cursor and the selection of the address. */
  readonly first: { readonly cell: Cell | null; readonly selection: Box | null };
};

export function createCursor({ view, layout, total, rowOf, first }: Surroundings): Cursor {
  let cursor: Cell | null = first.cell;
  let box: Box | null = first.selection;
  /** Where the selection began. */
  let anchor: Cell | null = null;

  const boxOf = ({ row, at }: Cell): Box => {
    const wide = Math.max(cellSeconds(view(), layout()), rowOf(row)?.widthSeconds ?? 0);
    const from = Math.floor(at / wide) * wide;
    return { row, endRow: row + 1, from, to: from + wide };
  };
  const select = (from: Cell, to: Cell) => {
    anchor = from;
    cursor = to;
    // The box keeps its present size: zooming changes the cells, but not the selection.
    const [a, b] = [boxOf(from), boxOf(to)];
    box = {
      row: Math.min(a.row, b.row),
      endRow: Math.max(a.endRow, b.endRow),
      from: Math.min(a.from, b.from),
      to: Math.max(a.to, b.to),
    };
  };
  return {
    ...{ boxOf, select },
    cell: () => cursor,
    here: () => cursor ?? { row: Math.ceil(view().top), at: (view().from + view().to) / 2 },
    cellAt({ x, y }) {
      const row = rowAt(view(), y);
      if (y < AXIS_HEIGHT || row < 0 || row >= total()) return null;
      return { row, at: timeAt(view(), layout(), Math.min(Math.max(x, layout().labels), layout().width)) };
    },
    selection: () => box,
    set(next, extend) {
      if (extend) return select(anchor ?? cursor ?? next, next);
      cursor = next;
      anchor = null;
      box = null;
    },
    clear() {
      anchor = null;
      box = null;
    },
  };
}
