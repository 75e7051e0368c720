/** Text tables: aligned, numbers to the right, never wider than the terminal where the text allows it. */

export type Column = {
  readonly title: string;
  readonly align?: 'left' | 'right';
  /** Never shortened: half a hash, half a date or half a name is none. Numbers, which stand to the right, never are. */
  readonly isWhole?: boolean;
};

const GAP = '  ';
const LEAST_WIDTH = 8;

/**
 * The lines of a table, ending in a newline. With `columns` (the terminal's width) the widest texts are shortened to fit;
 * without it nothing is. Control characters in cells are left out, so that a coin's name cannot steer the terminal.
 */
export function formatTable(titles: readonly Column[], rows: readonly (readonly string[])[], columns?: number): string {
  const cells = rows.map((row) => titles.map((_, i) => printable(row[i] ?? '')));
  const widths = titles.map((column, i) =>
    cells.reduce((widest, row) => Math.max(widest, displayWidth(row[i]!)), displayWidth(column.title)),
  );
  if (columns !== undefined) shrink(widths, titles, columns);
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => pad(shorten(cell, widths[i]!), widths[i]!, titles[i]!.align ?? 'left'))
      .join(GAP)
      .trimEnd();
  const rule = widths.map((width) => '─'.repeat(width)).join(GAP);
  return [line(titles.map((column) => column.title)), rule, ...cells.map(line)].map((text) => `${text}\n`).join('');
}

/** Takes from the widest left-aligned column, a character at a time, until it fits or nothing can be taken. */
function shrink(widths: number[], titles: readonly Column[], columns: number): void {
  const total = () => widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1));
  while (total() > columns) {
    let widest = -1;
    for (const [i, column] of titles.entries()) {
      if (column.align === 'right' || column.isWhole || widths[i]! <= Math.max(LEAST_WIDTH, displayWidth(column.title)))
        continue;
      if (widest === -1 || widths[i]! > widths[widest]!) widest = i;
    }
    if (widest === -1) return;
    widths[widest] = widths[widest]! - 1;
  }
}

function shorten(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let out = '';
  let used = 0;
  for (const char of text) {
    used += displayWidth(char);
    if (used > width - 1) break;
    out += char;
  }
  return `${out}…`;
}

function pad(text: string, width: number, align: 'left' | 'right'): string {
  const space = ' '.repeat(Math.max(0, width - displayWidth(text)));
  return align === 'right' ? space + text : text + space;
}

/** `text` without control characters, and its newlines as spaces. */
export function printable(text: string): string {
  return text.replace(/[\t\n\r]+/g, ' ').replace(/\p{Cc}|[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '');
}

/** How many cells of a terminal `text` takes: wide letters and pictures two, marks that join others none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const char of text) {
    if (/\p{Mn}|\p{Me}|\p{Cf}/u.test(char)) continue;
    width +=
      /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u.test(
        char,
      )
        ? 2
        : 1;
  }
  return width;
}
