/** Retention with a lake in rare situations: a killed removal, changes meanwhile, attestations, and candles that return. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { CandleColumns } from '../../../src/core/candle.ts';
import { DAY } from '../../../src/core/interval.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { continueHistories, recordRenames } from '../../../src/store/upkeep/rename.ts';
import { makeSeriesOf, type PreparedChunk, prepareChunks, storePrepared } from '../../bench/prepared.ts';
import { runCommand } from '../../support/cli.ts';
import {
  answerAgain,
  candlesOf2023,
  DROPPED,
  database,
  fileOf2023,
  folder,
  log,
  manifest,
  moveTo,
  NOW,
  OLD,
  refill,
  retain,
  STAYS,
  series,
  sync,
  useLake,
  verified,
} from './archive.ts';

useLake();

async function attest(file: string): Promise<void> {
  const { code, err } = await runCommand(['attest', '--out', file], {
    env: { DATABASE_URL: database.url },
  });
  expect([code, err]).toEqual([0, expect.any(String)]);
}

test('attestations from before and after a removal agree with the lake', async () => {
  await sync();
  const [earlier, later] = [path.join(folder, '../earlier.jsonl'), path.join(folder, '../later.jsonl')];
  await attest(earlier);
  await retain();
  await sync();
  await attest(later);
  for (const file of [earlier, later]) {
    const found = await verified('--against', file);
    expect([found.code, found.findings]).toEqual([0, []]);
  }
});

test('evidence of a removal that disagrees with the archived file is a difference', async () => {
  await sync();
  await retain();
  await database.sql`update market.evidence set digest = digest + 1 where kind = 'retention' and series_id = ${series.get('24h')!}`;
  const { code, findings } = await verified();
  expect(code).toBe(1);
  expect(findings.map(({ problem }) => problem)).toContainEqual(
    expect.stringMatching(/its archived rows differ from those that retention removed/),
  );
});

test('a candle that changes between the check and the removal stays, and its partition too', async () => {
  await sync();
  const removed = await retain((archive) => ({
    hold: async (interval, partition) => {
      const held = await archive.hold(interval, partition);
      if (interval === '24h') await answerAgain(1.2);
      return held;
    },
  }));
  expect(removed).toMatchObject(STAYS);
  const [row] = await database.sql<{ candles: number }[]>`
    select count(*)::int as candles from market.candle c join market.series s on s.id = c.series_id
    where c.interval = '24h' and c.open_time < ${OLD.to} and s.covered @> c.open_time`;
  expect(row!.candles).toBeGreaterThan(0);
  // The lake has the former value, and no later run takes it for the present one.
  expect(await retain()).toMatchObject(STAYS);
  expect(log.join()).toMatch(/is archived, but Postgres has a row that it lacks: btc-bitcoin at 2023-12-0[34]/);
  expect((await verified()).findings).toEqual([]);
});

test('the next run completes a removal that was killed halfway, because the archived file has the remaining candles', async () => {
  await sync();
  let calls = 0;
  const killed = retain((archive) => ({
    hold: async (interval, partition) => {
      const held = await archive.hold(interval, partition);
      if (held === null) return null;
      return {
        holds: (tx, id) => (++calls === 2 ? Promise.reject(new Error('killed')) : held.holds(tx, id)),
      };
    },
  }));
  await expect(killed).rejects.toThrow('killed');
  expect(await candlesOf2023()).toBeGreaterThan(0);
  await sync();
  expect(fileOf2023().isArchived).toBe(true);
  expect(await retain()).toMatchObject(DROPPED);
  await sync();
  expect((await verified()).findings).toEqual([]);
});

test('when Postgres has all archived candles again, the file is written like any other', async () => {
  await sync();
  const archived = fileOf2023();
  await retain();
  await refill();
  await sync();
  expect(fileOf2023().isArchived).toBeUndefined();
  expect(fileOf2023().path).not.toBe(archived.path);
  expect((await verified()).findings).toEqual([]);
});

/** The upstream gives the first coin another id. */
async function rename(): Promise<void> {
  const { sql } = database;
  await makeSeriesOf(sql, ['xbt-bitcoin'], '6h', OLD);
  await sql`update market.coin set is_active = false where id = 'btc-bitcoin'`;
  await recordRenames(sql, [{ oldId: 'btc-bitcoin', newId: 'xbt-bitcoin', at: NOW }], 'changelog');
  expect(await continueHistories(sql, NOW)).toBeGreaterThan(0);
}

