/** Reads the binary form of COPY into columns. */
import { type Batch, type Column, type ColumnType, clearBatch, setNull } from './columns.ts';

const SIGNATURE_BYTES = 19;
/** Postgres counts from 2000-01-01, in microseconds. */
const EPOCH_MICROSECONDS = BigInt(Date.UTC(2000, 0, 1)) * 1_000n;
/** In place of a number of fields, this marks the end. */
const END = -1;
const NULL = -1;

/**
 * Adds the rows of one COPY to `batch`, whose columns have the types of the fields. Yields the batch whenever it has `capacity` rows, and
 * clears it when the consumer continues. Rows left at the end stay in the batch, so that several statements can fill one batch.
 */
export async function* readCopy(chunks: AsyncIterable<Buffer>, batch: Batch, capacity: number): AsyncGenerator<Batch> {
  const readers = batch.columns.map((column) => readerOf(column));
  let rest: Buffer = Buffer.alloc(0);
  let isBegun = false;
  let isEnded = false;
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    if (!isBegun) {
      if (bytes.length < SIGNATURE_BYTES) {
        rest = bytes;
        continue;
      }
      // The header could have an extension, which would follow with its length. No version of Postgres writes one.
      at = SIGNATURE_BYTES;
      isBegun = true;
    }
    for (;;) {
      const end = isEnded ? null : endOfRow(bytes, at);
      if (end === null) break;
      if (end === END) {
        isEnded = true;
        break;
      }
      if (batch.rows === capacity) {
        yield batch;
        clearBatch(batch);
      }
      readRow(bytes, at, batch, readers);
      at = end;
    }
    rest = bytes.subarray(at);
  }
  if (!isEnded) throw new Error('the server ended a COPY before its last row');
  if (batch.rows === capacity) {
    yield batch;
    clearBatch(batch);
  }
}

/** The end of the row that begins at `at`. Null when the row is not complete yet, `END` after the last row. */
function endOfRow(bytes: Buffer, at: number): number | null {
  if (at + 2 > bytes.length) return null;
  const fields = bytes.readInt16BE(at);
  if (fields === END) return END;
  let next = at + 2;
  for (let i = 0; i < fields; i++) {
    if (next + 4 > bytes.length) return null;
    const length = bytes.readInt32BE(next);
    next += length > 0 ? 4 + length : 4;
  }
  return next <= bytes.length ? next : null;
}

function readRow(bytes: Buffer, start: number, batch: Batch, readers: readonly ReadField[]): void {
  let at = start + 2;
  const row = batch.rows++;
  for (let i = 0; i < readers.length; i++) {
    const length = bytes.readInt32BE(at);
    at += 4;
    readers[i]!(bytes, at, length, row);
    if (length !== NULL) at += length;
  }
}

type ReadField = (bytes: Buffer, at: number, length: number, row: number) => void;

/** Returns a reader for the fields of one column. A field of length `NULL` is null. */
function readerOf(column: Column): ReadField {
  const read = READERS[column.type](column as never);
  return (bytes, at, length, row) => (length === NULL ? setNull(column, row) : read(bytes, at, length, row));
}

type Of<Type extends ColumnType> = Extract<Column, { readonly type: Type }>;

const READERS: { readonly [Type in ColumnType]: (column: Of<Type>) => ReadField } = {
  text: textReader,
  double: ({ values }) => {
    return (bytes, at, _, row) => {
      values[row] = bytes.readDoubleBE(at);
    };
  },
  instant: ({ values }) => {
    return (bytes, at, _, row) => {
      values[row] = bytes.readBigInt64BE(at) + EPOCH_MICROSECONDS;
    };
  },
  bigint: ({ values }) => {
    return (bytes, at, _, row) => {
      values[row] = bytes.readBigInt64BE(at);
    };
  },
  integer: ({ values }) => {
    return (bytes, at, length, row) => {
      values[row] = length === 2 ? bytes.readInt16BE(at) : bytes.readInt32BE(at);
    };
  },
  boolean: ({ values }) => {
    return (bytes, at, _, row) => {
      values[row] = bytes[at]!;
    };
  },
};

/** Rows are sorted, so a text often equals that of the previous row. Then the reader decodes nothing. */
function textReader({ values }: Of<'text'>): ReadField {
  let last = '';
  let lastBytes = Buffer.alloc(0);
  return (bytes, at, length, row) => {
    if (length !== lastBytes.length || bytes.compare(lastBytes, 0, length, at, at + length) !== 0) {
      lastBytes = Buffer.from(bytes.subarray(at, at + length));
      last = lastBytes.toString('utf8');
    }
    values[row] = last;
  };
}
