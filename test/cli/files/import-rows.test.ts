/** Rows of an import that are skipped, or occur twice, and what is said about them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { HOUR } from '../../../src/core/interval.ts';
import { csvOf, giveCoins, HEADER, HOURS, temporaryFiles } from '../../lake/import/given-files.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let files: ReturnType<typeof temporaryFiles>;
beforeAll(async () => {
  database = await createTestDatabase();
  await giveCoins(database.sql, 'btc-bitcoin', 'uni-uniswap', 'uni-universe');
  files = temporaryFiles();
});
afterAll(async () => {
  files?.remove();
  await database?.drop();
});
beforeEach(async () => {
  await database.sql`truncate market.imported_candle, market.imported_series`;
});

const chandler = (...argv: string[]) =>
  runCommand(['import', ...argv, '--source', 'x', '--interval', '1h'], { env: { DATABASE_URL: database.url } });
const stored = () => database.sql`select from market.imported_candle`;

describe('unknown coins in an import', () => {
  const rowOf = (coin: string, hour: number) => `${coin},2024-01-01T0${hour}:00:00Z,1,2,1,2,5`;
  const fileOf = (name: string, coins: readonly string[]) =>
    files.write(name, [`coin,${HEADER}`, ...coins.map((coin, i) => rowOf(coin, i % 10))].join('\n'));

  test('are all named at once', async () => {
    const file = fileOf('some.csv', ['BTC', 'aaa-first', 'aaa-first', 'bbb-second', 'UNI', 'BTC']);
    for (const more of [[], ['--dry-run']]) {
      const { code, err } = await chandler(file, ...more);
      expect(code).toBe(2);
      expect(err).toContain(`all 3:\n  ${file}, record 3: no coin is called aaa-first\n`);
      expect(err).toContain(`\n  ${file}, record 5: no coin is called bbb-second\n`);
      expect(err).toContain(`\n  ${file}, record 6: UNI means several coins: uni-uniswap`);
      expect(err).toMatch(/\nCorrect them, or leave their rows out with --skip-wrong\.\n$/);
    }
    expect(await stored()).toHaveLength(0);
  });

  test('are named up to twenty', async () => {
    const { code, err } = await chandler(
      fileOf(
        'many.csv',
        Array.from({ length: 30 }, (_, i) => `nnn-${i}`),
      ),
    );
    expect([code, err.match(/no coin is called/g)?.length]).toEqual([2, 20]);
    expect(err).toContain('the first 20 of them:\n');
  });

  test('are skipped with --skip-wrong, and their rows are counted by name', async () => {
    const file = fileOf('skip.csv', ['BTC', 'aaa-first', 'aaa-first', 'bbb-second', 'BTC']);
    const { code, out } = await chandler(file, '--skip-wrong');
    expect(code).toBe(0);
    expect(out).toContain(
      '\n3 wrong rows:\n  2 × no coin is called aaa-first\n  1 × no coin is called bbb-second\nwhich:\n',
    );
    expect(out).toContain('x: 2 candles added, 3 wrong rows left out; 5 rows of 1 series read\n');
    expect(await stored()).toHaveLength(2);
  });

  test('may have a character that Postgres does not accept', async () => {
    const file = fileOf('zero.csv', ['BTC', 'b\0tc']);
    const { code, err } = await chandler(file);
    expect([code, err]).toEqual([
      2,
      expect.stringContaining(String.raw`${file}, record 3: no coin is called "b\u0000tc"`),
    ]);
    expect((await chandler(file, '--skip-wrong')).out).toContain('x: 1 candle added, 1 wrong row left out; ');
  });

  test('are not skipped with --skip-wrong when --coin names them', async () => {
    const { code, err } = await chandler(files.write('k.csv', csvOf(HOURS)), '--coin', 'btc-bitcoim', '--skip-wrong');
    expect(code).toBe(2);
    expect(err).toContain('error: no coin is called btc-bitcoim. ');
  });
});

test('a row that occurs twice in the files is not called already stored', async () => {
  const file = files.write('twice.csv', csvOf([...HOURS.slice(0, 5), HOURS[2]!]));
  expect((await chandler(file, '--coin', 'BTC')).out).toContain(
    '\nx: 5 candles added, 1 row twice in the file; 6 rows of 1 series read\n',
  );
  expect((await chandler(file, file, '--coin', 'BTC')).out).toContain(
    '\nx: 0 candles added, 5 rows already there, 7 rows twice in the files; 12 rows of 1 series read\n',
  );
});

test('one candle that differs is reported in the singular', async () => {
  await chandler(files.write('one.csv', csvOf(HOURS.slice(0, 1))), '--coin', 'BTC');
  const { code, out } = await chandler(files.write('o.csv', csvOf([{ ...HOURS[0]!, volume: 1 }])), '--coin', 'BTC');
  expect(code).toBe(1);
  expect(out).toContain('1 candle of x is there already with other values.\n');
});

test('one JSON list around all rows is refused, with a way to make lines of it', async () => {
  const rows = '{"time":1704067200,"open":1,"high":2,"low":1,"close":2}';
  for (const text of [`[${rows},${rows}]`, `[\n${rows}\n]`, '[[1704067200,1,2,1,2,5]]']) {
    const { code, err } = await chandler(files.write('list.ndjson', text), '--coin', 'BTC');
    expect(code).toBe(2);
    expect(err).toContain(
      "list.ndjson is one JSON array, not one row on each line; jq -c '.[]' splits it into lines.\n",
    );
  }
  const lists = files.write('lists.ndjson', '[1704067200,1,2,1,2,5]\n[1704070800,2,2,1,2,5]\n');
  expect((await chandler(lists, '--coin', 'BTC')).out).toContain('x: 2 candles added;');
});

test('times before 1970 are wrong', async () => {
  const file = files.write('old.csv', `${HEADER}\n0000-01-01T00:00:00Z,1,1,1,1,1\n1969-12-31T23:00:00Z,1,1,1,1,1\n`);
  const { code, out } = await chandler(file, '--coin', 'BTC');
  expect(code).toBe(1);
  expect(out).toContain('2 wrong rows:\n  2 × time lies before 1970\n');
});

test('a number in another base than ten, or too small, is refused with its field and what is right', async () => {
  const rows =
    '2024-01-01,1,2,1,0x2,5\n2024-01-01T01:00,1,2,1,2, 0B101\n2024-01-01T02:00,1,2,1e-400,2,5\n2024-01-01T03:00,1,2,1,2,0x0\n2024-01-01T04:00,1,2,1,2,\u00a00x10\n';
  const file = files.write('hex.csv', `${HEADER}\n${rows}`);
  const { code, out } = await chandler(file, '--coin', 'BTC');
  expect(code).toBe(1);
  expect(out).toContain('hex.csv, record 2: close is not a decimal number, like 16 or 1.6e1: "0x2"\n');
  expect(out).toMatch(/hex\.csv, record 3: volume is not a decimal number, like 16 or 1\.6e1: " ?0B101"\n/);
  expect(out).toContain('hex.csv, record 4: low is too small for a double: "1e-400"\n');
  for (const record of [5, 6]) expect(out).toContain(`hex.csv, record ${record}: volume is not a decimal number`);
  expect(await stored()).toHaveLength(0);
  const small = files.write('small.ndjson', '{"time":1704067200,"open":1e-400,"high":2,"low":0,"close":2}\n');
  expect((await chandler(small, '--coin', 'BTC')).out).toContain('open is not a number: "1e-400 (too small)"\n');
});

test('NA of R and NaN of pandas count as no value where a value is optional; NaN is no price', async () => {
  const rows = ['NA', 'nan', '', 'null', 'NaN', '7'].map((volume, i) => `2024-01-01T0${i}:00,1,2,1,2,${volume}`);
  const file = files.write('na.csv', [HEADER, ...rows, '2024-01-01T06:00,NA,NA,NA,NA,NA'].join('\n'));
  const { code, out } = await chandler(file, '--coin', 'BTC');
  expect([code, out]).toEqual([
    0,
    expect.stringContaining('\nrows without a value: open 1, high 1, low 1, close 1, volume 6\n'),
  ]);
  expect(
    await database.sql`select count(volume)::int as volumes, count(close)::int as closes, count(*)::int as rows from market.imported_candle`,
  ).toEqual([{ volumes: 1, closes: 6, rows: 7 }]);
  const price = files.write('nan.csv', `${HEADER}\n2024-01-01,nan,2,1,2,5\n2024-01-01T01:00,1,2,1,N/A,5\n`);
  const refused = await chandler(price, '--coin', 'BTC', '--replace');
  expect(refused.code).toBe(1);
  expect(refused.out).toContain('nan.csv, record 2: a price is negative or not finite: ["NaN",2,1,2,5,null]\n');
  expect(refused.out).toContain('nan.csv, record 3: close is not a number: "N/A"\n');
});

describe('a damaged row takes no right row with it', () => {
  const rows = (coin: string) => Array.from({ length: 3 }, (_, i) => `${coin},2024-01-01T0${i + 1}:00:00Z,1,2,1,2,5`);
  const damaged = 'uni-uniswap,2024-01-01T00:00:00Z,1,2,1,2,5,9';

  test.each<[string, readonly string[], readonly string[]]>([
    ['the first row of the file', [`coin,${HEADER}`, damaged, ...rows('uni-uniswap')], []],
    ['the first row of a coin', [`coin,${HEADER}`, ...rows('BTC'), damaged, ...rows('uni-uniswap')], []],
    [
      'the first row of a file of one coin',
      [`coin,${HEADER}`, damaged, ...rows('uni-uniswap')],
      ['--coin', 'uni-uniswap'],
    ],
  ])('%s', async (_, lines, more) => {
    const file = files.write('damaged.csv', lines.join('\n'));
    const right = lines.length - 2;
    const refused = await chandler(file, ...more);
    expect([refused.code, refused.out]).toEqual([1, expect.stringContaining('\n1 wrong row:\n')]);
    const { code, out } = await chandler(file, '--skip-wrong', ...more);
    expect([code, out]).toEqual([
      0,
      expect.stringContaining(`x: ${right} candles added, 1 wrong row left out; ${right + 1} rows of `),
    ]);
    expect(await stored()).toHaveLength(right);
  });
});

describe('a quote in a CSV file', () => {
  const HEAD = `name,${HEADER}`;
  const row = (name: string, hour: number) => `${name},2024-01-01T0${hour}:00:00Z,1,2,1,2,5`;

  test.each([',', ';'])('in the middle of a field is a letter of it (separator %s)', async (separator) => {
    const lines = [HEAD, row('5" disk', 0), row('x', 1), row('"a ""quoted"" name"', 2), row('6" by 7"', 3)];
    const broken = row('"two', 5).replace(',', `\nlines",`);
    const text = [...lines, broken, row('z', 6)].join('\n').replaceAll(',', separator);
    const { code, out } = await chandler(files.write('inch.csv', text), '--coin', 'BTC');
    expect([code, out]).toEqual([0, expect.stringContaining('\nx: 6 candles added; 6 rows of 1 series read\n')]);
  });

  test('before other text makes only its row wrong', async () => {
    const file = files.write('after.csv', [HEAD, row('"5" disk', 0), row('x', 1), row('"y"', 2)].join('\n'));
    const { code, out } = await chandler(file, '--coin', 'BTC', '--skip-wrong');
    expect(out).toContain('after.csv, record 2: has text after a closing quote\n');
    expect(out).toContain('\nx: 2 candles added, 1 wrong row left out; 3 rows of 1 series read\n');
    expect(code).toBe(0);
  });

  test('that is never closed is found before the whole file is read', async () => {
    const rows = Array.from({ length: 40_000 }, (_, i) => row('x', i % 10));
    const { code, err } = await chandler(
      files.write('open.csv', [HEAD, row('"5 disk', 0), ...rows].join('\n')),
      '--coin',
      'BTC',
    );
    expect([code, err]).toEqual([
      2,
      expect.stringContaining(
        'open.csv has a record of more than 1 MB, which begins with "\\"5 disk,2024-01-01T00:00:00Z,1,2,1,2,5\\n',
      ),
    ]);
    expect(err).toContain('; is a quote not closed?\n');
  });
});

test('rows of any number of series are stored by one COPY, so that no series waits for the one before', async () => {
  const { sql } = database;
  const lines = (coin: string, hours: number) =>
    Array.from({ length: hours }, (_, i) => `${coin},${Date.UTC(2020, 0, 1) + i * HOUR},1,2,1,2,5`);
  const file = files.write(
    'series.csv',
    [`coin,${HEADER}`, ...lines('BTC', 10_000), ...lines('uni-uniswap', 10_000), ...lines('uni-universe', 10)].join(
      '\n',
    ),
  );
  await sql`create sequence public.copies`;
  await sql`create function public.count_copy() returns trigger language plpgsql as $$ begin perform nextval('public.copies'); return null; end $$`;
  await sql`
    create trigger count_copy before insert on market.imported_candle for each statement execute function public.count_copy()`;
  const { code, out } = await chandler(file, '--json');
  await sql`drop trigger count_copy on market.imported_candle`;
  expect([code, JSON.parse(out)]).toMatchObject([0, { added: 20_010, series: { length: 3 } }]);
  expect(await sql`select last_value::int as copies, is_called from public.copies`).toEqual([
    { copies: 1, isCalled: true },
  ]);
  // The next import finds the stored rows.
  expect(JSON.parse((await chandler(file, '--json')).out)).toMatchObject({ added: 0, same: 20_010 });
  expect((await runCommand(['verify'], { env: { DATABASE_URL: database.url } })).code).toBe(0);
});

describe('a file that grows', () => {
  const DAYS = ['2024-06-01', '2024-06-02', '2024-06-03', '2024-06-04', '2024-06-05'];
  const fileOf = (closes: readonly number[]) =>
    files.write('days.csv', [HEADER, ...closes.map((close, i) => `${DAYS[i]},1,9,1,${close},5`)].join('\n'));
  /** As cron does, in the morning of the day of the last row. */
  const importOn = async (day: string, closes: readonly number[], ...argv: string[]) => {
    const clock = { now: () => Date.parse(`${day}T08:00:00Z`), sleep: async () => undefined };
    const env = { DATABASE_URL: database.url };
    const args = ['import', fileOf(closes), '--source', 'x', '--coin', 'BTC', '--interval', '24h', '--json', ...argv];
    const { code, out } = await runCommand(args, { env, clock });
    return { code, ...JSON.parse(out) };
  };
  const closes = async () =>
    (
      await database.sql<
        { close: number; isFinal: boolean }[]
      >`select close, is_final from market.imported_candle order by open_time`
    ).map(({ close, isFinal }) => `${close}${isFinal ? '' : '?'}`);

  test('can be imported each day: only candles that were not final may change', async () => {
    expect(await importOn('2024-06-03', [2, 3, 4])).toMatchObject({ code: 0, added: 3, updated: 0 });
    expect(await closes()).toEqual(['2', '3?', '4?']);
    expect(await importOn('2024-06-04', [2, 3, 5, 6])).toMatchObject({
      code: 0,
      added: 1,
      updated: 1,
      same: 2,
      replaced: 0,
    });
    expect(await closes()).toEqual(['2', '3', '5?', '6?']);
    // The first day is final, and the second has become final.
    for (const changed of [
      [8, 3, 5, 6, 7],
      [2, 8, 5, 6, 7],
    ])
      expect(await importOn('2024-06-05', changed)).toMatchObject({
        code: 1,
        outcome: 'other',
        added: 0,
        updated: 0,
        other: { slots: 1 },
      });
    expect(await closes()).toEqual(['2', '3', '5?', '6?']);
    expect(await importOn('2024-06-05', [2, 8, 5, 7, 7], '--replace')).toMatchObject({
      code: 0,
      added: 1,
      updated: 1,
      replaced: 1,
    });
    expect(await closes()).toEqual(['2', '8', '5', '7?', '7?']);
    expect((await runCommand(['verify'], { env: { DATABASE_URL: database.url } })).code).toBe(0);
    const later = ['import', fileOf([2, 8, 5, 8, 9]), '--source', 'x', '--coin', 'BTC', '--interval', '24h'];
    const { out } = await runCommand(later, { env: { DATABASE_URL: database.url } });
    expect(out).toContain(
      'x: 0 candles added, 2 updated that were not final, 3 rows already there; 5 rows of 1 series read\n',
    );
    expect(await closes()).toEqual(['2', '8', '5', '8', '9']);
  });
});
