/** Converts names: rows arrive in camelCase, but records of the API document have the names of the columns. */
import postgres from 'postgres';

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** The type in which a row with the columns of `Record` arrives. */
export type CamelCased<Record> = { readonly [Name in keyof Record as CamelCase<Name & string>]: Record[Name] };

/** Returns a function that makes a record from a row: the columns in `names`, in that order. */
export function createRecordReader<Record extends object>(
  names: readonly (keyof Record & string)[],
): (row: CamelCased<Record>) => Record {
  const columns = names.map((name) => [name, postgres.toCamel(name)] as const);
  return (row) => {
    const values = row as { readonly [column: string]: unknown };
    const record: { [name: string]: unknown } = {};
    for (const [name, column] of columns) record[name] = values[column];
    return record as Record;
  };
}
