/** Retention with a lake, the rarer cases: a killed removal, changes meanwhile, attestations, and candles that come back. */
import path from 'node:path';
import { expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { prepareChunks, storePrepared } from '../../bench/prepared.ts';
import { runCommand } from '../../support/cli.ts';
import {
  answerAgain,
  candlesOf2023,
  DROPPED,
  database,
  fileOf2023,
  folder,
  log,
  NOW,
  OLD,
  retain,
  STAYS,
  series,
  sync,
  useLake,
  verified,
} from './archive.ts';

useLake();

test('an attestation from before the removal, and one from after it, agree with the lake', async () => {
  await sync();
  const [earlier, later] = [path.join(folder, '../earlier.jsonl'), path.join(folder, '../later.jsonl')];
  const attest = async (file: string) => {
    const { code, err } = await runCommand(['attest', '--out', file], {
      env: { DATABASE_URL: database.url },
    });
    expect([code, err]).toEqual([0, expect.any(String)]);
  };
  await attest(earlier);
  await retain();
  await sync();
  await attest(later);
  for (const file of [earlier, later]) {
    const found = await verified('--against', file);
    expect([found.code, found.findings]).toEqual([0, []]);
  }
});

test('evidence of a removal that says something else than the archived file is a difference', async () => {
  await sync();
  await retain();
  await database.sql`update market.evidence set digest = digest + 1 where kind = 'retention' and series_id = ${series.get('24h')!}`;
  const { code, findings } = await verified();
  expect(code).toBe(1);
  expect(findings.map(({ problem }) => problem)).toContainEqual(
    expect.stringMatching(/its archived rows are not those that retention removed/),
  );
});

test('a candle that changes between the check and the removal stays, and so does its partition', async () => {
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
  // The lake has the former value, and no later run takes that for the present one.
  expect(await retain()).toMatchObject(STAYS);
  expect(log.join()).toMatch(/is archived, and Postgres has another row: btc-bitcoin at 2023-12-0[34]/);
  expect((await verified()).findings).toEqual([]);
});

test('a removal that was killed half way goes on: what is left is in the archived file', async () => {
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

test('when Postgres has all of it again, the file is written as any other', async () => {
  await sync();
  const archived = fileOf2023();
  await retain();
  await ensurePartitions(database.sql, '24h', OLD);
  const rows = await database.sql<{ id: number }[]>`select id from market.series where interval = '24h' order by id`;
  const ids = rows.map(({ id }) => id);
  await database.sql`update market.series set wanted = wanted + ${[OLD]}::tstzmultirange where id = any(${ids}::int[])`;
  for (const chunk of prepareChunks(ids, '24h', OLD)) await storePrepared(database.sql, chunk, NOW - DAY);
  await sync();
  expect(fileOf2023().isArchived).toBeUndefined();
  expect(fileOf2023().path).not.toBe(archived.path);
  expect((await verified()).findings).toEqual([]);
});
