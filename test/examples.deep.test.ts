/** The examples answer the same questions with each tool, from files of `chandler export`; tools that are not installed are skipped. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY } from '../src/core/interval.ts';
import { writeAsText, writeCandles } from '../src/store/candle/candle.ts';
import { recordCoins } from '../src/store/snapshot/coin.ts';
import { ensurePartitions } from '../src/store/upkeep/partition.ts';
import { runCommand } from './support/cli.ts';
import { createTestDatabase, type TestDatabase } from './support/database.ts';

const EXAMPLES = fileURLToPath(new URL('../examples', import.meta.url));
const FROM = Date.UTC(2024, 0, 1);
const TO = Date.UTC(2024, 7, 1);
const DAYS = (TO - FROM) / DAY;
const LARGEST = 3;

/** Daily prices of each coin. The first coin is the largest and dies; the last one grows into the first three. */
const COINS = [
  { id: 'a-alpha', cap: 9_000, growth: -0.005, dies: 130 },
  { id: 'b-beta', cap: 8_000, growth: 0.002, dies: DAYS },
  { id: 'c-gamma', cap: 7_000, growth: 0.001, dies: DAYS },
  { id: 'd-delta', cap: 4_000, growth: 0.009, dies: DAYS },
] as const;
/** Days known to have no candle, the last of them in the last thirty days; and days that were never requested. */
const EMPTY = [40, 41, 200];
/** The last day of March, which no coin has. */
const LACKING = 90;
/** The last days of this coin are not final, and not wanted yet. */
const PROVISIONAL = { coin: 'd-delta', days: 2 };
const UNASKED = { coin: 'c-gamma', from: 60, to: 63 };

const closeAt = (coin: (typeof COINS)[number], day: number) =>
  coin.cap / 100 + Math.sin(day * (coin.cap % 7)) * 3 + (coin.cap / 100) * coin.growth * day;
const isThere = (coin: (typeof COINS)[number], day: number) =>
  day < coin.dies &&
  day !== LACKING &&
  !(coin.id === 'b-beta' && EMPTY.includes(day)) &&
  !(coin.id === UNASKED.coin && day >= UNASKED.from && day < UNASKED.to);

