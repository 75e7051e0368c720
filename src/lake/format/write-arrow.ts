/** Writes uncompressed Arrow IPC files (also known as Feather, version 2), with one record batch for each batch. */
import {
  Bool,
  type Data,
  type DataType,
  Field,
  Float64,
  Int32,
  Int64,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  Schema,
  Struct,
  TimestampMicrosecond,
  TimestampMillisecond,
  Utf8,
} from 'apache-arrow';
import type { Column } from '../../store/copy/columns.ts';
import type { FileColumn, OpenWriter } from './format.ts';

export const openArrow: OpenWriter = (sink, columns) => {
  const schema = arrowSchema(columns);
  const file = new CollectedFile();
  const drain = async () => {
    for (const part of file.parts.splice(0)) await sink(part);
  };
  file.begin(schema);
  return {
    write: async (batch) => {
      const children = columns.map((column, i) => dataOf(column, batch.columns[i]!, batch.rows));
      const type = new Struct(schema.fields);
      file.write(new RecordBatch(schema, makeData({ type, length: batch.rows, nullCount: 0, children })));
      await drain();
    },
    finish: async () => {
      file.finish();
      await drain();
    },
  };
};

/** The library's own queue has no limit. Here each part is taken as soon as it is made. */
class CollectedFile extends RecordBatchFileWriter {
  readonly parts: Uint8Array[] = [];

  begin(schema: Schema): void {
    this.reset(this._sink, schema);
  }

  protected override _write(chunk: ArrayBufferView): this {
    if (this._started && chunk.byteLength > 0) {
      this.parts.push(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
      this._position += chunk.byteLength;
    }
    return this;
  }
}

export function arrowSchema(columns: readonly FileColumn[]): Schema {
  return new Schema(columns.map((column) => new Field(column.name, arrowType(column), column.nullable)));
}

function arrowType({ type, unit }: FileColumn): DataType {
  switch (type) {
    case 'text':
      return new Utf8();
    case 'instant':
      return unit === 'milliseconds' ? new TimestampMillisecond('UTC') : new TimestampMicrosecond('UTC');
    case 'double':
      return new Float64();
    case 'integer':
      return new Int32();
    case 'bigint':
      return new Int64();
    case 'boolean':
      return new Bool();
  }
}

function dataOf(column: FileColumn, { type, values, isNull, nulls }: Column, rows: number): Data {
  const rest = {
    length: rows,
    nullCount: nulls,
    nullBitmap: nulls === 0 ? null : packBits(rows, (i) => isNull[i] === 0),
  };
  switch (type) {
    case 'text':
      return makeData({ type: new Utf8(), ...rest, ...textData(values, rows) });
    case 'boolean':
      return makeData({ type: new Bool(), ...rest, data: packBits(rows, (i) => values[i] === 1) });
    case 'instant': {
      const data = column.unit === 'milliseconds' ? values.map((value) => value / 1_000n) : values;
      return makeData({ type: arrowType(column) as TimestampMicrosecond, ...rest, data: data.subarray(0, rows) });
    }
    case 'bigint':
      return makeData({ type: new Int64(), ...rest, data: values.subarray(0, rows) });
    case 'integer':
      return makeData({ type: new Int32(), ...rest, data: values.subarray(0, rows) });
    case 'double':
      return makeData({ type: new Float64(), ...rest, data: values.subarray(0, rows) });
  }
}

function textData(values: readonly string[], rows: number) {
  const valueOffsets = new Int32Array(rows + 1);
  let last = '';
  let lastBytes = 0;
  for (let i = 0; i < rows; i++) {
    const value = values[i]!;
    // Rows are sorted, so a text often equals that of the row before.
    if (value !== last) {
      last = value;
      lastBytes = Buffer.byteLength(value);
    }
    valueOffsets[i + 1] = valueOffsets[i]! + lastBytes;
  }
  return { valueOffsets, data: Buffer.from(values.slice(0, rows).join('')) };
}

/** Packs one bit for each row. The first row is the lowest bit. */
function packBits(rows: number, isSet: (row: number) => boolean): Uint8Array {
  const bits = new Uint8Array(Math.ceil(rows / 8));
  for (let i = 0; i < rows; i++) if (isSet(i)) bits[i >> 3]! |= 1 << (i & 7);
  return bits;
}
