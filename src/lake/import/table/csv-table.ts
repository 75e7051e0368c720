/** Reads any CSV: with commas, semicolons or tabs, with or without quotes, and with or without a header. */
import { isAscii } from 'node:buffer';
import { endOfRecord, splitRecord } from '../../format/csv-record.ts';
import { NotReadable } from '../../format/not-readable.ts';
import { asText } from '../../format/text-lines.ts';
import { bytesOf } from './file-bytes.ts';
import { readPlainNumber } from './plain-number.ts';
import { type OpenTable, type RawRows, TABLE_ROWS, type TableFile } from './table.ts';

/** A byte order mark, which some programs write, is not part of the first column's name. */
const MARK = '\ufeff';
const [FEED, RETURN, QUOTE] = ['\n', '\r', '"'].map((one) => one.charCodeAt(0)) as [number, number, number];
const SEPARATORS = [',', ';', '\t'];
/** What is longer is no record: a quote is never closed, or the file is not CSV. Reading on would need memory for the rest of the file. */
const MOST_RECORD_BYTES = 1 << 20;
/** The header is searched for in this many records. */
const MOST_TITLES = 20;

export const openCsvTable: OpenTable = async (file, { hasHeader }) => {
  const first = await firstRecord(file, hasHeader);
  // Excel for Macintosh can write such files. All of their rows would be one record, the header.
  if (first !== null && /\r[^\r\n]/.test(first.record))
    throw new NotReadable("ends its lines with a carriage return alone; tr '\\r' '\\n' rewrites it");
  const separator = separatorOf(first?.record ?? '');
  const fields = first === null ? [] : splitRecord(first.record, separator);
  const headerAt = hasHeader && first !== null ? first.number : 0;
  return {
    columns: fields.map((name, i) => ({ name: hasHeader ? (name ?? '').trim() : String(i + 1), isInstant: false })),
    rows: null,
    read: (places, isNumber) => readRows(file, { separator, fields: fields.length, headerAt }, { places, isNumber }),
  };
};

type FirstRecord = { readonly record: string; readonly number: number };

/**
 * Finds the header or the first row. Before a header, a record of one field is a title or the address of the source: a candle needs more columns.
 */
async function firstRecord(file: TableFile, hasHeader: boolean): Promise<FirstRecord | null> {
  let title: FirstRecord | null = null;
  let number = 0;
  for await (const { text, bounds } of piecesOf(file, SEPARATORS.join(''))) {
    for (let i = 0; i < bounds.length; i += 2) {
      const record = text.slice(bounds[i], bounds[i + 1]);
      number++;
      if (record === '') continue;
      const found = { record, number };
      if (!hasHeader || SEPARATORS.some((separator) => record.includes(separator))) return found;
      if (number > MOST_TITLES) return title ?? found;
      title ??= found;
    }
  }
  return title;
}

/** The separator that occurs most often in the record. */
function separatorOf(record: string): string {
  const count = (separator: string) => record.split(separator).length;
  return SEPARATORS.reduce((best, one) => (count(one) > count(best) ? one : best));
}

/** `headerAt`: the number of the header's record; rows come after it. 0: there is no header. */
type Form = { readonly separator: string; readonly fields: number; readonly headerAt: number };

type Wanted = { readonly places: readonly number[]; readonly isNumber: readonly boolean[] };

async function* readRows(
  file: TableFile,
  { separator, fields, headerAt }: Form,
  wanted: Wanted,
): AsyncGenerator<RawRows> {
  const columns = wanted.places.map(() => new Array<string | number | null>(TABLE_ROWS).fill(null));
  const wrong = new Map<number, string>();
  const named = headerAt > 1 ? 'the header' : 'the first record';
  const last = columns.map(() => ({ from: 0, text: '' }));
  const into = { ...wanted, columns, separator, ends: new Int32Array(fields), last };
  let [rows, number, first] = [0, 0, 1];
  for await (const piece of piecesOf(file, separator)) {
    for (const one of last) one.text = '';
    for (let i = 0; i < piece.bounds.length; i += 2) {
      const [from, to] = [piece.bounds[i]!, piece.bounds[i + 1]!];
      number++;
      if (from === to || number <= headerAt) continue;
      if (rows === 0) first = number;
      // Empty lines between rows would make the numbers of rows and records differ, so the batch ends there.
      else if (first + rows !== number || rows === TABLE_ROWS) {
        yield { rows, first, columns, wrong };
        wrong.clear();
        [rows, first] = [0, number];
      }
      const found =
        piece.bytes === null
          ? fillRow(piece.text.slice(from, to), into, rows)
          : fillPlainRow(piece.text, piece.bytes, { from, to }, into, rows);
      if (typeof found === 'string') wrong.set(rows, found);
      else if (found !== fields) wrong.set(rows, `has ${found} fields, but ${named} has ${fields}`);
      rows++;
    }
  }
  if (rows > 0) yield { rows, first, columns, wrong };
}

