/** Rows as columns, so that many rows move from Postgres into files without one object per row. */

/** `instant` counts microseconds since 1970 in UTC, `text` may hold JSON. */
export type ColumnType = 'text' | 'instant' | 'double' | 'integer' | 'bigint' | 'boolean';

type ValuesOf = {
  readonly text: string[];
  readonly instant: BigInt64Array;
  readonly double: Float64Array;
  readonly integer: Int32Array;
  readonly bigint: BigInt64Array;
  readonly boolean: Uint8Array;
};

/** `isNull[i]` is 1 where the value is null; `values[i]` is then 0 or an empty text. */
type ColumnOf<Type extends ColumnType> = {
  readonly type: Type;
  readonly values: ValuesOf[Type];
  readonly isNull: Uint8Array;
  /** Number of rows whose value is null. */
  nulls: number;
};

export type Column = { readonly [Type in ColumnType]: ColumnOf<Type> }[ColumnType];

/** Only the first `rows` values of each column are valid. The arrays are reused for later rows, so a caller that keeps values copies them. */
export type Batch = { rows: number; readonly columns: readonly Column[] };

export function createBatch(types: readonly ColumnType[], capacity: number): Batch {
  return { rows: 0, columns: types.map((type) => createColumn(type, capacity)) };
}

function createColumn(type: ColumnType, capacity: number): Column {
  const rest = { isNull: new Uint8Array(capacity), nulls: 0 };
  switch (type) {
    case 'text':
      return { type, values: new Array<string>(capacity).fill(''), ...rest };
    case 'instant':
    case 'bigint':
      return { type, values: new BigInt64Array(capacity), ...rest };
    case 'double':
      return { type, values: new Float64Array(capacity), ...rest };
    case 'integer':
      return { type, values: new Int32Array(capacity), ...rest };
    case 'boolean':
      return { type, values: new Uint8Array(capacity), ...rest };
  }
}

/** Empties the batch, so that it can take other rows. */
export function clearBatch(batch: Batch): void {
  batch.rows = 0;
  for (const column of batch.columns) {
    if (column.nulls > 0) column.isNull.fill(0);
    column.nulls = 0;
  }
}

export type Value = string | number | bigint | boolean | null;

/** One value. For whole columns read `values` and `isNull`. */
export function valueAt(column: Column, row: number): Value {
  if (column.isNull[row] === 1) return null;
  return column.type === 'boolean' ? column.values[row] === 1 : column.values[row]!;
}

/** Sets one value of the right type. Call it once for each row, in order. */
export function setValue(column: Column, row: number, value: Value): void {
  if (value === null) setNull(column, row);
  else if (column.type === 'text') column.values[row] = value as string;
  else if (column.type === 'instant' || column.type === 'bigint') column.values[row] = value as bigint;
  else column.values[row] = Number(value);
}

/** Sets one value to null. Call it once for each row, in order. */
export function setNull(column: Column, row: number): void {
  column.isNull[row] = 1;
  column.nulls++;
  if (column.type === 'text') column.values[row] = '';
  else if (column.type === 'instant' || column.type === 'bigint') column.values[row] = 0n;
  else column.values[row] = 0;
}
