/** Reads CSV and NDJSON as `write-text.ts` writes them. */
import { type Batch, clearBatch, createBatch, setValue, type Value } from '../../store/copy/columns.ts';
import { endOfRecord, splitRecord } from './csv-record.ts';
import { BATCH_ROWS, type FileColumn, type FileToRead, type ReadRows } from './format.ts';
import { readInstantText } from './instant-text.ts';
import { NotReadable } from './not-readable.ts';
import { textOf } from './text-lines.ts';

export const readCsv: ReadRows = async function* (file) {
  const { columns } = file;
  const header = columns.map(({ name }) => name).join(',');
  let isHeader = true;
  yield* readRecords(file, csvRecords(textOfFile(file)), (fields: readonly (string | null)[], number) => {
    if (isHeader) {
      isHeader = false;
      if (fields.join(',') !== header) throw new NotReadable(`has a header other than ${header}`);
      return null;
    }
    if (fields.length !== columns.length)
      throw new NotReadable(`has ${fields.length} fields in record ${number}, but ${columns.length} columns`);
    return columns.map((column, i) => (fields[i] === null ? null : readText(column, fields[i]!, number)));
  });
};

export const readNdjson: ReadRows = async function* (file) {
  const { columns } = file;
  yield* readRecords(file, lines(textOfFile(file)), (line: string, number) => {
    const row = parseObject(line, number);
    return columns.map((column) => readJson(column, row[column.name], number));
  });
};

/** `toRow` returns null for a record that is not a row. */
async function* readRecords<Record>(
  { columns }: FileToRead,
  records: AsyncIterable<Record>,
  toRow: (record: Record, number: number) => readonly Value[] | null,
): AsyncGenerator<Batch> {
  const types = columns.map(({ type }) => type);
  const batch = createBatch(types, BATCH_ROWS);
  let number = 0;
  for await (const record of records) {
    const values = toRow(record, ++number);
    if (values === null) continue;
    if (batch.rows === BATCH_ROWS) {
      yield batch;
      clearBatch(batch);
    }
    const row = batch.rows++;
    for (let i = 0; i < values.length; i++) {
      if (values[i] === null && !columns[i]!.nullable)
        throw new NotReadable(`lacks ${columns[i]!.name} in record ${number}`);
      setValue(batch.columns[i]!, row, values[i]!);
    }
  }
  if (batch.rows > 0) yield batch;
}

function readText(column: FileColumn, text: string, number: number): Value {
  const wrong = () => new NotReadable(`has the invalid ${column.name} ${JSON.stringify(text)} in record ${number}`);
  switch (column.type) {
    case 'text':
      return text;
    case 'instant': {
      const at = readInstantText(text);
      if (at === null) throw wrong();
      return at;
    }
    case 'boolean':
      if (text !== 'true' && text !== 'false') throw wrong();
      return text === 'true';
    case 'bigint':
      if (!/^-?\d+$/.test(text)) throw wrong();
      return BigInt(text);
    default: {
      const value = Number(text);
      if (text.trim() === '' || (Number.isNaN(value) && text !== 'NaN')) throw wrong();
      return value;
    }
  }
}

function readJson(column: FileColumn, value: unknown, number: number): Value {
  if (value === null || value === undefined) return null;
  const isOfType = typeof value === (column.type === 'boolean' ? 'boolean' : isText(column) ? 'string' : 'number');
  if (!isOfType) throw new NotReadable(`has the invalid ${column.name} ${JSON.stringify(value)} in record ${number}`);
  if (column.type === 'instant') return readText(column, value as string, number);
  return column.type === 'bigint' ? BigInt(value as number) : (value as Value);
}

function isText({ type }: FileColumn): boolean {
  return type === 'text' || type === 'instant';
}

function parseObject(line: string, number: number): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown>;
  } catch {
    // The error is thrown below.
  }
  throw new NotReadable(`has no JSON object in record ${number}`);
}

async function* textOfFile({ destination, path }: FileToRead): AsyncGenerator<string> {
  const bytes = await destination.get(path);
  if (bytes === null) throw new NotReadable('no longer exists');
  yield* textOf(bytes);
}

async function* lines(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const text of texts) {
    const parts = (rest + text).split('\n');
    rest = parts.pop()!;
    for (const part of parts) if (part !== '') yield part;
  }
  if (rest !== '') throw new NotReadable('ends in the middle of a line');
}

/** Yields each record as its fields. */
async function* csvRecords(texts: AsyncIterable<string>): AsyncGenerator<(string | null)[]> {
  let rest = '';
  for await (const text of texts) {
    const all = rest + text;
    let at = 0;
    for (;;) {
      const end = endOfRecord(all, at, ',');
      if (end === -1) break;
      yield splitRecord(all.slice(at, end), ',');
      at = end + 1;
    }
    rest = all.slice(at);
  }
  if (rest !== '') throw new NotReadable('ends in the middle of a record');
}
