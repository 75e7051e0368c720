/** The lake in a bucket: the same rules as in a folder, and lists that engines can read. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import type { Destination } from '../../../src/lake/destination/destination.ts';
import { readText } from '../../../src/lake/destination/destination.ts';
import { openS3 } from '../../../src/lake/destination/s3.ts';
import { syncLake } from '../../../src/lake/sync/sync.ts';
import { recount } from '../../../src/lake/verify/recount.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createRelay } from '../../support/relay.ts';
import { startS3 } from '../../support/s3-server.ts';
import { fillAll } from '../filled.ts';

const server = await startS3();
const { signal } = new AbortController();

let database: TestDatabase;
let now = Date.UTC(2026, 0, 1);
beforeAll(async () => {
  database = await createTestDatabase();
  await fillAll(database.sql);
});
afterAll(async () => {
  await database?.drop();
  await server?.stop();
});

const open = (endpoint = server!.url, attempts = 5): Destination =>
  openS3(
    { kind: 's3', bucket: server!.bucket, prefix: 'lake' },
    { ...server!.settings, endpoint },
    { attempts, idleMs: 2_000 },
  );

function sync(destination: Destination) {
  const clock = { now: () => now, sleep: async () => undefined };
  return syncLake({ database, destination, datasets: ['candles', 'coins'], clock, signal });
}

async function files(): Promise<string[]> {
  const found: string[] = [];
  for await (const { path } of open().list()) found.push(path);
  return found.sort();
}

test.skipIf(server === null)(
  'the lake is written, continues after the storage was unavailable, and removes former files a day later',
  async () => {
    const relay = await createRelay(server!.url);
    const through = open(relay.url, 1);
    let puts = 0;
    const broken = sync({
      ...through,
      put: (file, write) => {
        if (++puts === 8) relay.cut();
        return through.put(file, write);
      },
    });
    await expect(broken).rejects.toThrow(/writing .* failed: no answer/);
    await relay.close();
    expect(await files()).not.toContain('manifest.json');
    const first = await sync(open());
    expect(first.written.files).toBeLessThan(first.files);
    expect((await recount(open(), { signal })).findings).toEqual([]);
    const list = await readText(open(), '_symlink/coins/files.txt');
    const [coins] = (await files()).filter((file) => file.startsWith('coins/'));
    expect(list).toBe(`s3://${server!.bucket}/lake/${coins}\n`);
    await database.sql`update market.coin set name = 'Bitcoin again' where id = 'btc-bitcoin'`;
    now += DAY;
    const second = await sync(open());
    expect([second.written.files, second.removed]).toEqual([1, []]);
    expect(await files()).toContain(coins);
    now += DAY;
    expect((await sync(open())).removed).toEqual([coins]);
    expect(await files()).not.toContain(coins);
    expect((await recount(open(), { signal })).findings).toEqual([]);
  },
);

test.skipIf(server === null)(
  'an emptied bucket, or another address in it, is refused as a place for a new lake',
  async () => {
    const elsewhere = openS3({ kind: 's3', bucket: server!.bucket, prefix: 'lkae' }, server!.settings);
    const missed = new RegExp(
      `has no manifest of a lake, but this warehouse wrote its lake to .* s3://${server!.bucket}/lake `,
    );
    await expect(sync(elsewhere)).rejects.toThrow(missed);
    for (const file of await files()) await open().delete(file);
    await expect(sync(open())).rejects.toThrow(missed);
    expect(await files()).toEqual([]);
  },
);
