/** Reads any CSV: with commas, semicolons or tabs, with or without quotes, and with or without a header. */
import { endOfRecord, splitRecord } from '../../format/csv-record.ts';
import { type OpenTable, type RawRows, TABLE_ROWS, type TableFile } from './table.ts';
import { textOf } from './text-lines.ts';

/** A byte order mark, which some programs write, is no part of the first name. */
const MARK = '\ufeff';
const SEPARATORS = [',', ';', '\t'];
/** Records in which the header is looked for. */
const MOST_TITLES = 20;

export const openCsvTable: OpenTable = async (file, { hasHeader }) => {
  const first = await firstRecord(file, hasHeader);
  const separator = separatorOf(first?.record ?? '');
  const fields = first === null ? [] : splitRecord(first.record, separator);
  const headerAt = hasHeader && first !== null ? first.number : 0;
  return {
    columns: fields.map((name, i) => ({ name: hasHeader ? (name ?? '').trim() : String(i + 1), isInstant: false })),
    rows: null,
    read: (places) => readRows(file, { separator, fields: fields.length, headerAt }, places),
  };
};

type FirstRecord = { readonly record: string; readonly number: number };

/** Where there is a header, a record of one field before it is a title, or the address of the source: a candle needs more columns. */
async function firstRecord(file: TableFile, hasHeader: boolean): Promise<FirstRecord | null> {
  let title: FirstRecord | null = null;
  let number = 0;
  for await (const records of recordsOf(file)) {
    for (const record of records) {
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

/** The one that the record has most of. */
function separatorOf(record: string): string {
  const count = (separator: string) => record.split(separator).length;
  return SEPARATORS.reduce((best, one) => (count(one) > count(best) ? one : best));
}

/** `headerAt`: the number of the header's record; rows come after it. 0: there is none. */
type Form = { readonly separator: string; readonly fields: number; readonly headerAt: number };

async function* readRows(
  file: TableFile,
  { separator, fields, headerAt }: Form,
  places: readonly number[],
): AsyncGenerator<RawRows> {
  const columns = places.map(() => new Array<string | null>(TABLE_ROWS).fill(null));
  const wrong = new Map<number, string>();
  const named = headerAt > 1 ? 'the header' : 'the first record';
  const ends = new Int32Array(fields + 1);
  let [rows, number, first] = [0, 0, 1];
  for await (const records of recordsOf(file)) {
    for (const record of records) {
      number++;
      if (record === '' || number <= headerAt) continue;
      if (rows === 0) first = number;
      // Empty lines between rows would make the numbers of rows and records differ: then a batch ends.
      else if (first + rows !== number || rows === TABLE_ROWS) {
        yield { rows, first, columns, wrong };
        wrong.clear();
        [rows, first] = [0, number];
      }
      const found = fillRow(record, separator, { columns, places, ends, row: rows });
      if (found !== fields) wrong.set(rows, `has ${found} fields, and ${named} has ${fields}`);
      rows++;
    }
  }
  if (rows > 0) yield { rows, first, columns, wrong };
}

type Place = {
  readonly columns: readonly (string | null)[][];
  readonly places: readonly number[];
  readonly ends: Int32Array;
  readonly row: number;
};

/** Returns how many fields there are. */
function fillRow(record: string, separator: string, { columns, places, ends, row }: Place): number {
  if (record.includes('"')) {
    const fields = splitRecord(record, separator);
    for (let i = 0; i < places.length; i++) columns[i]![row] = fields[places[i]!] ?? null;
    return fields.length;
  }
  let fields = 0;
  for (let at = 0; ; fields++) {
    const next = record.indexOf(separator, at);
    if (fields < ends.length - 1) ends[fields] = next === -1 ? record.length : next;
    if (next === -1) break;
    at = next + 1;
  }
  fields++;
  for (let i = 0; i < places.length; i++) {
    const place = places[i]!;
    const from = place === 0 ? 0 : ends[place - 1]! + 1;
    const to = ends[place]!;
    columns[i]![row] = place >= fields || from >= to ? null : record.slice(from, to);
  }
  return fields;
}

/** Lists of records, without their line feeds. */
async function* recordsOf(file: TableFile): AsyncGenerator<string[]> {
  let rest = '';
  let isFirst = true;
  for await (const text of textOf(file)) {
    const all = rest + (isFirst && text.startsWith(MARK) ? text.slice(1) : text);
    isFirst = false;
    const records: string[] = [];
    let at = 0;
    for (;;) {
      const end = endOfRecord(all, at);
      if (end === -1) break;
      records.push(withoutReturn(all.slice(at, end)));
      at = end + 1;
    }
    rest = all.slice(at);
    yield records;
  }
  if (rest !== '') yield [withoutReturn(rest)];
}

function withoutReturn(record: string): string {
  return record.endsWith('\r') ? record.slice(0, -1) : record;
}
