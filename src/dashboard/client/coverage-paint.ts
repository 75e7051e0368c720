/** Draws the map: all visible rows, one look after the other, so that one fill serves all stretches of a look. */
import type { Answer, Row } from './coverage-data.ts';
import type { Looks } from './coverage-looks.ts';
import {
  AXIS_HEIGHT,
  type Box,
  type Layout,
  ROW_HEIGHT,
  ticksOf,
  type View,
  visibleRows,
  xOf,
  yOf,
} from './coverage-view.ts';

type Scene = {
  readonly view: View;
  readonly layout: Layout;
  readonly answer: Answer | null;
  readonly cursor: Box | null;
  readonly selection: Box | null;
  readonly isByTier: boolean;
  readonly hasFocus: boolean;
};

const BAR = ROW_HEIGHT - 4;

export function paint(pen: CanvasRenderingContext2D, looks: Looks, scene: Scene): void {
  const { width, height, labels } = scene.layout;
  pen.fillStyle = looks.page;
  pen.fillRect(0, 0, width, height);
  pen.save();
  pen.beginPath();
  pen.rect(labels, AXIS_HEIGHT, width - labels, height - AXIS_HEIGHT);
  pen.clip();
  paintGrid(pen, looks, scene);
  paintStretches(pen, looks, scene);
  paintBoxes(pen, looks, scene);
  pen.restore();
  paintLabels(pen, looks, scene);
  paintAxis(pen, looks, scene);
}

export function shownRows({
  view,
  layout,
  answer,
}: Pick<Scene, 'view' | 'layout' | 'answer'>): { readonly place: number; readonly row: Row }[] {
  if (answer === null) return [];
  const first = Math.max(0, Math.floor(view.top) - answer.row);
  const end = Math.ceil(view.top + visibleRows(layout)) - answer.row;
  return answer.rows.slice(first, Math.max(first, end)).map((row, i) => ({ place: answer.row + first + i, row }));
}

function paintStretches(pen: CanvasRenderingContext2D, looks: Looks, scene: Scene): void {
  const { view, layout, answer } = scene;
  if (answer === null) return;
  const rows = shownRows(scene);
  const scale = answer.step * ((layout.width - layout.labels) / (view.to - view.from));
  const zero = xOf(view, layout, answer.from);
  for (const look of looks.order) {
    pen.beginPath();
    for (const { place, row } of rows) {
      const y = Math.round(yOf(view, place)) + 2;
      const { stretches } = row;
      for (let i = 0; i < stretches.length; i += 3) {
        if (answer.states[stretches[i]!]?.look !== look) continue;
        const left = Math.max(layout.labels, zero + stretches[i + 1]! * scale);
        const right = Math.min(layout.width, zero + stretches[i + 2]! * scale);
        if (right > left) pen.rect(left, y, Math.max(1, right - left), BAR);
      }
    }
    pen.fillStyle = looks.fills[look]!;
    pen.fill();
  }
}

function paintGrid(pen: CanvasRenderingContext2D, { line, soft }: Looks, { view, layout, answer }: Scene): void {
  pen.fillStyle = line;
  for (const { at } of ticksOf(view, layout))
    pen.fillRect(Math.round(xOf(view, layout, at)), AXIS_HEIGHT, 1, layout.height);
  if (answer === null) return;
  pen.fillStyle = soft;
  pen.fillRect(Math.round(xOf(view, layout, answer.now)), AXIS_HEIGHT, 1, layout.height);
}

function paintBoxes(
  pen: CanvasRenderingContext2D,
  looks: Looks,
  { view, layout, cursor, selection, hasFocus }: Scene,
): void {
  const outline = ({ row, endRow, from, to }: Box, colour: string, lineWidth: number) => {
    const [left, right] = [xOf(view, layout, from), xOf(view, layout, to)];
    const [top, bottom] = [yOf(view, row), yOf(view, endRow)];
    // Two lines, so that one of them stands out against any background.
    for (const [stroke, wide] of [[looks.page, lineWidth + 2] as const, [colour, lineWidth] as const]) {
      pen.strokeStyle = stroke;
      pen.lineWidth = wide;
      pen.strokeRect(left, top, Math.max(2, right - left), bottom - top);
    }
  };
  if (selection !== null) {
    outline(selection, looks.text, 2);
  }
  if (cursor !== null) outline(cursor, hasFocus ? looks.focus : looks.soft, 2);
}

function paintLabels(pen: CanvasRenderingContext2D, looks: Looks, scene: Scene): void {
  const { view, layout, isByTier } = scene;
  pen.save();
  pen.beginPath();
  pen.rect(0, AXIS_HEIGHT, layout.labels - 4, layout.height);
  pen.clip();
  pen.textBaseline = 'middle';
  for (const { place, row } of shownRows(scene)) {
    const y = yOf(view, place) + ROW_HEIGHT / 2;
    pen.font = '600 12px system-ui, sans-serif';
    pen.fillStyle = looks.text;
    pen.fillText(row.symbol, 2, y);
    const x = Math.min(2 + pen.measureText(row.symbol).width + 6, layout.labels / 2);
    pen.font = '12px system-ui, sans-serif';
    pen.fillStyle = looks.page;
    pen.fillRect(x - 4, y - ROW_HEIGHT / 2, layout.labels, ROW_HEIGHT);
    pen.fillStyle = looks.soft;
    pen.fillText(`${row.interval} ${row.quote}${isByTier ? ` · ${row.tier ?? 'no tier'}` : ''}`, x, y);
  }
  pen.restore();
  if (!isByTier) return;
  let before: string | null | undefined;
  pen.fillStyle = looks.text;
  for (const { place, row } of shownRows(scene)) {
    if (before !== undefined && before !== row.tier) pen.fillRect(0, Math.round(yOf(view, place)) - 1, layout.width, 2);
    before = row.tier;
  }
}

function paintAxis(pen: CanvasRenderingContext2D, looks: Looks, { view, layout }: Scene): void {
  pen.fillStyle = looks.page;
  pen.fillRect(0, 0, layout.width, AXIS_HEIGHT);
  pen.fillStyle = looks.line;
  pen.fillRect(0, AXIS_HEIGHT - 1, layout.width, 1);
  pen.fillRect(layout.labels - 1, 0, 1, layout.height);
  pen.fillStyle = looks.soft;
  pen.font = '11px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  for (const { at, text } of ticksOf(view, layout)) {
    const x = xOf(view, layout, at) + 3;
    if (x + 30 < layout.width) pen.fillText(text, x, AXIS_HEIGHT / 2);
  }
}
