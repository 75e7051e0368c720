/** Opens the files of an import: finds the role of each column, and the number of rows. */
import { NotReadable } from '../format/not-readable.ts';
import { ImportRefused } from '../refused.ts';
import { type Columns, findColumns, type NamedColumns, ROLES, type Role } from './columns.ts';
import type { OpenedFile } from './import-rows.ts';
import type { InputFile } from './input-files.ts';
import { isAnother, type SeriesText } from './series-book.ts';
import type { OpenTable, RawRows, Table } from './table/table.ts';

/** Each module is loaded only when it is needed. */
const TABLES: Readonly<Record<InputFile['format'], () => Promise<OpenTable>>> = {
  csv: async () => (await import('./table/csv-table.ts')).openCsvTable,
  ndjson: async () => (await import('./table/ndjson-table.ts')).openNdjsonTable,
  parquet: async () => (await import('./table/parquet-table.ts')).openParquetTable,
  arrow: async () => (await import('./table/arrow-table.ts')).openArrowTable,
};

export type ReadOptions = {
  /** The values that are given for all rows; null: not given. */
  readonly coin: string | null;
  readonly interval: string | null;
  readonly quote: string | null;
  readonly columns: NamedColumns;
  readonly hasHeader: boolean;
};

export type FileToImport = OpenedFile & {
  readonly bytes: number;
  /** Null: the number is unknown until all rows are read. */
  readonly rows: number | null;
  readonly read: () => AsyncGenerator<RawRows>;
  readonly mapping: ColumnMapping;
};

/** How the columns of a file are understood, to show to users. */
export type ColumnMapping = {
  /** The name of the column for each role. */
  readonly read: Readonly<Partial<Record<Role, string>>>;
  /** The names of the columns without a role. */
  readonly notUsed: readonly string[];
};

/** The roles whose texts may be read as numbers. In other columns, 007 is not 7. */
const NUMBERS: readonly Role[] = ['time', 'open', 'high', 'low', 'close', 'volume', 'market_cap'];

const DEFAULT_QUOTE = 'usd';

/** @throws ImportRefused when a column is missing, or the series of the rows is unknown */
export async function openFile(input: InputFile, number: number, options: ReadOptions): Promise<FileToImport> {
  const { name, bytes } = input;
  const { hasHeader, columns: named } = options;
  const table = await readable(name, async () => (await TABLES[input.format]())(input, { hasHeader }));
  // Only the columns of a CSV file may have no names.
  const hasNames = hasHeader || input.format !== 'csv';
  const found = findColumns(table, { hasHeader: hasNames, named, file: name });
  const said = whatIsSaid(input, options, found);
  const roles = Object.keys(found) as Role[];
  const places = roles.map((role) => found[role]!);
  const isNumber = roles.map((role) => NUMBERS.includes(role));
  return {
    name,
    number,
    bytes,
    rows: table.rows,
    columns: Object.fromEntries(roles.map((role, i) => [role, i])) as Columns,
    isInstant: table.columns[found.time!]!.isInstant,
    said,
    label: {},
    read: () => explained(name, table.read(places, isNumber)),
    mapping: mappingOf(table, found, said),
  };
}

function mappingOf({ columns }: Table, found: Columns, said: Partial<SeriesText>): ColumnMapping {
  const roles = ROLES.filter((role) => found[role] !== undefined && (role !== 'coin' || said.coin === undefined));
  const read = Object.fromEntries(roles.map((role) => [role, columns[found[role]!]!.name]));
  // By index, because two columns may have the same name.
  const used = new Set(roles.map((role) => found[role]!));
  return { read, notUsed: columns.filter((_, i) => !used.has(i)).map(({ name }) => name) };
}

function whatIsSaid(
  { name, place }: InputFile,
  { coin, interval, quote, columns: named }: ReadOptions,
  found: Columns,
): Partial<SeriesText> {
  const said: Partial<Record<keyof SeriesText, string>> = {};
  for (const [role, given] of [
    ['interval', interval],
    ['quote', quote],
  ] as const)
    if (given !== null && place[role] !== undefined && isAnother(role, place[role], given))
      throw new ImportRefused(
        `${name} is in a folder ${role}=${place[role]}, but --${role} is ${given}; leave out --${role}`,
      );
  if (coin !== null) said.coin = coin;
  else if (found.coin === undefined)
    throw new ImportRefused(`the coin of the rows in ${name} is missing; give --coin, or --columns coin=…`);
  const width = interval ?? (named.interval === undefined ? place.interval : undefined);
  if (width !== undefined) said.interval = width;
  else if (found.interval === undefined)
    throw new ImportRefused(
      `the interval of the candles in ${name} is missing; give --interval, or --columns interval=…`,
    );
  const currency = quote ?? (named.quote === undefined ? place.quote : undefined);
  if (currency !== undefined) said.quote = currency;
  else if (found.quote === undefined) said.quote = DEFAULT_QUOTE;
  return said;
}

async function* explained(name: string, rows: AsyncGenerator<RawRows>): AsyncGenerator<RawRows> {
  for (;;) {
    const { value, done } = await readable(name, () => rows.next());
    if (done) return;
    yield value;
  }
}

async function readable<T>(name: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof NotReadable)) throw error;
    throw new ImportRefused(`${name} ${error.message}`);
  }
}
