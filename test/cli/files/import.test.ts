import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { formatInstant } from '../../../src/core/format.ts';
import { HOUR } from '../../../src/core/interval.ts';
import { csvLines, csvOf, giveCoins, HOURS, ndjsonOf, temporaryFiles } from '../../lake/import/given-files.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let files: ReturnType<typeof temporaryFiles>;
let env: Record<string, string>;
beforeAll(async () => {
  database = await createTestDatabase();
  await giveCoins(database.sql, 'btc-bitcoin', 'eth-ethereum', 'uni-uniswap', 'uni-universe');
  files = temporaryFiles();
  env = { DATABASE_URL: database.url };
});
afterAll(async () => {
  files?.remove();
  await database?.drop();
});
beforeEach(async () => {
  await database.sql`truncate market.imported_candle, market.imported_series, ops.audit`;
});

const chandler = (...argv: string[]) => runCommand(['import', ...argv], { env });
const bitcoin = ['--source', 'binance', '--coin', 'BTC', '--interval', '1h'];
const imported = async (...argv: string[]) => {
  const { code, out, err } = await chandler(...argv, '--json');
  expect([code, err]).toEqual([0, '']);
  return JSON.parse(out);
};
const stored = () =>
  database.sql`select * from market.candles_all where source <> 'upstream' order by source, coin_id, open_time`;
const differences = async () => (await runCommand(['verify'], { env })).code;

test('import stores exactly the klines of the file, and says how it read them', async () => {
  const file = files.write('klines.csv', csvOf(HOURS));
  const { code, out, err } = await chandler(file, ...bitcoin);
  expect([code, err]).toEqual([0, '']);
  expect(out).toMatch(
    /^1 file, [\d.]+ kB, into source binance\nread: time, open, high, low, close, volume\ntimes: numbers of milliseconds\n\nbinance: 500 candles added; 500 rows of 1 series read\n/,
  );
  const rows = await stored();
  expect(rows).toHaveLength(HOURS.length);
  for (const [i, row] of rows.entries()) {
    const { openTime, open, high, low, close, volume } = HOURS[i]!;
    expect(row).toEqual({
      ...{ source: 'binance', coinId: 'btc-bitcoin', symbol: 'BTC', quote: 'usd', interval: '1h' },
      ...{ openTime, closeTime: openTime + HOUR - 1_000, open, high, low, close, volume, marketCap: null },
      ...{ isFinal: true, madeOf: null },
    });
  }
  const [series] = await database.sql`select * from market.imported_series`;
  expect(series).toMatchObject({
    ...{ candles: 500, firstOpenTime: HOURS[0]!.openTime, lastOpenTime: HOURS.at(-1)!.openTime },
    digest: (await digestOf())[0]!.digest,
  });
  expect(await database.sql`select from market.candles`).toHaveLength(0);
  expect(await database.sql`select from market.series`).toHaveLength(0);
  const [audit] = await database.sql`select command, message, ended_at from ops.audit`;
  expect(audit).toMatchObject({ command: `import ${file} ${bitcoin.join(' ')}`, message: null });
});

/** By the formula of market.series. */
const digestOf = () =>
  database.sql<{ digest: string }[]>`
  select mod(sum(market.candle_hash(open_time, open, high, low, close, volume, market_cap)::numeric), 18446744073709551616) as digest
  from market.imported_candle`.then((rows) =>
    rows.map(({ digest }) => ({ digest: Number(BigInt.asIntN(64, BigInt(digest))) })),
  );

