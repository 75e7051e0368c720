/** A backup that is restored elsewhere is the same warehouse: `verify` and `verify --against` say so (docs/backup.md). */
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { openDatabase } from '../../../src/store/connection/connect.ts';
import { startEmbedded } from '../../../src/store/embedded/embedded.ts';
import { runCommand } from '../../support/cli.ts';
import { fillProved } from '../../support/proved-warehouse.ts';
import { home, useEmbedded } from './embedded.ts';

useEmbedded();

type Env = Readonly<Record<string, string>>;
async function proved(env: Env, file: string) {
  const verified = await runCommand(['verify', '--json'], { env });
  const against = await runCommand(['verify', '--against', file, '--json'], { env });
  const hashes = JSON.parse(verified.out).map((proof: { hash: string }) => proof.hash);
  return { codes: [verified.code, against.code], hashes, counts: JSON.parse(against.out).counts };
}

/** The comparison found every series and no difference: every count except `equal` is 0. */
function expectSame(before: Awaited<ReturnType<typeof proved>>, restored: Awaited<ReturnType<typeof proved>>): void {
  expect(restored).toEqual(before);
  expect(restored.codes).toEqual([0, 0]);
  const { equal, ...others } = restored.counts;
  expect(equal).toBeGreaterThan(3);
  expect(Object.values(others).every((count) => count === 0)).toBe(true);
}

test('a copy of the data folder, made while no command uses the embedded server, is the same warehouse', async () => {
  const env = { CHANDLER_HOME: home };
  const file = `${home}.jsonl`;
  const copy = `${home}-copy`;
  try {
    expect((await runCommand(['migrate'], { env })).code).toBe(0);
    const server = await startEmbedded({ home, clock: systemClock });
    const database = await openDatabase({ url: server.url });
    const id = await fillProved(database.sql);
    await database.close();
    await server.stop();
    expect((await runCommand(['attest', '--out', file], { env })).code).toBe(0);
    execFileSync('cp', ['-a', home, copy]);
    const before = await proved(env, file);
    // Only the copy is left: the first folder is removed.
    rmSync(home, { recursive: true });
    const restored = { CHANDLER_HOME: copy };
    expectSame(before, await proved(restored, file));
    // After a change, the comparison must find a difference.
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