type Into = Wanted & {
  readonly columns: readonly (string | number | null)[][];
  readonly separator: string;
  /** The end of each field of a row. */
  readonly ends: Int32Array;
  /** By column: the position of its last text in the piece, and that text. It is reused, because rows of one coin repeat its name. */
  readonly last: readonly { from: number; text: string }[];
};

/** Returns the number of fields, or the reason why the record has none. */
function fillRow(record: string, { columns, places, separator }: Into, row: number): number | string {
  try {
    const fields = splitRecord(record, separator);
    for (let i = 0; i < places.length; i++) columns[i]![row] = fields[places[i]!] ?? null;
    return fields.length;
  } catch (error) {
    if (!(error instanceof NotReadable)) throw error;
    return error.message;
  }
}

/** Like `fillRow`, for a row without quotes. It reads numbers directly from the bytes. */
function fillPlainRow(
  text: string,
  bytes: Uint8Array,
  { from, to }: { readonly from: number; readonly to: number },
  { columns, places, isNumber, separator, ends, last }: Into,
  row: number,
): number {
  let fields = 0;
  for (let at = from; ; fields++) {
    const next = text.indexOf(separator, at);
    const isLast = next === -1 || next >= to;
    if (fields < ends.length) ends[fields] = isLast ? to : next;
    if (isLast) break;
    at = next + 1;
  }
  fields++;
  for (let i = 0; i < places.length; i++) {
    const place = places[i]!;
    const start = place === 0 ? from : ends[place - 1]! + 1;
    const end = ends[place]!;
    if (place >= fields || start >= end) columns[i]![row] = null;
    else {
      const number = isNumber[i] ? readPlainNumber(bytes, start, end) : Number.NaN;
      columns[i]![row] = Number.isNaN(number) ? textOf(text, bytes, start, end, last[i]!) : number;
    }
  }
  return fields;
}

function textOf(text: string, bytes: Uint8Array, start: number, end: number, last: Into['last'][number]): string {
  const length = end - start;
  let at = last.text.length === length ? 0 : -1;
  while (at >= 0 && at < length) at = bytes[start + at] === bytes[last.from + at] ? at + 1 : -1;
  if (at === -1) last.text = text.slice(start, end);
  last.from = start;
  return last.text;
}

/** Some records of a file. */
type Piece = {
  readonly text: string;
  /** The same characters as bytes; null when some are in quotes, or not ASCII. */
  readonly bytes: Uint8Array | null;
  /** The start and the end of each record, without the end of its line. */
  readonly bounds: readonly number[];
};

/** `separators`: those that may separate its fields. @throws NotReadable when it has no records */
async function* piecesOf(file: TableFile, separators: string): AsyncGenerator<Piece> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let rest: Buffer = Buffer.alloc(0);
  let isFirst = true;
  for await (const { buffer, byteOffset, length } of bytesOf(file)) {
    const all = Buffer.concat([rest, Buffer.from(buffer, byteOffset, length)]);
    const lines = all.subarray(0, all.lastIndexOf(FEED) + 1);
    const bytes = isAscii(lines) && !lines.includes(QUOTE) ? lines : null;
    const decoded = bytes === null ? asText(() => decoder.decode(lines)) : lines.toString('latin1');
    const text = isFirst && decoded.startsWith(MARK) ? decoded.slice(1) : decoded;
    if (lines.length > 0) isFirst = false;
    const bounds: number[] = [];
    let at = 0;
    for (;;) {
      const end = bytes === null ? endOfRecord(text, at, separators) : text.indexOf('\n', at);
      if (end === -1) break;
      bounds.push(at, withoutReturn(text, at, end));
      at = end + 1;
    }
    rest = all.subarray(lines.length);
    if (at < text.length) rest = Buffer.concat([Buffer.from(text.slice(at)), rest]);
    yield { text, bytes, bounds };
    if (rest.length > MOST_RECORD_BYTES) throw new NotReadable(explainLongRecord(rest));
  }
  if (rest.length === 0) return;
  const decoded = asText(() => decoder.decode(rest));
  const text = isFirst && decoded.startsWith(MARK) ? decoded.slice(1) : decoded;
  yield { text, bytes: null, bounds: [0, withoutReturn(text, 0, text.length)] };
}

/** The end of the record without a carriage return. */
function withoutReturn(text: string, from: number, end: number): number {
  return end > from && text.charCodeAt(end - 1) === RETURN ? end - 1 : end;
}

function explainLongRecord(rest: Buffer): string {
  const begin = JSON.stringify(rest.toString('utf8', 0, 60));
  return `has a record of more than 1 MB, which begins with ${begin}; is a quote not closed?`;
}