test('importing the same files again changes nothing; different files are refused, or replace the rows with the option for it', async () => {
  const file = files.write('again.csv', csvOf(HOURS));
  await imported(file, ...bitcoin);
  const before = await database.sql`select * from market.imported_series`;
  expect(await imported(file, ...bitcoin)).toMatchObject({ outcome: 'stored', added: 0, same: 500, replaced: 0 });
  expect(await database.sql`select * from market.imported_series`).toEqual(before);

  const changed = HOURS.map((candle, i) => (i < 3 ? { ...candle, volume: candle.volume! + 1 } : candle));
  const other = files.write('other.csv', csvOf(changed));
  const refused = await chandler(other, ...bitcoin);
  expect(refused.code).toBe(1);
  expect(refused.out).toContain('3 candles of binance are there already with other values.\n');
  expect(refused.out).toContain(
    `other.csv, record 2: btc-bitcoin 1h usd at ${formatInstant(HOURS[0]!.openTime)} has volume ${HOURS[0]!.volume}, in the file ${changed[0]!.volume}\n`,
  );
  expect(refused.out).toContain('Nothing was stored. --replace replaces them.');
  expect(await database.sql`select * from market.imported_series`).toEqual(before);

  expect(await imported(other, ...bitcoin, '--replace')).toMatchObject({ added: 0, same: 497, replaced: 3 });
  expect((await stored()).map(({ volume }) => volume)).toEqual(changed.map(({ volume }) => volume));
  expect(await differences()).toBe(0);
});

test('import says which columns it reads as what, and which it does not use', async () => {
  const text = (name: string, header: string) =>
    files.write(name, `${header}\n2024-01-01T00:00:00Z,BTC/USD,1,2,1,2,5\n`);
  const named = text('named.csv', 'date,symbol,open,high,low,close,Volume BTC');
  const { out } = await chandler(named, ...bitcoin, '--dry-run');
  expect(out).toContain('\nread: time ← date, open, high, low, close; not used: symbol, Volume BTC\ntimes: ');
  const twin = text('twin.csv', 'date,symbol,open,high,low,close,Volume BTC');
  const bare = files.write('nameless.csv', '1704067200,1,2,1,2,5,6\n');
  const told = await imported(named, twin, ...bitcoin, '--dry-run');
  const read = { time: 'date', open: 'open', high: 'high', low: 'low', close: 'close' };
  expect(told.columns).toEqual([{ read, notUsed: ['symbol', 'Volume BTC'], files: [named, twin] }]);
  const twice = files.write('twice.csv', 'date,open,high,low,close,volume,volume\n2024-01-01,1,2,1,2,5,6\n');
  expect((await chandler(twice, ...bitcoin, '--dry-run')).out).toContain('close, volume; not used: volume\n');
  const numbered = await chandler(bare, ...bitcoin, '--dry-run', '--no-header');
  expect(numbered.out).toContain(
    'read: time ← column 1, open ← column 2, high ← column 3, low ← column 4, close ← column 5, volume ← column 6; not used: column 7\n',
  );
});

test('--no-header is about CSV files: columns that have names are read by them', async () => {
  mkdirSync(path.join(files.folder, 'mixed'));
  files.write('mixed/a.csv', '1704067200,1,3,1,2,5\n');
  files.write('mixed/b.ndjson', '{"time":1704070800,"close":2,"high":3,"low":1,"open":1,"volume":5}\n');
  files.write('mixed/c.ndjson', '[1704074400,1,3,1,2,5]\n');
  await imported(path.join(files.folder, 'mixed'), ...bitcoin, '--no-header');
  expect((await stored()).map(({ open, close }) => [open, close])).toEqual([
    [1, 2],
    [1, 2],
    [1, 2],
  ]);
});

test('a folder called interval=50% is a folder like any other', async () => {
  mkdirSync(path.join(files.folder, 'interval=50%'));
  const file = files.write('interval=50%/a.csv', csvOf(HOURS.slice(0, 3)));
  expect(await imported(file, ...bitcoin)).toMatchObject({ added: 3 });
});

test('import does not take a title or an address above the header as the header', async () => {
  const titled = files.write('titled.csv', `https://www.example.com\n\n${csvOf(HOURS.slice(0, 3))}`);
  expect(await imported(titled, ...bitcoin)).toMatchObject({ added: 3 });
  expect((await stored()).map(({ openTime }) => openTime)).toEqual(HOURS.slice(0, 3).map(({ openTime }) => openTime));
  const wrong = files.write('wrong.csv', 'a title\ntime,open,high,low,close\n1704067200,1,2,1\n');
  expect((await chandler(wrong, ...bitcoin)).out).toContain('wrong.csv, record 3: has 4 fields, but the header has 5');
  const alone = files.write('alone.csv', 'a title\nof nothing\n');
  expect((await chandler(alone, ...bitcoin)).err).toContain(
    'has the columns a title, but Chandler recognizes none as time',
  );
});

