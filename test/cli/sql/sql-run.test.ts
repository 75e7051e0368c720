import { Writable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createIo } from '../../../src/cli/shell/io.ts';
import { runSql } from '../../../src/cli/sql/sql-run.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Takes each chunk a moment after it came, and records the most that waited for it. */
function slowReader() {
  let most = 0;
  let bytes = 0;
  const stream: Writable = new Writable({
    write: (part: Buffer, _encoding, taken) => {
      most = Math.max(most, stream.writableLength);
      bytes += part.length;
      setImmediate(taken);
    },
  });
  const stdin = Object.assign(process.stdin, {});
  const { out } = createIo({ stdin, stdout: stream, stderr: stream });
  return { out, stream, most: () => most, bytes: () => bytes };
}
const run = (out: ReturnType<typeof slowReader>['out'], text: string) =>
  runSql(out, { url: database.url, text, json: true, signal: new AbortController().signal });

/** The rows are generated one by one. In the `from` clause all would be generated first. */
const ENDLESS = 'select repeat($$x$$, 1000), generate_series(1, 100000000)';
const ROWS = `select repeat('x', 1000) as text from generate_series(1, 40000)`;

test.each([
  ['rows as JSON', ROWS],
  ['a copy', `copy (${ROWS}) to stdout`],
])('%s are read no faster than they are written', async (_what, text) => {
  const reader = slowReader();
  await run(reader.out, text);
  expect(reader.bytes()).toBeGreaterThan(40_000_000);
  expect(reader.most()).toBeLessThan(3_000_000);
});

test.each([
  ['rows', ENDLESS],
  ['a copy', `copy (${ENDLESS}) to stdout`],
])('the statement ends on the server when the reader of %s has gone', async (_what, text) => {
  const reader = slowReader();
  const running = run(reader.out, text);
  await expect.poll(reader.bytes).toBeGreaterThan(0);
  reader.stream.destroy(Object.assign(new Error('gone'), { code: 'EPIPE' }));
  await running;
  const active = await database.sql`
    select from pg_stat_activity where application_name = 'chandler sql' and state = 'active' and datname = current_database()`;
  expect(active).toHaveLength(0);
});