test('a coin that was renamed before Postgres had its archived candles again does not keep the file archived', async () => {
  await sync();
  await retain();
  await rename();
  await refill();
  await sync();
  expect(fileOf2023().isArchived).toBeUndefined();
  expect((await verified()).findings).toEqual([]);
});

test('once Postgres has a removed time again, neither a rename nor a mend archives its file', async () => {
  await sync();
  await retain();
  await refill();
  await sync();
  await rename();
  const paths = [fileOf2023().path];
  await sync();
  expect(fileOf2023().isArchived).toBeUndefined();
  paths.push(fileOf2023().path);
  await database.sql`select ops.uncover(${series.get('24h')!}, '2023-12-10Z', '2023-12-11Z')`;
  await sync();
  expect(fileOf2023().isArchived).toBeUndefined();
  paths.push(fileOf2023().path);
  expect(new Set(paths).size).toBe(3);
  expect((await verified()).findings).toEqual([]);
});

test('what was removed, fetched again and removed again is proved by the newest removal, and a difference is found', async () => {
  await sync();
  await retain();
  await refill();
  await sync();
  expect(await retain()).toMatchObject(DROPPED);
  await sync();
  const found = await verified();
  expect([found.code, found.findings]).toEqual([0, []]);
  const id = series.get('24h')!;
  await database.sql`update market.evidence set digest = digest + 1 where series_id = ${id} and number =
    (select max(number) from market.evidence where kind = 'retention' and series_id = ${id})`;
  expect((await verified()).code).toBe(1);
});

/** The present answers about the old year, but the first coin has a candle less. */
async function answersWithoutOne(): Promise<(chunk: PreparedChunk) => PreparedChunk> {
  const rows = await database.sql<(Record<keyof CandleColumns, number> & { id: number })[]>`
    select series_id as id, open_time, open, high, low, close, volume, market_cap from market.candle
    where interval = '24h' and open_time < ${OLD.to} order by id, open_time`;
  const left = rows.filter(({ id, openTime }) => id !== series.get('24h') || openTime !== Date.UTC(2023, 11, 10));
  expect(left.length).toBe(rows.length - 1);
  return (chunk) => {
    const own = left.filter(({ id }) => id === chunk.series.id);
    const column = (name: keyof CandleColumns) => own.map((row) => row[name]);
    const names = Object.keys(chunk.candles) as (keyof CandleColumns)[];
    const candles = Object.fromEntries(names.map((name) => [name, column(name)])) as CandleColumns;
    return { ...chunk, candles };
  };
}

test('what was fetched again with fewer rows, and removed again, is proved by the older removal', async () => {
  await sync();
  const before = fileOf2023();
  const answers = await answersWithoutOne();
  await retain();
  await refill(answers);
  await sync();
  log.length = 0;
  expect([await retain(), log]).toMatchObject([DROPPED, []]);
  await sync();
  expect(fileOf2023()).toEqual({ ...before, isArchived: true });
  const found = await verified();
  expect([found.code, found.findings]).toEqual([0, []]);
});

test('after a rename, verify proves what is archived under the old id and, later, under the new one', async () => {
  const { sql } = database;
  await sync();
  expect(await retain()).toMatchObject(DROPPED);
  await sync();
  const attestation = path.join(folder, '../before-rename.jsonl');
  await attest(attestation);
  await rename();
  await sync();
  const found = await verified('--against', attestation);
  expect([found.code, found.findings]).toEqual([0, []]);
  expect(await retain(undefined, Date.UTC(2026, 5, 1))).toMatchObject({
    partitions: ['candle_24h_2024'],
    notArchived: [],
  });
  await sync();
  const later = await verified();
  expect([later.code, later.findings]).toEqual([0, []]);
  // What is archived under the new id alone is checked too.
  await sql`update market.evidence set digest = digest + 1 where kind = 'retention' and number =
    (select max(number) from market.evidence e where e.kind = 'retention' and e.series_id = ${series.get('24h')!})
    and series_id = ${series.get('24h')!}`;
  expect((await verified()).findings.map(({ month }) => month)).toEqual(['2024-01']);
});

