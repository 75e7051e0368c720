/** Colours and patterns of the map, from the style sheet. The script reads them again when the page turns dark or light. */

export type Looks = {
  /** The fill of a rectangle, by look. */
  readonly fills: Readonly<Record<string, CanvasPattern | string>>;
  /** In the order of drawing: later looks lie on top. */
  readonly order: readonly string[];
  readonly text: string;
  readonly soft: string;
  readonly line: string;
  readonly page: string;
  readonly focus: string;
};

const ORDER = ['final', 'twice', 'once', 'missing', 'pending', 'provisional', 'refused', 'failed'] as const;
const TILE = 6;

type Mark = (pen: CanvasRenderingContext2D) => void;

/** Patterns, so that colour is never the only sign. */
const MARKS: Readonly<Record<(typeof ORDER)[number], Mark | null>> = {
  final: null,
  twice: (pen) => {
    pen.fillRect(1, 1, 1.5, 1.5);
    pen.fillRect(4, 4, 1.5, 1.5);
  },
  once: (pen) => pen.fillRect(2, 2, 2, 2),
  missing: (pen) => pen.fillRect(0, 0, 1.5, TILE),
  pending: (pen) => pen.fillRect(0, 2, TILE, 1.5),
  provisional: (pen) => diagonal(pen, false),
  refused: (pen) => {
    diagonal(pen, false);
    diagonal(pen, true);
  },
  failed: (pen) => diagonal(pen, true),
};

export function readLooks(context: CanvasRenderingContext2D, ratio: number): Looks {
  const probe = document.createElement('span');
  probe.hidden = true;
  document.body.append(probe);
  // The browser returns a custom property as it was written, but resolves it as the colour of an element.
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const fills = Object.fromEntries(
    ORDER.map((look) => [look, fillOf(context, ratio, colour(`map-${look}`), colour(`map-${look}-mark`), MARKS[look])]),
  );
  const looks = {
    ...{ fills, order: ORDER },
    ...{
      text: colour('text'),
      soft: colour('soft'),
      line: colour('line'),
      page: colour('card'),
      focus: colour('focus'),
    },
  };
  probe.remove();
  return looks;
}

function fillOf(
  context: CanvasRenderingContext2D,
  ratio: number,
  ground: string,
  ink: string,
  mark: Mark | null,
): CanvasPattern | string {
  if (mark === null) return ground;
  const tile = document.createElement('canvas');
  tile.width = Math.round(TILE * ratio);
  tile.height = tile.width;
  const pen = tile.getContext('2d');
  if (pen === null) return ground;
  pen.scale(tile.width / TILE, tile.width / TILE);
  pen.fillStyle = ground;
  pen.fillRect(0, 0, TILE, TILE);
  pen.fillStyle = ink;
  pen.strokeStyle = ink;
  mark(pen);
  const pattern = context.createPattern(tile, 'repeat');
  // The map is drawn in CSS pixels, the tile in pixels of the screen.
  pattern?.setTransform(new DOMMatrix().scale(TILE / tile.width));
  return pattern ?? ground;
}

function diagonal(pen: CanvasRenderingContext2D, isFalling: boolean): void {
  pen.lineWidth = 1.2;
  pen.beginPath();
  for (const shift of [-TILE, 0, TILE]) {
    pen.moveTo(shift, isFalling ? 0 : TILE);
    pen.lineTo(shift + TILE, isFalling ? TILE : 0);
  }
  pen.stroke();
}

/** The samples of the legend. */
export function paintSwatches({ fills, line }: Looks): void {
  for (const swatch of document.querySelectorAll<HTMLCanvasElement>('canvas.swatch')) {
    const pen = swatch.getContext('2d');
    if (pen === null) continue;
    const { width, height } = swatch;
    pen.clearRect(0, 0, width, height);
    const fill = fills[swatch.dataset.look ?? ''];
    if (fill !== undefined) {
      pen.fillStyle = fill;
      pen.fillRect(0, 0, width, height);
    }
    pen.strokeStyle = line;
    pen.strokeRect(0.5, 0.5, width - 1, height - 1);
  }
}
