/** The same candles, read from any supported form of file, give the same rows in the table. */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { inflateSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Candle } from '../../../src/core/candle.ts';
import { formatInstant } from '../../../src/core/format.ts';
import { HOUR } from '../../../src/core/interval.ts';
import type { FileColumn, Format } from '../../../src/lake/format/format.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { openDuck } from '../duck.ts';
import { csvOf, giveCoins, HEADER, HOURS, ndjsonOf, PRICES, temporaryFiles, writeTable } from './given-files.ts';

let database: TestDatabase;
let files: ReturnType<typeof temporaryFiles>;
beforeAll(async () => {
  database = await createTestDatabase();
  await giveCoins(database.sql, 'btc-bitcoin');
  files = temporaryFiles();
});
afterAll(async () => {
  files?.remove();
  await database?.drop();
});
beforeEach(async () => {
  await database.sql`truncate market.imported_candle, market.imported_series`;
});

const imports = (file: string, ...more: string[]) => importsAs(HOURS, file, ...more);

/** Imports a file of these candles, and checks that the table has them. */
async function importsAs(candles: readonly Candle[], file: string, ...more: string[]) {
  const argv = ['import', file, '--source', 'x', '--coin', 'btc-bitcoin', '--interval', '1h', '--json', ...more];
  const { code, out, err } = await runCommand(argv, { env: { DATABASE_URL: database.url } });
  expect([code, err, code === 0 ? '' : out]).toEqual([0, '', '']);
  const found = await database.sql`
    select open_time, open, high, low, close, volume, market_cap from market.imported_candle order by open_time`;
  expect(found).toEqual(candles);
  return JSON.parse(out);
}

const iso = (at: number) => new Date(at).toISOString();

describe('times', () => {
  test.each<[string, (at: number) => string | number, object]>([
    ['seconds', (at) => at / 1_000, { s: 500 }],
    ['seconds with a fraction', (at) => `${at / 1_000}.0`, { s: 500 }],
    ['milliseconds', (at) => at, { ms: 500 }],
    ['microseconds', (at) => at * 1_000, { us: 500 }],
    ['nanoseconds', (at) => `${at}000000`, { ns: 500 }],
    ['ISO 8601', iso, { text: 500 }],
    ['ISO 8601 with a blank', (at) => iso(at).replace('T', ' ').replace('.000Z', ' UTC'), { text: 500 }],
    ['without a zone', (at) => iso(at).slice(0, 19).replace('T', ' '), { 'text in UTC': 500 }],
    ['in another zone', (at) => iso(at + 5.5 * HOUR).replace('Z', '+05:30'), { text: 500 }],
    ['west of Greenwich', (at) => iso(at - 5 * HOUR).replace('Z', '-05'), { text: 500 }],
    ['of the program', formatInstant, { text: 500 }],
  ])('%s', async (_, time, times) => {
    expect(await imports(files.write('times.csv', csvOf(HOURS, time)))).toMatchObject({ added: 500, times });
  });

  test('blanks around a value change nothing, also around a number or a flag', async () => {
    const lines = HOURS.map((candle) => [candle.openTime / 1_000, ...PRICES.map((name) => candle[name]), 'true']);
    const text = [['name', HEADER, 'is_final'], ...lines.map((line) => ['x', ...line])].map((line) => line.join(' , '));
    const told = await imports(files.write('blanks.csv', text.join(' \n')));
    expect(told).toMatchObject({ added: 500, times: { s: 500 } });
    expect(await database.sql`select from market.imported_candle where is_final`).toHaveLength(500);
  });

  test('--time-unit decides where the size of a number does not', async () => {
    const file = files.write('old.csv', `${HEADER}\n3600,1,1,1,1,1\n`);
    const argv = (unit: string) => [
      'import',
      file,
      '--source',
      unit,
      '--coin',
      'BTC',
      '--interval',
      '1h',
      '--time-unit',
      unit,
    ];
    const env = { DATABASE_URL: database.url };
    expect((await runCommand(argv('s'), { env })).code).toBe(0);
    expect(await database.sql`select open_time from market.imported_candle`).toEqual([{ openTime: HOUR }]);
    expect((await runCommand(argv('ms'), { env })).out).toContain(
      'time is not on the 1h grid: "1970-01-01T00:00:03.600Z"',
    );
  });

  test.each([
    '2024-01-31T1::00:00Z',
    '2024-01-31T24:00:00Z',
    '2024-01-31T00:60:00Z',
    '2024-02-30T00:00:00Z',
    '31.01.2024',
    '2024-01-31T00:00Zz',
    'x',
  ])('rejects %s as a time', async (text) => {
    // A valid line of the same day comes first: after it, less of the text is checked.
    const file = files.write('no.csv', `${HEADER}\n2024-01-31T00:00:00Z,1,1,1,1,1\n${text},1,1,1,1,1\n`);
    const { code, out } = await runCommand(['import', file, '--source', 'x', '--coin', 'BTC', '--interval', '1h'], {
      env: { DATABASE_URL: database.url },
    });
    expect(code).toBe(1);
    expect(out).toContain(`record 3: time is not a valid time: "${text}"`);
  });

  test('counts a part below a millisecond: such a time is not on the grid', async () => {
    const file = files.write(
      'off.csv',
      csvOf(HOURS.slice(0, 1), (at) => at * 1_000 + 1),
    );
    const { code, out } = await runCommand(['import', file, '--source', 'x', '--coin', 'BTC', '--interval', '1h'], {
      env: { DATABASE_URL: database.url },
    });
    expect(code).toBe(1);
    expect(out).toContain('1 × time is not on the 1h grid');
  });
});

