import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/store/connection/connect.ts';
import { checkRoom } from '../../../src/store/work/disk-room.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.drop());

test.each(['0', '64kB', '-1'])(
  'a limit of %s for temporary files does not make the disk count as full',
  async (limit) => {
    const url = new URL(database.url);
    url.searchParams.set('options', `-c temp_file_limit=${limit}`);
    const sql = createClient({ url: url.href, max: 1 });
    try {
      expect((await sql`show temp_file_limit`)[0]).toEqual({ tempFileLimit: limit });
      await expect(checkRoom(sql)).resolves.toBeUndefined();
    } finally {
      await sql.end({ timeout: 5 });
    }
  },
);