test('an older copy of the lake keeps the files whose rows retention has removed since', async () => {
  await sync();
  const copy = `${folder}-copy`;
  cpSync(folder, copy, { recursive: true });
  const before = fileOf2023();
  expect(await retain()).toMatchObject(DROPPED);
  await sync();
  rmSync(folder, { recursive: true });
  cpSync(copy, folder, { recursive: true });
  rmSync(copy, { recursive: true });
  await sync();
  expect(fileOf2023()).toEqual({ ...before, isArchived: true });
  const found = await verified();
  expect([found.code, found.findings]).toEqual([0, []]);
});

/** Storage may show an older manifest for a while. */
async function withOlderManifest(change: () => Promise<unknown>): Promise<void> {
  const file = path.join(folder, 'manifest.json');
  const older = readFileSync(file);
  await change();
  writeFileSync(file, older);
}

test('after an older manifest and a removal killed halfway, the file that may hold the last copy stays', async () => {
  await sync();
  const before = fileOf2023();
  let calls = 0;
  await withOlderManifest(() =>
    expect(
      retain((archive) => ({
        hold: async (interval, partition) => {
          const held = await archive.hold(interval, partition);
          if (held === null) return null;
          return { holds: (tx, id) => (++calls === 2 ? Promise.reject(new Error('killed')) : held.holds(tx, id)) };
        },
      })),
    ).rejects.toThrow('killed'),
  );
  expect(await candlesOf2023()).toBeGreaterThan(0);
  await sync();
  expect(fileOf2023()).toEqual({ ...before, isArchived: true });
  expect(await retain()).toMatchObject(DROPPED);
  await sync();
  const found = await verified();
  expect([found.code, found.findings]).toEqual([0, []]);
});

test('after an older manifest and new candles in a removed time, the file that may hold the last copy stays', async () => {
  await sync();
  const before = fileOf2023();
  await withOlderManifest(retain);
  await ensurePartitions(database.sql, '24h', OLD);
  const ids = await makeSeriesOf(database.sql, ['new-coin'], '24h', OLD);
  for (const chunk of prepareChunks(ids, '24h', OLD)) await storePrepared(database.sql, chunk, NOW - DAY);
  await sync();
  expect(fileOf2023()).toEqual({ ...before, isArchived: true });
  expect(await retain()).toMatchObject(STAYS);
  const found = await verified();
  expect([found.code, found.findings]).toEqual([0, []]);
});

test('candles that arrive for an archived time stay in Postgres, and the manifest does not claim them', async () => {
  await sync();
  await retain();
  await ensurePartitions(database.sql, '24h', OLD);
  const ids = await makeSeriesOf(database.sql, ['new-coin'], '24h', { ...OLD, to: Date.UTC(2024, 2, 1) });
  for (const chunk of prepareChunks(ids, '24h', { ...OLD, to: Date.UTC(2024, 2, 1) }))
    await storePrepared(database.sql, chunk, NOW - DAY);
  await sync();
  const found = await verified();
  expect([found.code, found.findings]).toEqual([0, []]);
  const { series: told } = JSON.parse(readFileSync(path.join(folder, 'manifest.json'), 'utf8')) as {
    series: { series: string; covered: [string, string][] }[];
  };
  expect(told.find((one) => one.series === 'new-coin usd 24h')!.covered).toEqual([
    ['2024-01-01T00:00:00.000Z', '2024-03-01T00:00:00.000Z'],
  ]);
  expect(await retain()).toMatchObject(STAYS);
  expect(log.join()).toContain('is archived, but Postgres has a row that it lacks: new-coin at 2023-01-01');
});

test('candles older than the archived ones get files of their own', async () => {
  await sync();
  await retain();
  const older = { from: Date.UTC(2022, 0, 1), to: OLD.from };
  await ensurePartitions(database.sql, '24h', older);
  const id = series.get('24h')!;
  await database.sql`update market.series set wanted = wanted + ${[older]}::tstzmultirange where id = ${id}`;
  for (const chunk of prepareChunks([id], '24h', older)) await storePrepared(database.sql, chunk, NOW - DAY);
  await sync();
  expect(manifest().files.map((file) => file.path)).toContainEqual(expect.stringContaining('24h/quote=usd/year=2022'));
  const found = await verified();
  expect([found.code, found.findings]).toEqual([0, []]);
});

test('a folder that cannot be read keeps candles, and nothing else, in Postgres', async () => {
  moveTo(path.join(folder, 'x'.repeat(300)));
  expect(await retain()).toMatchObject({ ...STAYS, rows: expect.anything() });
  expect(log.join()).toContain('its name is too long');
});
