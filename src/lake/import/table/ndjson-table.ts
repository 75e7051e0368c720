/** Reads any NDJSON: each line is an object, or a list of values. */
import { withoutFalseZeros } from '../../../core/raw-json.ts';
import { NotReadable } from '../../format/not-readable.ts';
import { linesOf, textOf } from '../../format/text-lines.ts';
import { bytesOf } from './file-bytes.ts';
import { type OpenTable, type RawRows, TABLE_ROWS, type TableFile } from './table.ts';

export const openNdjsonTable: OpenTable = async (file) => {
  const names = await namesOf(file);
  return {
    columns: names.map((name) => ({ name, isInstant: false })),
    rows: null,
    read: (places) => readRows(file, names, places),
  };
};

type Row = Readonly<Record<string, unknown>> | readonly unknown[];

/**
 * The names of the fields of all lines, because also the first line may leave out a field that has no value. Lists have numbers. In a file of
 * objects, lists add no names, and the other way round.
 */
async function namesOf(file: TableFile): Promise<string[]> {
  const names = new Set<string>();
  let first: Row | undefined;
  for await (const line of linesOf(textOf(bytesOf(file)))) {
    const text = line.trim();
    if (text === '') continue;
    const row = parse(text);
    if (first === undefined) {
      if (text === '[' || (Array.isArray(row) && typeof row[0] === 'object' && row[0] !== null))
        throw new NotReadable("is one JSON array, not one row on each line; jq -c '.[]' splits it into lines");
      if (row === null) throw new NotReadable('is not NDJSON: its first line is neither an object nor a list');
      first = row;
    }
    if (row === null || Array.isArray(row) !== Array.isArray(first)) continue;
    if (!Array.isArray(row)) for (const name in row) names.add(name);
    else for (let i = names.size; i < row.length; i++) names.add(String(i + 1));
  }
  return [...names];
}

/** Null when the text is neither an object nor a list. */
function parse(text: string): Row | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' ? (parsed as Row | null) : null;
  } catch {
    return null;
  }
}

async function* readRows(
  file: TableFile,
  names: readonly string[],
  places: readonly number[],
): AsyncGenerator<RawRows> {
  const columns = places.map(() => new Array<unknown>(TABLE_ROWS).fill(null));
  const wrong = new Map<number, string>();
  let [rows, number, first] = [0, 0, 1];
  for await (const line of linesOf(textOf(bytesOf(file)))) {
    number++;
    if (line.trim() === '') continue;
    if (rows === 0) first = number;
    else if (first + rows !== number || rows === TABLE_ROWS) {
      yield { rows, first, columns, wrong };
      wrong.clear();
      [rows, first] = [0, number];
    }
    const row = parse(withoutFalseZeros(line));
    if (row === null) wrong.set(rows, 'is not a JSON object');
    for (let i = 0; i < places.length; i++) {
      const place = places[i]!;
      const value =
        row === null ? null : Array.isArray(row) ? row[place] : (row as Record<string, unknown>)[names[place]!];
      columns[i]![rows] = value ?? null;
    }
    rows++;
  }
  if (rows > 0) yield { rows, first, columns, wrong };
}
