import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { datasets, exportTo, fillAll } from '../../lake/filled.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let folder: string;
let out: string;
let env: Record<string, string>;
beforeAll(async () => {
  database = await createTestDatabase();
  await fillAll(database.sql);
  folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-export-'));
  env = { DATABASE_URL: database.url };
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await database?.drop();
});
let count = 0;
beforeEach(() => {
  out = path.join(folder, `out-${count++}`);
});

const chandler = (...argv: string[]) => runCommand(['export', '--out', out, ...argv], { env });
const manifest = () => JSON.parse(readFileSync(path.join(out, 'manifest.json'), 'utf8'));

test('export shows the price first, writes the files, and says how to verify them', async () => {
  const { code, out: text, err } = await chandler();
  expect([code, err]).toEqual([0, '']);
  const [price, , written, root, check] = text.split('\n');
  expect(price).toMatch(
    /^candles, prices, coins as parquet \(hive\) to .*out-0: about 5,\d{3} rows, [\d.]+ kB, under 1 s$/,
  );
  expect(written).toMatch(/^.*out-0: 9 files, 5,\d{3} rows, [\d.]+ kB, as of 20\d\d-/);
  expect(root).toBe(`root ${manifest().root}`);
  expect(check).toBe(`chandler verify --files ${out} recounts them.`);
  const checked = await runCommand(['verify', '--files', out], { env });
  expect(checked.code).toBe(0);
  expect(checked.out).toMatch(
    /compared with the warehouse, months of series and files of histories: \d+ equal\nThe files match the manifest\.\n$/,
  );
  const again = await chandler();
  expect(again.out).toMatch(/written now: 1 file, 5 rows, [\d.]+ kB; the others had not changed/);
});

test('export --dry-run writes nothing', async () => {
  const { code, out: text } = await chandler('--dry-run');
  expect(code).toBe(0);
  expect(text.trimEnd().split('\n')).toHaveLength(1);
  expect(existsSync(out)).toBe(false);
});

test('export --json has the price and what was written', async () => {
  const { code, out: text } = await chandler(
    '--json',
    '--what',
    'candles',
    '--interval',
    '1h',
    '--coins',
    'btc-bitcoin',
  );
  expect(code).toBe(0);
  const told = JSON.parse(text);
  expect(told).toMatchObject({
    out,
    plan: { seconds: 1 },
    export: { root: manifest().root, files: 2, written: { files: 2 }, removed: [], at: manifest().at },
  });
  expect(told.plan.rows).toBe(told.export.rows);
  const dry = JSON.parse(
    (await chandler('--json', '--dry-run', '--what', 'candles', '--interval', '1h', '--coins', 'btc-bitcoin')).out,
  );
  expect(dry).toEqual({ out, plan: told.plan, export: null });
});

test('export selects coins, intervals of candles and of prices, times, and final rows', async () => {
  const { code } = await chandler(
    '--what',
    'candles,prices',
    '--coins',
    'btc-bitcoin,eth-ethereum',
    '--interval',
    '24h',
    '--from',
    '2023-12-01',
    '--to',
    '2024-04-01',
    '--final-only',
  );
  expect(code).toBe(0);
  const { files, series, coins, intervals, from, finalOnly } = manifest();
  expect([coins, intervals, from, finalOnly]).toEqual([
    ['btc-bitcoin', 'eth-ethereum'],
    ['24h', 'prices-1d'],
    '2023-12-01T00:00:00.000Z',
    true,
  ]);
  expect(files.map((file: { path: string }) => file.path)).toEqual([
    'candles/interval=24h/quote=usd/year=2023/part.parquet',
    'candles/interval=24h/quote=usd/year=2024/part.parquet',
    'prices/interval=1d/quote=usd/year=2023/part.parquet',
    'prices/interval=1d/quote=usd/year=2024/part.parquet',
  ]);
  expect(series.map((one: { series: string }) => one.series)).toEqual([
    'btc-bitcoin usd 24h',
    'eth-ethereum usd 24h',
    'btc-bitcoin usd prices-1d',
    'eth-ethereum usd prices-1d',
  ]);
  const [{ rows }] = await database.sql<[{ rows: number }]>`
    select count(*)::int as rows from market.candles where coin_id in ('btc-bitcoin', 'eth-ethereum') and interval = '24h' and is_final
      and open_time >= '2023-12-01Z' and open_time < '2024-04-01Z'`;
  expect(files[0].rows + files[1].rows).toBe(rows);
  expect(series[0].gaps.length).toBeGreaterThan(0);
  expect(series[0].gaps[0]).toEqual([expect.any(String), expect.any(String), expect.any(String), null]);
});