test('import adds rows at both ends of what is stored', async () => {
  await imported(files.write('middle.csv', csvOf(HOURS.slice(100, 200))), ...bitcoin);
  expect(await imported(files.write('around.csv', csvOf(HOURS)), ...bitcoin)).toMatchObject({ added: 400, same: 100 });
  const [series] = await database.sql`select candles, first_open_time, last_open_time from market.imported_series`;
  expect(series).toEqual({
    ...{ candles: 500, firstOpenTime: HOURS[0]!.openTime, lastOpenTime: HOURS.at(-1)!.openTime },
  });
  expect(await differences()).toBe(0);
});

test('one wrong row stops an import, which says which row, how many, and why', async () => {
  const lines = csvLines(HOURS, String);
  const wrong = (i: number, change: (fields: string[]) => void) => {
    const fields = lines[i]!.split(',');
    change(fields);
    lines[i] = fields.join(',');
  };
  wrong(1, (f) => (f[0] = String(Number(f[0]) + 1)));
  wrong(2, (f) => (f[1] = '1'));
  wrong(3, (f) => (f[4] = '-1'));
  wrong(4, (f) => (f[1] = 'much'));
  wrong(5, (f) => (f[0] = 'tomorrow'));
  wrong(6, (f) => (f[0] = String(Date.UTC(2200, 0, 1))));
  wrong(7, (f) => f.pop());
  for (let i = 10; i < 40; i++) wrong(i, (f) => (f[3] = String(Number(f[2]) + 1)));
  const file = files.write('wrong.csv', [`time,open,high,low,close,volume`, ...lines].join('\n'));
  const { code, out } = await chandler(file, ...bitcoin);
  expect(code).toBe(1);
  expect(out).toContain('\n37 wrong rows:\n  30 × high is below low\n');
  expect(out).toContain('  1 × time is not on the 1h grid\n');
  expect(out).toContain(', record 4: open or close is below low: [1,');
  expect(out).toContain(', record 5: a price is negative or not finite: [');
  expect(out).toContain(', record 6: open is not a number: "much"\n');
  expect(out).toContain(', record 7: time is not a valid time: "tomorrow"\n');
  expect(out).toContain(', record 8: time lies in the future: "2200-01-01T00:00:00.000Z"\n');
  expect(out).toContain(', record 9: has 5 fields, but the first record has 6\n');
  expect(out.match(/, record \d+: /g)).toHaveLength(20);
  expect(out).toMatch(/Nothing was stored\. Correct the files, or leave these rows out with --skip-wrong\.\n$/);
  expect(await database.sql`select from market.imported_series`).toHaveLength(0);
  expect(await database.sql`select from market.imported_candle`).toHaveLength(0);
  const told = await imported(file, ...bitcoin, '--skip-wrong');
  expect(told).toMatchObject({ outcome: 'stored', added: 463, wrong: { count: 37 } });
  expect(told.wrong.first).toHaveLength(20);
  expect(await database.sql`select from market.imported_candle`).toHaveLength(463);
  expect(await differences()).toBe(0);
});

