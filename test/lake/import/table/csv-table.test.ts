/** CSV is read in pieces, and mostly as bytes instead of text: the rows are the same wherever a piece ends. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Destination } from '../../../../src/lake/destination/destination.ts';
import { openCsvTable } from '../../../../src/lake/import/table/csv-table.ts';

type Row = { readonly record: number; readonly values: readonly unknown[]; readonly wrong: string | undefined };

/** Reads the columns b (numbers), c and a. */
async function readAll(text: Uint8Array, size: number): Promise<Row[]> {
  const destination = {
    get: async () =>
      (async function* () {
        for (let at = 0; at < text.length; at += size) yield text.subarray(at, at + size);
      })(),
  } as unknown as Destination;
  const table = await openCsvTable(
    { destination, path: 'x.csv', bytes: text.length, isGzip: false },
    { hasHeader: true },
  );
  expect(table.columns.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  const found: Row[] = [];
  for await (const { rows, first, columns, wrong } of table.read([1, 2, 0], [true, false, false])) {
    for (let i = 0; i < rows; i++)
      found.push({ record: first + i, values: columns.map((column) => column[i]), wrong: wrong?.get(i) });
  }
  return found;
}

test('a byte order mark is skipped in a file of one row', async () => {
  const destination = { get: async () => [Buffer.from('\ufeff1704067200,2')] } as unknown as Destination;
  const table = await openCsvTable({ destination, path: 'x.csv', bytes: 15, isGzip: false }, { hasHeader: false });
  for await (const { columns } of table.read([0, 1], [true, true]))
    expect(columns.map((column) => Number(column[0]))).toEqual([1_704_067_200, 2]);
  expect.assertions(1);
});

type Cell = { readonly text: string; readonly value: string | null };
type Line = { readonly text: string; readonly values: readonly (string | null)[] };

const bare = fc
  .constantFrom('', '007', 'btc', 'btc', '1.50', '12345678901234567.8', '1e5', '-1', 'é', '€uro', '5" disk')
  .map((text): Cell => ({ text, value: text === '' ? null : text }));
const quoted = fc
  .constantFrom('a "b", c', '1.5', 'two\nlines', '')
  .map((value): Cell => ({ text: `"${value.replaceAll('"', '""')}"`, value }));
const cell = fc.oneof({ weight: 30, arbitrary: bare }, { weight: 1, arbitrary: quoted });
const joined = (cells: readonly Cell[]): Line => ({
  text: cells.map(({ text }) => text).join(','),
  values: cells.map(({ value }) => value),
});
const line = fc.oneof(
  { weight: 20, arbitrary: fc.tuple(cell, cell, cell).map(joined) },
  { weight: 1, arbitrary: fc.array(cell, { maxLength: 5 }).map(joined) },
);
const file = fc.tuple(
  fc.array(line, { maxLength: 60 }),
  fc.constantFrom('\n', '\r\n'),
  fc.boolean(),
  fc.constantFrom('', '\ufeff'),
);

function expected(lines: readonly Line[]): Row[] {
  return lines.flatMap(({ text, values }, i) => {
    if (text === '') return [];
    const [a = null, b = null, c = null] = values;
    const wrong = values.length === 3 ? undefined : `has ${values.length} fields, but the first record has 3`;
    return [{ record: i + 2, values: [b, c, a], wrong }];
  });
}

test('rows are the same wherever a piece of the file ends, with quotes, other letters and empty lines', async () => {
  await fc.assert(
    fc.asyncProperty(file, fc.integer({ min: 1, max: 300 }), async ([lines, end, isEnded, mark], size) => {
      const text = Buffer.from(`${mark}${['a,b,c', ...lines.map((one) => one.text)].join(end)}${isEnded ? end : ''}`);
      const rows = await readAll(text, size);
      // A number that is not plain is returned as text.
      const asNumber = (value: unknown) =>
        value !== null && !Number.isNaN(Number(value)) && value !== '' ? Number(value) : value;
      const compared = (all: readonly Row[]) =>
        all.map(({ values: [b, ...others], ...row }) => ({ ...row, values: [asNumber(b), ...others] }));
      expect(compared(rows)).toEqual(compared(expected(lines)));
    }),
    { numRuns: 500 },
  );
});

test('the first rows are plain numbers, and those of a text column are not', async () => {
  const rows = await readAll(Buffer.from('a,b,c\n007,007,1.5\n007,1.25,1.5\n'), 1_000);
  expect(rows.map(({ values }) => values)).toEqual([
    [7, '1.5', '007'],
    [1.25, '1.5', '007'],
  ]);
});

test('bytes that are not UTF-8 are rejected, also when the piece before ended well', async () => {
  const text = Buffer.concat([Buffer.from('a,b,c\n1,2,3\n'), Buffer.from([0xe9, 0x2c, 0x31, 0x2c, 0x31, 0x0a])]);
  for (const size of [5, 12, 100]) await expect(readAll(text, size)).rejects.toThrow('is not UTF-8');
});