describe('text files', () => {
  test('may have other separators, quotes, a byte order mark, empty lines and the line ends of Windows', async () => {
    const text = csvOf(HOURS, (at) => `"${at}"`, '"Open Time",Open,High,Low,Close,Volume').replaceAll(',', ';');
    const [first, ...rest] = text.split('\n');
    await imports(files.write('windows.csv', `\ufeff${[first, '', ...rest].join('\r\n')}`));
  });

  test('may name columns or number them, and may have columns that were not requested', async () => {
    const text = csvOf(
      HOURS.map((one) => ({ ...one })),
      (at) => `"a ""quoted"", text\nof two lines",${at}`,
      'note,ts,a,b,c,d,e',
    );
    await imports(files.write('named.csv', text), '--columns', 'open=a,high=b,low=c,close=6,volume=e');
  });

  test('may be NDJSON, also without a final line break', async () => {
    await imports(
      files.write('rows.jsonl', ndjsonOf(HOURS).trimEnd()),
      '--columns',
      'time=timestamp,open=o,high=h,low=l,close=c,volume=v',
    );
  });

  test('NDJSON may leave out fields in any line: the columns are those of all lines', async () => {
    const line = ({ openTime, open, high, low, close, volume }: Candle, i: number) =>
      JSON.stringify({
        time: openTime,
        open,
        high,
        low,
        close,
        ...(i > 0 && { volume }),
        ...(i === 400 && { note: 'x' }),
      });
    const file = files.write('sparse.ndjson.gz', HOURS.map(line).join('\n'));
    const all = HOURS.map((candle, i) => (i > 0 ? candle : { ...candle, volume: null }));
    const told = await importsAs(all, file);
    expect(told).toMatchObject({ added: 500, missing: { volume: 1 }, columns: [{ notUsed: ['note'] }] });
    await database.sql`truncate market.imported_candle, market.imported_series`;
    await importsAs(all, file, '--columns', 'volume=volume');
  });

  test('NDJSON of lists may have more values in later lines', async () => {
    const line = ({ openTime, open, high, low, close, volume }: Candle, i: number) =>
      JSON.stringify([openTime, open, high, low, close, ...(i > 0 ? [volume] : [])]);
    const all = HOURS.map((candle, i) => (i > 0 ? candle : { ...candle, volume: null }));
    await importsAs(all, files.write('lists.ndjson', HOURS.map(line).join('\n')));
  });

  test('may have descending rows, and may be given in any order', async () => {
    await imports(files.write('down.csv', csvOf([...HOURS].reverse())));
    await database.sql`truncate market.imported_candle, market.imported_series`;
    const parts = [300, 0, 100, 400, 200].map((from, i) =>
      files.write(`part-${i}.csv`, csvOf(HOURS.slice(from, from + 100))),
    );
    expect(await imports(parts[0]!, ...parts.slice(1))).toMatchObject({ added: 500 });
  });

  test('may have rows in any order', async () => {
    const mixed = HOURS.map((_, i) => HOURS[(i * 211) % HOURS.length]!);
    expect(await imports(files.write('mixed.csv', csvOf(mixed)))).toMatchObject({ added: 500 });
  });
});