test('two equal rows of a slot are one; two different rows of a slot are both wrong, wherever they stand', async () => {
  const twice = [...csvLines(HOURS.slice(0, 10), String), ...csvLines(HOURS.slice(5, 6), String)];
  const [first, second] = [
    files.write('a.csv', `time,open,high,low,close,volume\n${twice.join('\n')}\n`),
    files.write('b.csv', csvOf([{ ...HOURS[3]!, volume: 1 }, { ...HOURS[3]!, volume: 2 }, HOURS[4]!])),
  ];
  expect(await imported(first, ...bitcoin)).toMatchObject({ added: 10, same: 0, twice: 1 });
  await database.sql`truncate market.imported_candle, market.imported_series`;
  const refused = await chandler(first, second, ...bitcoin);
  expect(refused.code).toBe(1);
  expect(refused.out).toContain('3 wrong rows:\n  3 × two different rows for one open time\n');
  expect(refused.out).toContain('b.csv, record 2: two different rows for one open time\n');
  expect(await imported(first, second, ...bitcoin, '--skip-wrong')).toMatchObject({
    added: 9,
    ...{ same: 0, twice: 2 },
    wrong: { count: 3 },
  });
  expect((await stored()).map(({ openTime }) => openTime)).toEqual(
    HOURS.slice(0, 10)
      .filter((_, i) => i !== 3)
      .map(({ openTime }) => openTime),
  );
  expect(await differences()).toBe(0);
});

test('import --dry-run checks all rows and stores nothing', async () => {
  const { code, out } = await chandler(files.write('dry.csv', csvOf(HOURS)), ...bitcoin, '--dry-run');
  expect(code).toBe(0);
  expect(out).toContain(
    '500 rows of 1 series checked. Nothing was stored, and rows were not compared with each other or with stored candles.\n',
  );
  expect(await database.sql`select from market.imported_series`).toHaveLength(0);
  expect(await database.sql`select from ops.audit`).toHaveLength(0);
  const wrong = files.write('dry-wrong.csv', csvOf([{ ...HOURS[0]!, low: 1e9 }]));
  expect((await chandler(wrong, ...bitcoin, '--dry-run')).code).toBe(1);
});