const finalDaysOf = (coin: (typeof COINS)[number]) => (coin.id === PROVISIONAL.coin ? DAYS - PROVISIONAL.days : DAYS);

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await createTestDatabase();
  folder = mkdtempSync(path.join(tmpdir(), 'chandler-examples-'));
  await ensurePartitions(database.sql, '24h', { from: FROM, to: TO });
  for (const coin of COINS) await store(coin);
  await database.sql`select ops.adopt_evidence()`;
  await exportTo('files', 'csv');
});
afterAll(async () => {
  await database?.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function exportTo(files: string, csv: string): Promise<void> {
  for (const [out, ...options] of [[files], [csv, '--format', 'csv', '--layout', 'single']] as const) {
    const args = ['export', '--what', 'candles,coins,gaps,coverage', '--out', path.join(folder, out), ...options];
    const { code, err } = await runCommand(args, { env: { DATABASE_URL: database.url } });
    expect(code, err).toBe(0);
  }
}

async function store(coin: (typeof COINS)[number]): Promise<void> {
  const { sql } = database;
  const symbol = coin.id.slice(2).toUpperCase();
  await recordCoins(
    sql,
    [{ id: coin.id, name: symbol, symbol, rank: 1, is_new: false, is_active: true, type: 'coin' }],
    FROM,
  );
  const days = Array.from({ length: DAYS }, (_, day) => day).filter((day) => isThere(coin, day));
  const at = (day: number) => new Date(FROM + day * DAY).toISOString();
  const until = finalDaysOf(coin);
  const wanted = `{[${at(0)},${at(until)})}`;
  const covered =
    coin.id === UNASKED.coin ? `{[${at(0)},${at(UNASKED.from)}),[${at(UNASKED.to)},${at(DAYS)})}` : wanted;
  const [row] = await sql<{ id: number }[]>`
    insert into market.series (coin_id, quote, interval, wanted, covered, covered_candles)
    values (${coin.id}, 'usd', '24h', ${wanted}::tstzmultirange, ${covered}::tstzmultirange, ${days.filter((day) => day < until).length})
    returning id`;
  const close = days.map((day) => closeAt(coin, day));
  const candles = {
    openTime: days.map((day) => FROM + day * DAY),
    open: close,
    high: close.map((price) => price * 1.1),
    low: close.map((price) => price / 1.1),
    close,
    volume: close.map(() => 1_000),
    marketCap: close.map((price) => price * 100),
  };
  await writeCandles(sql, { id: row!.id, interval: '24h' }, writeAsText(candles), 'fresh');
}

type Answers = {
  readonly universe: readonly { month: string; largest_then: number; largest_today: number }[];
  readonly volatility: readonly { coin_id: string; volatility: number; returns: number }[];
  readonly as_of: readonly { coin_id: string; day: string; close: number; age_hours: number }[];
  readonly missing: readonly { coin_id: string; reason: string; days: number }[];
};

/** The answers, computed from what was stored, day by day. */
function expected(): Answers {
  const begins = [1, 2, 3, 4, 5, 6, 7].map((month) => (Date.UTC(2024, month, 1) - FROM) / DAY);
  const lastDay = (coin: (typeof COINS)[number], before: number) => {
    for (let day = before - 1; ; day--) if (isThere(coin, day)) return day;
  };
  // The last day, or the one before it if that is missing.
  const priceAt = (coin: (typeof COINS)[number], day: number) => closeAt(coin, lastDay(coin, day));
  const known = (day: number) =>
    COINS.filter((coin) => isThere(coin, day - 1) || isThere(coin, day - 2)).sort(
      (a, b) => priceAt(b, day) - priceAt(a, day),
    );
  const brought = (coins: readonly (typeof COINS)[number][], from: number, to: number) =>
    coins.reduce((sum, coin) => sum + priceAt(coin, to) / priceAt(coin, from) - 1, 0) / coins.length;
  const today = known(begins.at(-1)!).slice(0, LARGEST);
  const name = (day: number) => new Date(FROM + day * DAY).toISOString().slice(0, 10);
  const universe = begins.slice(0, -1).map((day, i) => ({
    month: name(day),
    largest_then: brought(known(day).slice(0, LARGEST), day, begins[i + 1]!),
    largest_today: brought(
      known(day).filter((coin) => today.includes(coin)),
      day,
      begins[i + 1]!,
    ),
  }));
  const volatility = COINS.map((coin) => {
    // Candles that are not final do not count.
    const days = Array.from({ length: finalDaysOf(coin) }, (_, day) => day).filter((day) => isThere(coin, day));
    const ends = days.filter((day) => day > days.at(-1)! - 30 && isThere(coin, day - 1));
    const returns = ends.map((day) => Math.log(closeAt(coin, day) / closeAt(coin, day - 1)));
    const mean = returns.reduce((sum, one) => sum + one, 0) / returns.length;
    const variance = returns.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (returns.length - 1);
    return { coin_id: coin.id, volatility: Math.sqrt(variance * 365), returns: returns.length };
  });
  const as_of = COINS.flatMap((coin) =>
    begins.slice(0, -1).map((day) => {
      // At noon of the next day, the candle of `day` is the newest one that has ended.
      const found = lastDay(coin, day + 1);
      return { coin_id: coin.id, day: name(day + 1), close: closeAt(coin, found), age_hours: (day - found) * 24 + 12 };
    }),
  );
  const missing = [
    { coin_id: 'a-alpha', reason: 'no candle', days: DAYS - 130 + 1 },
    { coin_id: 'b-beta', reason: 'no candle', days: EMPTY.length + 1 },
    { coin_id: UNASKED.coin, reason: 'no candle', days: 1 },
    { coin_id: UNASKED.coin, reason: 'not asked yet', days: UNASKED.to - UNASKED.from },
    { coin_id: PROVISIONAL.coin, reason: 'no candle', days: 1 },
  ];
  return { universe, volatility, as_of, missing };
}

/** Numbers that differ only by rounding are equal. */
function expectSame(found: Answers, hasCaps: boolean): void {
  const wanted = { ...expected(), ...(hasCaps ? {} : { universe: [] }) };
  expect(Object.keys(found).sort()).toEqual(Object.keys(wanted).sort());
  for (const name of Object.keys(wanted) as (keyof Answers)[]) {
    const rounded = wanted[name].map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([key, value]) => [key, typeof value === 'number' ? expect.closeTo(value, 9) : value]),
      ),
    );
    expect(found[name], name).toEqual(rounded);
  }
}

test('the last thirty days of a coin have a hole', () => {
  expect(expected().volatility.map(({ returns }) => returns)).toEqual([30, 28, 30, 30]);
});

