/**
 * Writes Parquet. The encodings are chosen for candles: doubles as byte streams, times as deltas, ids as a dictionary. The compression is Snappy,
 * whose bytes depend on no version of zlib. A row group has the least and the greatest value of each column, so that a reader can skip groups.
 */
import { ByteWriter, type ColumnSource, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import type { Column } from '../../store/copy/columns.ts';
import { BATCH_ROWS, type FileColumn, type OpenWriter } from './format.ts';

export const openParquet: OpenWriter = (sink, columns) => {
  const bytes = new ByteWriter(1 << 20);
  const file = new ParquetWriter({ writer: bytes, schema: schemaOf(columns), codec: 'SNAPPY', createdBy: 'chandler' });
  const drain = async () => {
    await sink(bytes.getBytes());
    bytes.index = 0;
  };
  return {
    write: async (batch) => {
      file.write({
        columnData: columns.map((column, i) => sourceOf(column, batch.columns[i]!, batch.rows)),
        rowGroupSize: BATCH_ROWS,
      });
      await drain();
    },
    finish: async () => {
      file.finish();
      await drain();
    },
  };
};

function schemaOf(columns: readonly FileColumn[]): SchemaElement[] {
  const elements = columns.map((column): SchemaElement => {
    const { name, nullable } = column;
    return { name, repetition_type: nullable ? 'OPTIONAL' : 'REQUIRED', ...typeOf(column) };
  });
  return [{ name: 'root', num_children: columns.length }, ...elements];
}

function typeOf({ type, unit }: FileColumn): Omit<SchemaElement, 'name' | 'repetition_type'> {
  switch (type) {
    case 'text':
      return { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } };
    case 'instant':
      // Declares the type in the old and in the new way. A reader that knows neither reads a number.
      return {
        type: 'INT64',
        converted_type: unit === 'milliseconds' ? 'TIMESTAMP_MILLIS' : 'TIMESTAMP_MICROS',
        logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: unit === 'milliseconds' ? 'MILLIS' : 'MICROS' },
      };
    case 'double':
      return { type: 'DOUBLE' };
    case 'integer':
      return { type: 'INT32' };
    case 'bigint':
      return { type: 'INT64' };
    case 'boolean':
      return { type: 'BOOLEAN' };
  }
}

function sourceOf({ name, unit, type }: FileColumn, column: Column, rows: number): ColumnSource {
  const data = valuesOf(column, rows, unit);
  switch (type) {
    case 'instant':
    case 'bigint':
    case 'integer':
      return { name, data, encoding: 'DELTA_BINARY_PACKED' };
    case 'double':
      return { name, data, encoding: 'BYTE_STREAM_SPLIT' };
    default:
      // The writer decides whether a dictionary is worth it.
      return { name, data };
  }
}

/** Typed arrays are written several times as fast. Only nulls, booleans and milliseconds need a list. */
function valuesOf(column: Column, rows: number, unit: FileColumn['unit']): ColumnSource['data'] {
  if (column.type === 'instant' && unit === 'milliseconds')
    return listOf(column, rows, (i) => (column.values[i] as bigint) / 1_000n);
  if (column.type === 'boolean') return listOf(column, rows, (i) => column.values[i] === 1);
  if (column.nulls > 0) return listOf(column, rows, (i) => column.values[i]);
  return column.type === 'text' ? column.values.slice(0, rows) : column.values.subarray(0, rows);
}

function listOf({ isNull }: Column, rows: number, valueAt: (row: number) => unknown): unknown[] {
  const values = new Array<unknown>(rows);
  for (let i = 0; i < rows; i++) values[i] = isNull[i] === 1 ? null : valueAt(i);
  return values;
}
