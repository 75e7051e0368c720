/** A backup that is restored elsewhere is the same warehouse: `verify` and `verify --against` say so (docs/operations.md, Backup). */
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { DAY } from '../../../src/core/interval.ts';
import { writeDocuments } from '../../../src/store/catalogue/document.ts';
import { openDatabase, type Sql } from '../../../src/store/connection/connect.ts';
import { startEmbedded } from '../../../src/store/embedded/embedded.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { makeSeries, prepareChunks, storePrepared } from '../../bench/prepared.ts';
import { runCommand } from '../../support/cli.ts';
import { copyDatabase } from '../../support/copy-database.ts';
import { createTestDatabase } from '../../support/database.ts';
import { home, useEmbedded } from './embedded.ts';

useEmbedded();

const FROM = Date.UTC(2023, 0, 1);
const SPAN = { from: FROM, to: FROM + 700 * DAY };
const AS_OF = Date.UTC(2025, 0, 1);

/** Candles, a late answer that changes one, a stretch that was mended, and a document with an old version. Resolves to the first series. */
async function fill(sql: Sql): Promise<number> {
  await sql`insert into ops.origin (simulator) values ('made-up')`;
  await ensurePartitions(sql, '24h', SPAN);
  const ids = await makeSeries(sql, 'coin', 2, '24h', SPAN);
  const chunks = prepareChunks(ids, '24h', SPAN);
  for (const chunk of chunks) await storePrepared(sql, chunk, AS_OF);
  const [first] = chunks;
  const close = first!.candles.close.map((value, i) => (i === 5 ? value! * 1.0001 : value));
  await storePrepared(sql, { ...first!, candles: { ...first!.candles, close } }, AS_OF + DAY);
  await sql`select ops.uncover(${ids[1]!}, ${new Date(FROM)}, ${new Date(FROM + 3 * DAY)})`;
  for (const version of [1, 2]) {
    const text = `{"id":"sam","name":"Sam ${version}"}`;
    const documents = [{ id: 'sam', text, fingerprint: text }];
    await writeDocuments(sql, { kind: 'person', documents, at: AS_OF + version * DAY });
  }
  return ids[0]!;
}

type Env = Readonly<Record<string, string>>;
async function proved(env: Env, file: string) {
  const verified = await runCommand(['verify', '--json'], { env });
  const against = await runCommand(['verify', '--against', file, '--json'], { env });
  const hashes = JSON.parse(verified.out).map((proof: { hash: string }) => proof.hash);
  return { codes: [verified.code, against.code], hashes, counts: JSON.parse(against.out).counts };
}

/** Everything was found, and nothing differs: each count but `equal` is 0. */
function expectSame(before: Awaited<ReturnType<typeof proved>>, restored: Awaited<ReturnType<typeof proved>>): void {
  expect(restored).toEqual(before);
  expect(restored.codes).toEqual([0, 0]);
  const { equal, ...others } = restored.counts;
  expect(equal).toBeGreaterThan(3);
  expect(Object.values(others).every((count) => count === 0)).toBe(true);
}

test('a copy of the data folder of the embedded server, while no command uses it', async () => {
  const env = { CHANDLER_HOME: home };
  const file = `${home}.jsonl`;
  const copy = `${home}-copy`;
  try {
    expect((await runCommand(['migrate'], { env })).code).toBe(0);
    const server = await startEmbedded({ home, clock: systemClock });
    const database = await openDatabase({ url: server.url });
    const id = await fill(database.sql);
    await database.close();
    await server.stop();
    expect((await runCommand(['attest', '--out', file], { env })).code).toBe(0);
    execFileSync('cp', ['-a', home, copy]);
    const before = await proved(env, file);
    // The copy is the warehouse now: the first one is gone.
    rmSync(home, { recursive: true });
    const restored = { CHANDLER_HOME: copy };
    expectSame(before, await proved(restored, file));
    // The comparison would tell another warehouse.
    await runCommand(['sql', `select ops.uncover(${id})`], { env: restored });
    const other = await startEmbedded({ home: copy, clock: systemClock });
    const changed = await openDatabase({ url: other.url });
    await changed.sql`delete from market.revision where series_id = ${id}`;
    await changed.close();
    await other.stop();
    expect((await proved(restored, file)).codes).toEqual([1, 1]);
  } finally {
    for (const made of [file, copy]) rmSync(made, { recursive: true, force: true });
  }
});

test('the rows of all tables, as a dump has them, in a new database', async () => {
  const original = await createTestDatabase();
  const restored = await createTestDatabase();
  const file = `${home}.jsonl`;
  try {
    await fill(original.sql);
    expect((await runCommand(['attest', '--out', file], { env: { DATABASE_URL: original.url } })).code).toBe(0);
    await copyDatabase(original, restored);
    const before = await proved({ DATABASE_URL: original.url }, file);
    expectSame(before, await proved({ DATABASE_URL: restored.url }, file));
    expect((await runCommand(['migrate'], { env: { DATABASE_URL: restored.url } })).code).toBe(0);
  } finally {
    await Promise.all([original.drop(), restored.drop()]);
    rmSync(file, { force: true });
  }
});