test('export warns on stderr of an interval that is only made of another one', async () => {
  const made = await chandler('--what', 'candles', '--interval', '6h');
  expect(made.code).toBe(0);
  expect(made.err).toBe(
    'warning: 6h candles of these coins are made of 1h ones; an export contains only what the upstream sent: export 1h\n',
  );
  const trial = await chandler('--what', 'candles', '--interval', '6h', '--from', '-30d', '--dry-run');
  expect(trial.err).toBe(made.err);
  out += '-stored';
  const stored = await chandler('--what', 'candles', '--interval', '24h,1h');
  expect(stored.err).toBe('');
  out += '-prices';
  const prices = await chandler('--what', 'prices', '--interval', '1d,2h');
  expect([prices.code, prices.err]).toEqual([0, 'warning: there are no 2h prices of these coins\n']);
});

test('export refuses a width that only prices have where it exports none, and names its own options', async () => {
  for (const width of ['2h', 'prices-1d']) {
    const refused = await chandler('--what', 'candles,coins', '--interval', width);
    expect(refused.code).toBe(2);
    expect(refused.err).toContain(
      `There are no ${width} candles; give 5m, 15m, 30m, 1h, 6h, 12h, 24h, or add prices to --what.`,
    );
  }
  expect(existsSync(out)).toBe(false);
});

test('export leaves other files in the folder alone, and names them on stderr', async () => {
  await chandler('--what', 'candles', '--interval', '24h');
  const extra = 'candles/interval=24h/quote=usd/extra.parquet';
  for (const name of ['note.txt', extra]) writeFileSync(path.join(out, name), 'mine');
  const { code, err } = await chandler('--what', 'candles', '--interval', '24h');
  expect(code).toBe(0);
  expect(err).toBe(
    `warning: ${out} has files that are not part of the export; a program that reads the whole folder reads them, too: ${extra}, note.txt\n`,
  );
  expect(readFileSync(path.join(out, extra), 'utf8')).toBe('mine');
});

test('export says in the singular that one file was removed', async () => {
  await chandler('--what', 'candles', '--interval', '24h');
  const { out: text } = await chandler('--what', 'candles', '--interval', '24h', '--from', '2024-01-01');
  expect(text).toContain('removed: 1 file that is no longer part of it\n');
});

test.each(['jesse', 'lean', 'freqtrade'] as const)('an export as %s has only final candles', async (layout) => {
  // An earlier version wrote such candles. The export updates the same folder.
  const format = layout === 'freqtrade' ? 'parquet' : 'csv';
  const before = {
    layout,
    format,
    coinIds: ['btc-bitcoin'],
    intervals: ['24h'],
    datasets: datasets('candles'),
  } as const;
  await exportTo(database, out, before);
  const all = manifest().files[0].rows;
  const { code, err } = await chandler('--layout', layout, '--interval', '24h', '--coins', 'btc-bitcoin');
  expect([code, err, manifest().finalOnly]).toEqual([0, '', true]);
  const [found] = await database.sql`
    select count(*)::int as rows, (count(*) filter (where is_final))::int as final
    from market.candles where coin_id = 'btc-bitcoin' and interval = '24h' and made_of is null`;
  expect(found!.final).toBeLessThan(found!.rows);
  // The price is that of the size which is then written.
  const again = path.join(folder, `again-${layout}`);
  const argv = ['export', '--out', again, '--layout', layout, '--interval', '24h', '--coins', 'btc-bitcoin', '--json'];
  const { plan, export: written } = JSON.parse((await runCommand(argv, { env })).out);
  expect(plan.bytes / written.bytes).toBeGreaterThan(0.25);
  expect(plan.bytes / written.bytes).toBeLessThan(4);
  expect([all, manifest().files[0].rows]).toEqual([found!.rows, found!.final]);
});

test('verify --files says what to do about differences: delete damaged files, keep whole ones, which may be the last copy', async () => {
  await chandler('--what', 'candles', '--interval', '24h');
  const verify = async () => (await runCommand(['verify', '--files', out], { env })).out.trimEnd().split('\n').at(-1);
  const { sql } = database;
  const [row] = await sql`
    with before as (
      select series_id, open_time, close from market.candles where interval = '24h' and is_final and made_of is null limit 1)
    update market.candle c set close = c.close * 1.001 from before b
    where c.series_id = b.series_id and c.open_time = b.open_time and c.interval = '24h' returning b.*`;
  try {
    const changed = await verify();
    expect(changed).toMatch(
      /^1 difference\. Keep the files that match the manifest .* CHANDLER_KEEP_CANDLES of the service\.$/,
    );
    writeFileSync(path.join(out, manifest().files[0].path), 'damaged');
    const damaged = await verify();
    expect(damaged).toMatch(/ differences?\. Remove the files that do not match the manifest: /);
  } finally {
    await sql`update market.candle set close = ${row!.close} where series_id = ${row!.seriesId} and open_time = ${row!.openTime} and interval = '24h'`;
  }
});

