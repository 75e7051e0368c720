/** Reads any Parquet file, one row group after the other, and only the wanted columns. */

import * as zlib from 'node:zlib';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import {
  type DecodedArray,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  parquetSchema,
  type SchemaElement,
} from 'hyparquet';
import { readRange } from '../../destination/destination.ts';
import { NotReadable, readableAs } from '../../format/not-readable.ts';
import { readDecimal } from './decimal.ts';
import type { OpenTable, RawRows, TableColumn } from './table.ts';

/** Returns instants as milliseconds with a fraction, because rows that are not on the grid must not look as if they were. */
const PARSERS = {
  timestampFromMilliseconds: Number,
  timestampFromMicroseconds: (microseconds: bigint) => Number(microseconds) / 1e3,
  timestampFromNanoseconds: (nanoseconds: bigint) => Number(nanoseconds) / 1e6,
  dateFromDays: (days: number) => days * 86_400_000,
};

/** The library reads Snappy. Node.js has Zstandard since 22.15. */
const { zstdDecompressSync } = zlib as { zstdDecompressSync?: (bytes: Uint8Array) => Uint8Array };
const COMPRESSORS = {
  GZIP: (bytes: Uint8Array) => gunzipSync(bytes),
  BROTLI: (bytes: Uint8Array) => brotliDecompressSync(bytes),
  ...(zstdDecompressSync === undefined ? {} : { ZSTD: (bytes: Uint8Array) => zstdDecompressSync(bytes) }),
};

export const openParquetTable: OpenTable = async ({ destination, path, bytes }) => {
  const file = {
    byteLength: bytes,
    slice: async (from: number, to: number = bytes) => (await readRange(destination, path, { from, to })).buffer,
  };
  const metadata = await readableAs('Parquet', () => parquetMetadataAsync(file, { parsers: PARSERS }));
  checkCodecs(metadata);
  const columns = columnsOf(metadata);
  const asStored = { ...metadata, schema: metadata.schema.map(withoutDecimal) };
  return {
    columns,
    rows: Number(metadata.num_rows),
    async *read(places): AsyncGenerator<RawRows> {
      const names = places.map((place) => columns[place]!.name);
      let rowStart = 0;
      for (const { num_rows } of metadata.row_groups) {
        const rows = Number(num_rows);
        // By name, because one column may have several roles.
        const parts = new Map(names.map((name): [string, DecodedArray[]] => [name, []]));
        await readableAs('Parquet', () =>
          parquetRead({
            ...{ file, metadata: asStored, columns: [...parts.keys()], rowStart, rowEnd: rowStart + rows },
            ...{ parsers: PARSERS, compressors: COMPRESSORS, utf8: false },
            onChunk: ({ columnName, columnData }) => parts.get(columnName)!.push(columnData),
          }),
        );
        const values = names.map((name, i) => valuesOf(joined(parts.get(name)!, rows), columns[places[i]!]!));
        yield { rows, first: rowStart + 1, columns: values };
        rowStart += rows;
      }
    },
  };
};

type ParquetColumn = TableColumn & {
  /** The digits behind the point of a decimal; null: the column is not a decimal. */
  readonly scale: number | null;
  /** Whether its values are bytes that the file does not call a text. */
  readonly isBytes: boolean;
};

/** Types that the library does not read. */
const NOT_READ = ['INTERVAL', 'BSON'];

/** The columns with one value in each row. Nested columns, and those of types that are not read, are left out. */
function columnsOf(metadata: FileMetaData): ParquetColumn[] {
  return parquetSchema(metadata).children.flatMap(({ children, element }) => {
    const { converted_type: old = '', logical_type: now, type } = element;
    if (children.length > 0 || NOT_READ.includes(old)) return [];
    const isInstant =
      ['TIMESTAMP_MILLIS', 'TIMESTAMP_MICROS', 'DATE'].includes(old) || now?.type === 'TIMESTAMP' || type === 'INT96';
    const isBytes = type === 'BYTE_ARRAY' && old !== 'UTF8' && now?.type !== 'STRING';
    return [{ name: element.name, isInstant, scale: isDecimal(element) ? (element.scale ?? 0) : null, isBytes }];
  });
}

/** @throws NotReadable when this version of Node.js cannot read the compression */
function checkCodecs({ row_groups }: FileMetaData): void {
  for (const { columns } of row_groups) {
    const codec = columns.map(({ meta_data }) => meta_data?.codec).find((one) => one !== undefined && !canRead(one));
    if (codec === undefined) continue;
    const newer = codec === 'ZSTD' ? ', or use Node 22.15 or newer' : '';
    throw new NotReadable(`is compressed with ${codec}, which cannot be read; write it with snappy${newer}`);
  }
}

function canRead(codec: string): boolean {
  return codec === 'UNCOMPRESSED' || codec === 'SNAPPY' || Object.hasOwn(COMPRESSORS, codec);
}

function joined(parts: readonly DecodedArray[], rows: number): ArrayLike<unknown> {
  if (parts.length === 1) return parts[0]!;
  const all = new Array<unknown>(rows);
  let at = 0;
  for (const part of parts) for (let i = 0; i < part.length; i++) all[at++] = part[i];
  return all;
}

function isDecimal({ converted_type, logical_type }: SchemaElement): boolean {
  return converted_type === 'DECIMAL' || logical_type?.type === 'DECIMAL';
}

/** The library multiplies a decimal by 0.0001, which is not exact. Without its type, it returns the whole number that is stored. */
function withoutDecimal(element: SchemaElement): SchemaElement {
  if (!isDecimal(element)) return element;
  const { converted_type: _, logical_type: __, ...stored } = element;
  return stored;
}

function valuesOf(values: ArrayLike<unknown>, { scale, isBytes }: ParquetColumn): ArrayLike<unknown> {
  if (scale !== null)
    return Array.from(values, (stored) => (isWhole(stored) ? readDecimal(wholeOf(stored), scale) : stored));
  return isBytes
    ? Array.from(values, (one) => (one instanceof Uint8Array ? Buffer.from(one).toString() : one))
    : values;
}

type Whole = number | bigint | Uint8Array;

function isWhole(stored: unknown): stored is Whole {
  return typeof stored === 'number' || typeof stored === 'bigint' || stored instanceof Uint8Array;
}

function wholeOf(stored: Whole): number | bigint {
  if (!(stored instanceof Uint8Array)) return stored;
  return BigInt.asIntN(8 * stored.length, BigInt(`0x0${Buffer.from(stored).toString('hex')}`));
}