describe('tables', () => {
  const columns: FileColumn[] = [
    { name: 'date', type: 'instant', nullable: false },
    ...PRICES.map((name): FileColumn => ({ name, type: 'double', nullable: false })),
  ];
  const rows = HOURS.map((candle) => [BigInt(candle.openTime) * 1_000n, ...PRICES.map((name) => candle[name])]);

  test.each<[Format, string, FileColumn['unit']]>([
    ['parquet', 'a.parquet', undefined],
    ['parquet', 'b.parquet', 'milliseconds'],
    ['arrow', 'a.feather', undefined],
    ['arrow', 'b.arrow', 'milliseconds'],
  ])('%s as %s', async (format, name, unit) => {
    const typed = columns.map((column) => (column.type === 'instant' && unit ? { ...column, unit } : column));
    const told = await imports(await writeTable(path.join(files.folder, name), format, typed, rows));
    expect(told).toMatchObject({ added: 500, times: { instant: 500 } });
  });

  test.each<Format>(['parquet', 'arrow', 'csv', 'ndjson'])(
    'one column of %s may have several roles',
    async (format) => {
      const two = [columns[0]!, { ...columns[4]!, name: 'px' }];
      const closes = HOURS.map(({ openTime, close }) => [BigInt(openTime) * 1_000n, close]);
      const file = await writeTable(path.join(files.folder, `px.${format}`), format, two, closes);
      const flat = HOURS.map(({ openTime, close }) => ({
        ...{ openTime, open: close, high: close, low: close, close, volume: null, marketCap: null },
      }));
      await importsAs(flat, file, '--columns', 'open=px,high=px,low=px,close=px');
    },
  );

  test.each(['timestamptz', 'timestamp', 'timestamp_s', 'timestamp_ns', 'bigint'])(
    'Parquet files of DuckDB may have times as %s, in folders that name the interval',
    async (type) => {
      const { folder } = files;
      const csv = files.write('duck.csv', csvOf(HOURS, type === 'bigint' ? String : (at) => iso(at).slice(0, 19)));
      const out = path.join(folder, `duck-${type}`);
      mkdirSync(path.join(out, 'interval=1h', 'quote=usd'), { recursive: true });
      const from = `(select "time"::${type} as "timestamp", open, high::decimal(18, 4) as high, low, close, volume::bigint as volume,
          case when volume > 0 then null end as market_cap from read_csv('${csv}', types = {'time': '${type === 'bigint' ? 'bigint' : 'timestamp'}'}))`;
      await (await openDuck()).rows(`copy ${from} to '${out}/interval=1h/quote=usd/part.parquet' (compression gzip)`);
      const argv = ['import', out, '--source', 'x', '--coin', 'btc-bitcoin', '--json'];
      const { code, out: text, err } = await runCommand(argv, { env: { DATABASE_URL: database.url } });
      expect([code, err]).toEqual([0, '']);
      expect(JSON.parse(text)).toMatchObject({ added: 500, times: type === 'bigint' ? { ms: 500 } : { instant: 500 } });
      const found =
        await database.sql`select open_time, open, close, volume, market_cap from market.imported_candle order by open_time`;
      expect(found).toEqual(
        HOURS.map(({ openTime, open, close, volume }) => ({ openTime, open, close, volume, marketCap: null })),
      );
    },
  );

  test.each([
    ['decimal(18, 8)', ['7061096177.30775837', '5282072943.71294312']],
    ['decimal(38, 18)', ['60576.390000000000000001', '35540688822283943545.123456789012345678']],
    ['decimal(9, 2)', []],
    ['decimal(38, 30)', ['0.000000000000000000000000000001']],
  ])('a %s of Parquet is the double that is nearest to it, as in a text', async (type, more) => {
    const digits = ['60576.39', '28368.52', '0.1', '1234567.89', '99999.99', '0', '7.77', ...more];
    const rows = digits.map((text, i) => `2024-01-01T0${i}:00,${text},${text},${text},${text},`);
    const csv = files.write('decimal.csv', [HEADER, ...rows].join('\n'));
    const file = path.join(files.folder, 'decimal.parquet');
    const types = PRICES.map((name) => `'${name}': '${type}'`).join(', ');
    const from = `(select * from read_csv('${csv}', types = {'time': 'timestamp', ${types}}))`;
    await (await openDuck()).rows(`copy ${from} to '${file}'`);
    const flat = digits.map((text, i) => {
      const price = Number(text);
      const openTime = Date.UTC(2024, 0, 1, i);
      return { openTime, open: price, high: price, low: price, close: price, volume: null, marketCap: null };
    });
    await importsAs(flat, file);
  });

  test.each([128, 256] as const)(
    'a decimal of Arrow with %i bits is the double that is nearest to it',
    async (bits) => {
      const file = path.join(files.folder, 'decimal.arrow');
      writeFileSync(file, inflateSync(Buffer.from(DECIMALS[bits], 'base64')));
      const flat = [60576.39, 35540688.822283946, null, 1e-18].map((at, i) => ({
        ...{ openTime: Date.UTC(2024, 0, 1, i), open: at, high: at, low: at, close: at, volume: null, marketCap: null },
      }));
      await importsAs(flat, file, '--columns', 'open=close,high=close,low=close');
    },
  );

  test('a column of a Parquet type that is not read is left out, even if its name means something', async () => {
    const csv = files.write(
      'interval.csv',
      csvOf(HOURS, (at) => iso(at).slice(0, 19)),
    );
    const file = path.join(files.folder, 'interval.parquet');
    const from = `(select *, interval '1 hour' as "interval" from read_csv('${csv}'))`;
    await (await openDuck()).rows(`copy ${from} to '${file}'`);
    expect(await imports(file)).toMatchObject({ added: 500 });
  });

  test('a damaged file is refused, and nothing is stored', async () => {
    const file = await writeTable(path.join(files.folder, 'cut.parquet'), 'parquet', columns, rows);
    appendFileSync(file, 'more');
    const { code, err } = await runCommand(['import', file, '--source', 'x', '--coin', 'BTC', '--interval', '1h'], {
      env: { DATABASE_URL: database.url },
    });
    expect(code).toBe(2);
    expect(err).toContain('cut.parquet is not a readable Parquet file');
  });

  test('a compressed Feather file, as pandas writes it, is refused, and the error says what to do', async () => {
    const file = path.join(files.folder, 'lz4.feather');
    writeFileSync(file, inflateSync(Buffer.from(COMPRESSED, 'base64')));
    const { code, err } = await runCommand(['import', file, '--source', 'x', '--coin', 'BTC', '--interval', '1h'], {
      env: { DATABASE_URL: database.url },
    });
    expect(code).toBe(2);
    expect(err).toContain(
      "lz4.feather is compressed, which cannot be read; write it uncompressed (to_feather(…, compression='uncompressed')",
    );
  });
});

