/** Rows of an import that are left out, or stand twice: what is said of them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
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

describe('coins that are not known', () => {
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

  test('or the first twenty', async () => {
    const { code, err } = await chandler(
      fileOf(
        'many.csv',
        Array.from({ length: 30 }, (_, i) => `nnn-${i}`),
      ),
    );
    expect([code, err.match(/no coin is called/g)?.length]).toEqual([2, 20]);
    expect(err).toContain('the first 20 of them:\n');
  });

  test('--skip-wrong leaves out their rows, and counts them by name', async () => {
    const file = fileOf('skip.csv', ['BTC', 'aaa-first', 'aaa-first', 'bbb-second', 'BTC']);
    const { code, out } = await chandler(file, '--skip-wrong');
    expect(code).toBe(0);
    expect(out).toContain(
      '\n3 wrong rows:\n  2 × no coin is called aaa-first\n  1 × no coin is called bbb-second\nwhich:\n',
    );
    expect(out).toContain('x: 2 candles added, 3 wrong rows left out; 5 rows of 1 series read\n');
    expect(await stored()).toHaveLength(2);
  });

  test('--skip-wrong does not help when --coin is unknown', async () => {
    const { code, err } = await chandler(files.write('k.csv', csvOf(HOURS)), '--coin', 'btc-bitcoim', '--skip-wrong');
    expect(code).toBe(2);
    expect(err).toContain('error: no coin is called btc-bitcoim. ');
  });
});

test('a row twice in the files is not called already there', async () => {
  const file = files.write('twice.csv', csvOf([...HOURS.slice(0, 5), HOURS[2]!]));
  expect((await chandler(file, '--coin', 'BTC')).out).toContain(
    '\nx: 5 candles added, 1 row twice in the file; 6 rows of 1 series read\n',
  );
  expect((await chandler(file, file, '--coin', 'BTC')).out).toContain(
    '\nx: 0 candles added, 5 rows already there, 7 rows twice in the files; 12 rows of 1 series read\n',
  );
});

test('one candle that differs is said in the singular', async () => {
  await chandler(files.write('one.csv', csvOf(HOURS.slice(0, 1))), '--coin', 'BTC');
  const { code, out } = await chandler(files.write('o.csv', csvOf([{ ...HOURS[0]!, volume: 1 }])), '--coin', 'BTC');
  expect(code).toBe(1);
  expect(out).toContain('1 candle of x is there already with other values.\n');
});

test('one JSON list around all rows is refused with what makes lines of it', async () => {
  const rows = '{"time":1704067200,"open":1,"high":2,"low":1,"close":2}';
  for (const text of [`[${rows},${rows}]`, `[\n${rows}\n]`, '[[1704067200,1,2,1,2,5]]']) {
    const { code, err } = await chandler(files.write('list.ndjson', text), '--coin', 'BTC');
    expect(code).toBe(2);
    expect(err).toContain("list.ndjson is one JSON list, and not a row on each line; jq -c '.[]' makes lines of it.\n");
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