describe('import refuses wrong usage and says what would be right', () => {
  test.each<[string, string[], string]>([
    ['no source', ['klines.csv'], '--source is missing'],
    ['the source upstream', ['klines.csv', '--source', 'Upstream'], 'and not upstream'],
    ['no file', ['--source', 'x'], 'Name the files to import'],
    ['a file that is not there', ['nowhere.csv', '--source', 'x'], 'there is no file or folder nowhere.csv'],
    [
      'an address',
      ['s3://bucket/a', '--source', 'x'],
      's3://bucket/a is an address, but import reads only files and folders',
    ],
    [
      'a column that is not there',
      ['klines.csv', ...bitcoin, '--columns', 'volume=volme'],
      'no column volme for volume; did you mean volume?',
    ],
    [
      'a role that is not there',
      ['klines.csv', ...bitcoin, '--columns', 'tim=a'],
      'There is no tim (did you mean time?)',
    ],
    [
      'a width of prices',
      ['klines.csv', '--source', 'x', '--coin', 'BTC', '--interval', 'prices-1d'],
      'There are no prices-1d candles; give 5m, 15m, 30m, 1h, 6h, 12h, 24h.',
    ],
    [
      'a usual name of a width',
      ['klines.csv', '--source', 'x', '--coin', 'BTC', '--interval', '1d'],
      'There are no 1d candles; give 24h.',
    ],
    [
      'a number beyond the columns',
      ['none-letters.csv', ...bitcoin, '--columns', 'time=1,open=2,high=3,low=4,close=9'],
      'none-letters.csv has no column 9 for close; it has a, b, c, d, e',
    ],
    [
      'two columns of one role',
      ['klines.csv', ...bitcoin, '--columns', 'close=5,close=4'],
      '--columns names two columns for close; leave out one of them.',
    ],
    ['an empty coin', ['klines.csv', '--source', 'x', '--coin', '', '--interval', '1h'], 'A coin id is empty'],
    ['an empty file', ['none.csv', ...bitcoin], 'none.csv has no columns: it is empty, or its first row is'],
    [
      'a text that is no NDJSON',
      ['klines.csv', ...bitcoin, '--format', 'ndjson'],
      'klines.csv is not NDJSON: its first line is neither an object nor a list',
    ],
    ['no coin', ['klines.csv', '--source', 'x', '--interval', '1h'], 'the coin of the rows in'],
    ['no interval', ['klines.csv', '--source', 'x', '--coin', 'BTC'], 'the interval of the candles in'],
    [
      'an unknown coin',
      ['klines.csv', '--source', 'x', '--coin', 'btc-bitcoim', '--interval', '1h'],
      'klines.csv, record 2: no coin is called btc-bitcoim. ',
    ],
    ['an ambiguous coin', ['klines.csv', '--source', 'x', '--coin', 'UNI', '--interval', '1h'], 'uni-uniswap'],
    ['a format that is not told', ['klines.txt', ...bitcoin], 'is not clear from its name'],
    ['no header', ['bare.csv', ...bitcoin], 'its first record looks like data; give --no-header'],
    [
      'line ends of old Macintoshs',
      ['none-feeds.csv', ...bitcoin],
      "ends its lines with a carriage return alone; tr '\\r' '\\n' rewrites it",
    ],
    ['Parquet that is none', ['none.parquet', ...bitcoin], 'is not a readable Parquet file'],
    ['Arrow that is none', ['none.arrow', ...bitcoin], 'none.arrow is empty, or is no Arrow file'],
    [
      'a device',
      ['/dev/null', ...bitcoin, '--format', 'csv'],
      '/dev/null is not a file but a pipe or a device, which can be read only once',
    ],
    ['gzip that is none', ['none.csv.gz', ...bitcoin], 'is not a readable gzip file'],
  ])('%s', async (_, argv, message) => {
    files.write('klines.csv', csvOf(HOURS));
    files.write('klines.txt', csvOf(HOURS));
    files.write('none.parquet', 'PAR1 and no more than that, PAR1');
    files.write('bare.csv', csvLines(HOURS, String).join('\n'));
    const { writeFileSync } = await import('node:fs');
    writeFileSync(`${files.folder}/none.csv.gz`, 'no gzip at all');
    writeFileSync(`${files.folder}/none.csv`, '');
    writeFileSync(`${files.folder}/none.arrow`, '');
    writeFileSync(`${files.folder}/none-feeds.csv`, csvOf(HOURS).replaceAll('\n', '\r'));
    writeFileSync(`${files.folder}/none-letters.csv`, 'a,b,c,d,e\n2024-01-01,1,2,0.5,1.5\n');
    const named = argv.map((word) => (/^(klines|none|bare)/.test(word) ? `${files.folder}/${word}` : word));
    const { code, err } = await chandler(...named);
    expect(err).toContain(message);
    expect(code).toBe(2);
    expect(await database.sql`select from market.imported_series`).toHaveLength(0);
  });
});

test('import refuses an interval or a quote that contradicts the column or the folder of the rows', async () => {
  const lines = (interval: string, quote: string) =>
    `2024-01-01,1,2,0.5,1,${interval},${quote}\n2024-01-02,1,2,0.5,1,,\n`;
  const file = (name: string, interval: string, quote: string) =>
    files.write(name, `time,open,high,low,close,interval,quote\n${lines(interval, quote)}`);
  const given = ['--source', 'x', '--coin', 'BTC', '--quote', 'usd'];
  const wide = await chandler(file('wide.csv', '1d', 'usd'), ...given, '--interval', '6h');
  expect([wide.code, wide.out]).toEqual([
    1,
    expect.stringContaining('record 2: its interval is not 6h, which --interval'),
  ]);
  expect(wide.out).toContain('\nread: time, open, high, low, close, interval, quote\n');
  const other = await chandler(file('other.csv', '6h', 'BTC'), ...given, '--interval', '6h');
  expect([other.code, other.out]).toEqual([
    1,
    expect.stringContaining('record 2: its quote is not usd, which --quote'),
  ]);
  // Other spellings, and columns that only have the name of a role, contradict nothing.
  const trial = await chandler(file('same.csv', 'daily', '12.5'), ...given, '--interval', '24h', '--dry-run');
  expect([trial.code, trial.err]).toEqual([0, '']);
  mkdirSync(path.join(files.folder, 'interval=24h'), { recursive: true });
  const inside = files.write('interval=24h/rows.csv', 'time,open,high,low,close\n2024-01-01,1,2,0.5,1\n');
  const folder = await chandler(inside, ...given, '--interval', '6h');
  expect([folder.code, folder.err]).toEqual([
    2,
    expect.stringContaining('is in a folder interval=24h, but --interval is 6h'),
  ]);
  expect(await database.sql`select from market.imported_series`).toHaveLength(0);
});