/** Four closes with 18 digits behind the point, one of them null, written by pyarrow as decimal128 and decimal256, then packed to be short. */
const DECIMALS = {
  128: 'eNpzDAryDzdkYPgPBBsYGBgEGECAi4GHgY2BlYEDyAICRhYgnwHI4wCSLFCSgYEJiAOg7BNA/UCF7CD9ClAxEGAF4uSc/OJUsH4esG6QfjUgFgLbJwLkszGwg20QgNrPyAWiZZDMAdElmblAY9jA6tnAokxgd+8AskSg6ngYxKAu5wGbyMDMwiABpDIYYIALyIe4A+S3GKifWRgQAJmNDhTQaEYorQGlHZDUMmExiwVNH4OCosB1XqBvjmx5BqYzPPbeANE8dybfBNLccJ3Pr7THet66zAPhNWw6HDDlNcssjjRZrO5kROP/B8cPxK88wNBiA4eQACSMgK4yAZIqUPeB9B6A6oPRGUhmDcZ0cANIOoLTMgDOZjyi',
  256: 'eNpzDAryDzdkYPgPBDsYGBgEGECAi4GHgY2BlYEDyAICRhYgnwHI4wCSLFCSgYEJiEOg7CNA/UCF7CD9ClAxEGAF4uSc/OJUoEkCYL08YDNtgFgIbDbIThGgOBsDO9gWAagbGLlAtAySWSC6JDM3lQGoFqSeDSzKBCZh7heBquVhEIP6gAdsKgMzC4MEkFrBAANcQD4P2EUg98RA/c7CgADIbHSggEYzQmkNKN2ApJYJi1ksaPoYFBQFrvMCfXRkyzMwneGx9waI5rkz+SaQ5obrfH6lPdbz1mUe7O5q2HQ4YMprllkcabIM5ABGAvL/wfEMCSseYGizgUNYABLGQF9ZQMOABWrWCai+A1B6BZp5gzVNPQCSjuC8AQDtEj3Y',
};

/** One row, compressed with LZ4 by pyarrow, then packed to be short. */
const COMPRESSED =
  'eNrtVL1Ow0AM9iUhjdANGTp0QCJiYkViYCN9AETpQseTUEUqFYIEEgtD1ZmBR+jAxGMwMTIgnoOBvXz2uSI61CxdceVzzt93rn9y6Q+Hp+cHREtIaYhyYtkmSyltUYYniEmwJ+wyrImuBJzoA/oEddBD9Q8QC4dijtVTHyn/YlrfjmHnwonoocHtNrgxdFrf04vyntfEZFtNLit+/lTue4O7E3Drm/E1obYMmoo3Qs1d2Xekylx7YCK2RXD+bnLF6YNvoR3pBZNL5XAfR8bXwmKRre+klegUJ5LTgn7FwpNLXz3nTfPmGKbBS+RHfiZrZFdtEfiLAC8DvAxwF+AuwGcBPgvw1bxNwNt0n616sXfSc+U843/+Pnt9NC24yNdxO64d2PT8Ut49f48sJpjKVHM/e0zvCOu+vkuc80ATd2oXf+r9v3Ntd65C3/ryDfsB3Vx0qA==';