test('export shows a progress bar on a terminal', async () => {
  const { code, err } = await runCommand(['export', '--out', out, '--what', 'candles'], { env, columns: 100 });
  expect(code).toBe(0);
  expect(err).toMatch(/\d+% \[.*\] [\d,]+ of [\d,]+ rows/);
});

test('an interrupted export ends with 130, and says that the same command continues', async () => {
  const stop = new AbortController();
  const { code, err } = await runCommand(['export', '--out', out, '--what', 'all'], {
    env,
    signal: stop.signal,
    onOutput: () => stop.abort(Object.assign(new Error('interrupted'), { exitCode: 130 })),
  });
  expect(code).not.toBe(0);
  expect(err).toMatch(/Finished files stay: the same command continues from there\./);
});

describe('export refuses wrong usage in one sentence, ends with 2 and writes nothing', () => {
  test.each<[string[], RegExp]>([
    [['--format', 'xlsx'], /'xlsx' is invalid.*parquet, csv, ndjson, arrow/],
    [['--layout', 'hyve'], /'hyve' is invalid.*did you mean hive\?/],
    [['--what', 'candels'], /'candels' is invalid.*did you mean candles\?/],
    [['--interval', '2d'], /'2d' is invalid/],
    [['--what', 'candles', '--interval', '1d'], /There are no 1d candles; give 24h/],
    [['--coins', 'btc-bitcion'], /no series of btc-bitcion \(did you mean btc-bitcoin\?\)/],
    [['--coins', ''], /A coin id is empty/],
    [['--from', '2099-01-01'], /--from 2099-01-01 lies in the future/],
    [['--from', '2024-02-30'], /--from '2024-02-30' is not a time/],
    [['--from', '2024-02-01', '--to', '2024-01-01'], /--to 2024-01-01 is not after --from 2024-02-01/],
    [
      ['--layout', 'lean', '--format', 'parquet'],
      /The layout lean is read by its tool as csv, and not as parquet; leave out --format/,
    ],
    [['--layout', 'freqtrade', '--format', 'csv'], /give --format parquet or arrow/],
    [['--layout', 'jesse', '--what', 'prices'], /The layout jesse has only candles; leave out --what/],
    [['--layout', 'lean'], /LEAN supports only hours and days, not 5m; add --interval 1h,24h/],
    [['--out', 'ftp://bucket/x'], /--out ftp:\/\/bucket\/x, which is neither a folder nor s3:\/\/bucket\/prefix/],
    [['--out', 's3://key:secret@bucket'], /--out \(not shown\), which contains an @; leave out keys/],
    [['--out', ''], /--out is missing/],
    [['--out', '/../'], /--out: \/\.\.\/ is the root of the disk; name a folder, like \/files/],
    [['--layuot', 'hive'], /unknown option '--layuot'/],
  ])('%j', async (argv, message) => {
    const { code, err, out: text } = await chandler(...argv);
    expect(err).toMatch(message);
    expect(err.split('\n').filter((line) => line.startsWith('error: '))).toHaveLength(1);
    expect([code, text]).toEqual([2, '']);
    expect(existsSync(out)).toBe(false);
  });

  test('a file where the folder should be', async () => {
    writeFileSync(out, 'mine');
    const { code, err } = await chandler();
    expect(err).toMatch(/error: --out: .*out-\d+ is a file; name a folder/);
    expect(code).toBe(2);
    expect(readFileSync(out, 'utf8')).toBe('mine');
  });

  test.each<[string[], RegExp]>([
    [['--files', 'x', 'btc-bitcoin'], /--files compares with the whole export; leave out coins/],
    [['--files', 'x', '--since', '-1d'], /--files compares with the whole export/],
    [['--files', '/nowhere'], /--files: \/nowhere has no manifest\.json/],
  ])('verify %j', async (argv, message) => {
    const { code, err } = await runCommand(['verify', ...argv], { env });
    expect(err).toMatch(message);
    expect(code).toBe(2);
  });
});