test('the data distinguish the largest coins of then from those of today', () => {
  const { universe } = expected();
  const total = (of: 'largest_then' | 'largest_today') => universe.reduce((sum, row) => sum + row[of], 0);
  expect(total('largest_then')).toBeLessThan(total('largest_today') - 0.1);
});

/** The first Python that has these modules. */
function pythonWith(...modules: string[]): string | null {
  const names = [process.env.TEST_PYTHON, 'python3', '/usr/bin/python3'].filter((name) => name !== undefined);
  return names.find((name) => spawnSync(name, ['-c', `import ${modules.join(', ')}`]).status === 0) ?? null;
}

function rowsOf(csv: string): Record<string, string | number>[] {
  const [header, ...lines] = csv.trim().split('\n');
  const keys = header!.split(',');
  const parsed = (text: string) => (text !== '' && !Number.isNaN(Number(text)) ? Number(text) : text);
  return lines.map((line) => Object.fromEntries(line.split(',').map((text, i) => [keys[i]!, parsed(text)])));
}

const hasR = spawnSync('Rscript', ['--version']).status === 0;

/** A recording of candles has no market caps, like that of the demo. */
describe.each([
  ['with market caps', '', true],
  ['without', 'no-caps-', false],
] as const)('%s', (_name, prefix, hasCaps) => {
  beforeAll(async () => {
    if (hasCaps) return;
    await database.sql`update market.candle set market_cap = null`;
    await exportTo(`${prefix}files`, `${prefix}csv`);
  });

  test('DuckDB', async () => {
    const connection = await (await DuckDBInstance.create()).connect();
    const statements = readFileSync(path.join(EXAMPLES, 'questions.sql'), 'utf8')
      .replaceAll(/^--.*$/gm, '')
      .replaceAll("'files/", `'${folder}/${prefix}files/`)
      .split(';')
      .filter((statement) => statement.trim() !== '');
    const tables: unknown[] = [];
    for (const statement of statements) {
      const found = await connection.runAndReadAll(statement);
      if (/^\s*(set|create)\b/.test(statement)) continue;
      tables.push(found.getRowObjectsJS());
    }
    const [universe, volatility, as_of, missing] = tables;
    expectSame({ universe, volatility, as_of, missing } as Answers, hasCaps);
  });

  describe.each([
    ['pandas, on CSV', ['pandas'], 'questions_pandas.py', 'csv'],
    ['pandas, on Parquet', ['pandas', 'pyarrow'], 'questions_pandas.py', 'files'],
    ['Polars', ['polars'], 'questions_polars.py', 'files'],
  ] as const)('%s', (_, modules, script, files) => {
    const python = pythonWith(...modules);
    test.skipIf(python === null)('answers the same', () => {
      const args = ['-W', 'ignore', path.join(EXAMPLES, script), path.join(folder, prefix + files)];
      const found = JSON.parse(execFileSync(python!, args, { encoding: 'utf8' })) as Answers;
      expectSame(found, hasCaps);
      // These prices are not computed: they are those of the files, to the last digit.
      expect(found.as_of.map(({ close }) => close)).toEqual(expected().as_of.map(({ close }) => close));
    });
  });

  test.skipIf(spawnSync('psql', ['--version']).status !== 0)('Postgres', () => {
    const answers: [string, unknown][] = [];
    const statements = readFileSync(path.join(EXAMPLES, 'questions_postgres.sql'), 'utf8')
      .split(/^-- (?=\w+:)/m)
      .slice(1);
    for (const statement of statements) {
      const [name] = statement.split(':');
      const csv = execFileSync('psql', [database.url, '--csv', '-v', 'ON_ERROR_STOP=1', '-c', `-- ${statement}`], {
        encoding: 'utf8',
      });
      answers.push([name!, rowsOf(csv)]);
    }
    expectSame(Object.fromEntries(answers) as Answers, hasCaps);
  });

  test.skipIf(!hasR)('R', () => {
    const text = execFileSync('Rscript', [path.join(EXAMPLES, 'questions.R'), path.join(folder, `${prefix}csv`)], {
      encoding: 'utf8',
    });
    const answers = text
      .split(/^# /m)
      .slice(1)
      .map((block) => {
        const [name, ...lines] = block.trim().split('\n');
        return [name!.trim(), rowsOf(lines.join('\n'))];
      });
    expectSame(Object.fromEntries(answers) as Answers, hasCaps);
  });
});

test('in CI, every tool that Debian has is installed', () => {
  if (!process.env.CI) return;
  expect([pythonWith('pandas') !== null, hasR]).toEqual([true, true]);
});