test('import reads coin, interval and quote from a column, and keeps sources apart', async () => {
  const lines = HOURS.slice(0, 4).map(
    ({ openTime: t }, i) =>
      `${['BTC', 'eth-ethereum'][i % 2]},${['1h', '1d'][i >> 1]},BTC,${i >> 1 ? Date.UTC(2024, 0, 1 + i) : t},1,2,0.5,1`,
  );
  const file = files.write('mixed.csv', `Symbol,Interval,Quote,Open Time,Open,High,Low,Close\n${lines.join('\n')}\n`);
  expect(await imported(file, '--source', 'one')).toMatchObject({ added: 4 });
  expect(await imported(file, '--source', 'two')).toMatchObject({ added: 4 });
  const { out } = await chandler('list');
  expect(out).toMatch(/source +coins +intervals +candles/);
  expect(out).toMatch(/one +2 +1h, 24h btc +4 /);
  const listed = JSON.parse((await chandler('list', '--json')).out);
  expect(listed.map(({ source, candles }: { source: string; candles: number }) => [source, candles])).toEqual([
    ['one', 4],
    ['two', 4],
  ]);
  const dropped = await chandler('drop', 'one', '--yes', '--json');
  expect([dropped.code, JSON.parse(dropped.out)]).toEqual([0, { source: 'one', series: 4, candles: 4 }]);
  expect((await stored()).map(({ source }) => source)).toEqual(['two', 'two', 'two', 'two']);
  expect((await chandler('drop', 'twoo', '--yes')).err).toContain('There is no source twoo; did you mean two?');
  expect((await chandler('drop', 'two')).err).toContain('This removes 4 candles of 4 series; give --yes');
  expect(await differences()).toBe(0);
});

test('import reads NDJSON and files without a header, each also as .gz', async () => {
  expect(await imported(files.write('k.ndjson.gz', ndjsonOf(HOURS)), ...bitcoin)).toMatchObject({
    added: 500,
    times: { text: 500 },
  });
  const bare = files.write('bare.csv.gz', `${csvLines(HOURS, (at) => at * 1_000).join('\r\n')}\r\n`);
  expect(await imported(bare, ...bitcoin, '--no-header')).toMatchObject({ same: 500, times: { us: 500 } });
});

test('verify names what differs in an imported series, with its source', async () => {
  await imported(files.write('v.csv', csvOf(HOURS)), ...bitcoin);
  const right = await runCommand(['verify'], { env });
  expect(right.code).toBe(0);
  expect(right.out).toContain('Imported: 1 series, 500 candles, recounted as well.\n');
  await database.sql`update market.imported_candle set close = close + 1e-9 where open_time = ${HOURS[7]!.openTime}::timestamptz`;
  const { code, out } = await runCommand(['verify'], { env });
  expect(code).toBe(1);
  expect(out).toContain(
    'market.imported_series: btc-bitcoin 1h usd of source binance has other candles than the import',
  );
  const json = JSON.parse((await runCommand(['verify', '--json'], { env })).out);
  expect(json.at(-1).differences).toHaveLength(1);
  await database.sql`delete from market.imported_candle where open_time = ${HOURS[0]!.openTime}::timestamptz`;
  expect((await runCommand(['verify'], { env })).out).toMatch(
    /btc-bitcoin 1h usd of source binance has 499 candles, but 500 were imported/,
  );
  await database.sql`update market.imported_candle set series_id = series_id + 1`;
  expect((await runCommand(['verify'], { env })).out).toContain('market.imported_candle: 499 rows of series');
});
