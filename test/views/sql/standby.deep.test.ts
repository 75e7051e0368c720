import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { openDatabase } from '../../../src/store/connection/connect.ts';
import { startEmbedded, stopEmbedded } from '../../../src/store/embedded/embedded.ts';
import { migrate } from '../../../src/store/migration/migrate.ts';
import { createStatementRunner } from '../../../src/views/sql/statement.ts';

let home: string;
beforeAll(async () => {
  home = mkdtempSync(path.join(os.tmpdir(), 'chandler-standby-'));
  // As root: the user of the server must be able to enter the folder.
  chmodSync(home, 0o755);
  const primary = await startEmbedded({ home, clock: systemClock });
  const database = await openDatabase({ url: primary.url });
  await migrate(database);
  await database.close();
  await primary.stop();
  // From now on, the server is in recovery and waits for a primary.
  writeFileSync(path.join(home, 'data', 'standby.signal'), '');
});
afterAll(async () => {
  await stopEmbedded({ home, clock: systemClock, isForced: true });
  rmSync(home, { recursive: true, force: true });
});

it('a statement of a caller on a standby is refused, and the error gives the reason', async () => {
  const standby = await startEmbedded({ home, clock: systemClock });
  const runner = createStatementRunner({ url: standby.url });
  try {
    await expect(runner.run({ caller: 'somebody', statement: 'select 1', limit: 1 })).rejects.toThrow(
      expect.objectContaining({ name: 'StatementError', message: expect.stringMatching(/standby/) }),
    );
  } finally {
    await runner.close();
    await standby.stop();
  }
});
