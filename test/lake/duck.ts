/** DuckDB, a reader of the files that Chandler did not write. */
import { DuckDBInstance } from '@duckdb/node-api';

export type Duck = {
  /** The rows of a statement, with instants as microseconds and big integers as text. */
  rows(statement: string): Promise<unknown[][]>;
};

export async function openDuck(): Promise<Duck> {
  const connection = await (await DuckDBInstance.create()).connect();
  await connection.run(`set timezone = 'UTC'`);
  return {
    rows: async (statement) => {
      const found = await connection.runAndReadAll(statement);
      return found.getRows().map((row) => row.map(plain));
    },
  };
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'object' && value !== null && 'micros' in value) return String(value.micros);
  return value;
}
