/** Writes CSV (RFC 4180, with a header; null is an empty field, an empty text is `""`) and NDJSON (an object on each line). */
import type { Column } from '../../store/copy/columns.ts';
import type { ByteSink } from '../destination/destination.ts';
import type { OpenWriter, RowWriter } from './format.ts';
import { createInstantFormat } from './instant-text.ts';

/** This many rows are joined into one text at a time. */
const ROWS_AT_ONCE = 4_096;

export const openCsv: OpenWriter = (sink, columns) => {
  const header = `${columns.map(({ name }) => quoteCsv(name)).join(',')}\n`;
  return openLines(sink, header, (cells) => {
    return (row) => `${cells.map((cell) => cell(row) ?? '').join(',')}\n`;
  });
};

export const openNdjson: OpenWriter = (sink, columns) =>
  openLines(
    sink,
    '',
    (cells) => {
      const names = columns.map(({ name }, i) => `${i === 0 ? '{' : ','}${JSON.stringify(name)}:`);
      return (row) => `${cells.map((cell, i) => `${names[i]}${cell(row) ?? 'null'}`).join('')}}\n`;
    },
    true,
  );

type Cell = (row: number) => string | null;

function openLines(
  sink: ByteSink,
  header: string,
  lineOf: (cells: readonly Cell[]) => (row: number) => string,
  isJson = false,
): RowWriter {
  let isBegun = false;
  const begin = async () => {
    if (!isBegun && header !== '') await sink(Buffer.from(header));
    isBegun = true;
  };
  return {
    write: async (batch) => {
      await begin();
      const line = lineOf(batch.columns.map((column) => cellOf(column, isJson)));
      for (let from = 0; from < batch.rows; from += ROWS_AT_ONCE) {
        const to = Math.min(batch.rows, from + ROWS_AT_ONCE);
        let text = '';
        for (let row = from; row < to; row++) text += line(row);
        await sink(Buffer.from(text));
      }
    },
    finish: begin,
  };
}

/** The returned function returns null for a null value. */
function cellOf(column: Column, isJson: boolean): Cell {
  const { isNull } = column;
  const value = valueText(column, isJson);
  return (row) => (isNull[row] === 1 ? null : value(row));
}

function valueText(column: Column, isJson: boolean): (row: number) => string {
  switch (column.type) {
    case 'text':
      return isJson ? (row) => JSON.stringify(column.values[row]) : (row) => quoteCsv(column.values[row]!);
    case 'instant': {
      const format = createInstantFormat();
      return isJson ? (row) => `"${format(column.values[row]!)}"` : (row) => format(column.values[row]!);
    }
    case 'double':
      return (row) => doubleText(column.values[row]!);
    case 'boolean':
      return (row) => (column.values[row] === 1 ? 'true' : 'false');
    default:
      return (row) => String(column.values[row]);
  }
}

/** The shortest text that is parsed as this double. */
function doubleText(value: number): string {
  return value === 0 && Object.is(value, -0) ? '-0' : String(value);
}

/** Quotes a text so that spreadsheets and databases can read it. */
function quoteCsv(text: string): string {
  return text === '' || /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
