/** Text tables: aligned, numbers on the right, and no wider than the terminal if the texts can be shortened. */
import { formatCount } from '../../core/format.ts';
import type { Output } from '../shell/io.ts';

type Title = {
  readonly title: string;
  readonly align?: 'left' | 'right';
  /** Never shortened, because half a hash or half a date is useless. Columns on the right hold numbers and are never shortened either. */
  readonly isWhole?: boolean;
};

export type Column<Row> = Title & { readonly cell: (row: Row) => Cell };

/** The table writes counts like `1,234,567`, and null as `–`. */
type Cell = string | number | bigint | null;

/** A column of texts, which are shortened when the terminal is too narrow. */
export function text<Row>(title: string, cell: (row: Row) => Cell): Column<Row> {
  return { title, cell };
}

/** A column of texts that are never shortened. */
export function whole<Row>(title: string, cell: (row: Row) => Cell): Column<Row> {
  return { title, cell, isWhole: true };
}

/** A column of numbers, aligned on the right. */
export function number<Row>(title: string, cell: (row: Row) => Cell): Column<Row> {
  return { title, cell, align: 'right' };
}

/** Writes a table with one line for each row. */
export function printTable<Row>(out: Output, rows: readonly Row[], columns: readonly Column<Row>[]): void {
  const cells = rows.map((row) => columns.map((column) => formatCell(column.cell(row))));
  out.write(formatTable(columns, cells, out.columns()));
}

function formatCell(value: Cell): string {
  if (value === null) return '–';
  return typeof value === 'string' ? value : formatCount(value);
}

/** Writes pairs of a name and a value, one per line and indented. A line without a name continues the one above. */
export function printPairs(out: Output, pairs: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...pairs.map(([name]) => name.length));
  for (const [name, value] of pairs) out.write(`  ${name.padEnd(width)}  ${value}\n`);
}

const GAP = '  ';
const LEAST_WIDTH = 8;

/**
 * The lines of a table, ending in a newline. `columns` is the width of the terminal: the table shortens its widest texts to fit. It removes
 * control characters from cells, so that the name of a coin cannot control the terminal.
 */
export function formatTable(titles: readonly Title[], rows: readonly (readonly string[])[], columns?: number): string {
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

/** Narrows the widest column of texts by one character at a time, until the table fits or nothing can be narrowed. */
function shrink(widths: number[], titles: readonly Title[], columns: number): void {
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

/** `text` without control characters, and with newlines as spaces. */
export function printable(text: string): string {
  return text.replace(/[\t\n\r]+/g, ' ').replace(/\p{Cc}|[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '');
}

/** The number of terminal cells of `text`: wide letters and emoji take two, combining marks none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const char of text) {
    if (!NO_WIDTH.test(char)) width += WIDE.test(char) ? 2 : 1;
  }
  return width;
}

const NO_WIDTH = /\p{Mn}|\p{Me}|\p{Cf}/u;
const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u;
