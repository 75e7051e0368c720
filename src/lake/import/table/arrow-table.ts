/** Reads any Arrow IPC file (Feather, version 2), one record batch after the other. */
import { DataType, type Field, TimeUnit, type Vector } from 'apache-arrow';
import { batchesOf, openArrow } from '../../format/read-arrow.ts';
import { readDecimal } from './decimal.ts';
import type { OpenTable, RawRows } from './table.ts';

export const openArrowTable: OpenTable = async (file) => {
  const opened = await openArrow(file);
  const { fields } = opened.schema;
  await opened.cancel();
  return {
    columns: fields.map((field: Field) => ({ name: field.name, isInstant: isInstant(field.type) })),
    rows: null,
    async *read(places): AsyncGenerator<RawRows> {
      const reader = await openArrow(file);
      let first = 1;
      try {
        for await (const records of batchesOf(reader)) {
          const { numRows } = records;
          const columns = places.map((place) => valuesOf(records.getChildAt(place)!));
          yield { rows: numRows, first, columns };
          first += numRows;
        }
      } finally {
        await reader.cancel();
      }
    },
  };
};

const isInstant = (type: DataType) => DataType.isTimestamp(type) || DataType.isDate(type);

const PER_MS = {
  [TimeUnit.SECOND]: 1e-3,
  [TimeUnit.MILLISECOND]: 1,
  [TimeUnit.MICROSECOND]: 1e3,
  [TimeUnit.NANOSECOND]: 1e6,
};

function valuesOf(vector: Vector): ArrayLike<unknown> {
  const { type, length } = vector;
  const out = new Array<unknown>(length);
  if (DataType.isTimestamp(type)) {
    // The library returns whole milliseconds, so a time that is not on the grid could look as if it were.
    const stored = vector.data[0]!.values as BigInt64Array;
    const unit = PER_MS[type.unit];
    for (let i = 0; i < length; i++) out[i] = vector.isValid(i) ? Number(stored[i]!) / unit : null;
    return out;
  }
  if (DataType.isDecimal(type)) {
    const stored = vector.data[0]!.values as Uint32Array;
    for (let i = 0; i < length; i++)
      out[i] = vector.isValid(i) ? readDecimal(wholeAt(stored, i, type.bitWidth), type.scale) : null;
    return out;
  }
  if (vector.nullCount === 0 && DataType.isFloat(type) && type.precision === 2) return vector.toArray() as Float64Array;
  for (let i = 0; i < length; i++) out[i] = vector.get(i) ?? null;
  return out;
}

/** The words of each number begin with the lowest. */
function wholeAt(stored: Uint32Array, row: number, bits: number): bigint {
  const words = bits / 32;
  let whole = 0n;
  for (let at = words * (row + 1) - 1; at >= words * row; at--) whole = (whole << 32n) | BigInt(stored[at]!);
  return BigInt.asIntN(bits, whole);
}
