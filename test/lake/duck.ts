/** DuckDB, as a reader of files that is not ours. */
import { DuckDBInstance } from '@duckdb/node-api';

export type Duck = {
  /** Rows of a statement, instants as microseconds, big integers as texts. */
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
