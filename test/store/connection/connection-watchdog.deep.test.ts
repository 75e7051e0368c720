/** When a server falls silent, the waiting statements fail, and the pool connects again once it is back. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '../../../src/store/connection/connect.ts';
import { isDatabaseUnavailable } from '../../../src/store/connection/database-unavailable.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createRelay, type Relay } from '../../support/relay.ts';
import { startTlsFront, type TlsFront } from '../../support/tls-front.ts';

let database: TestDatabase;
let front: TlsFront;
let relays: Relay[];
beforeAll(async () => {
  database = await createTestDatabase();
  front = await startTlsFront(database.url);
  relays = [];
});
afterAll(async () => {
  for (const relay of relays) await relay.close();
  await front.stop();
  await database.drop();
});

const relayTo = async (url: string, sslmode: string) => {
  const relay = await createRelay(url);
  relays.push(relay);
  const through = new URL(relay.url);
  through.searchParams.set('sslmode', sslmode);
  return { relay, url: through.href };
};

describe.concurrent('the connection watchdog', () => {
  test.each(['disable', 'require'])(
    'fails the statements of a silent server and reconnects, with sslmode=%s',
    async (sslmode) => {
      const { relay, url } = await relayTo(sslmode === 'disable' ? database.url : front.urlWith({}), sslmode);
      const { sql, close } = await openDatabase({ url });
      try {
        const statement = sql`select pg_sleep(60)`.catch((error: unknown) => error);
        const transaction = sql.begin((tx) => tx`select pg_sleep(60)`).catch((error: unknown) => error);
        relay.freeze();
        for (const error of await Promise.all([statement, transaction]))
          expect(isDatabaseUnavailable(error)).toBe(true);
        relay.mend();
        expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
      } finally {
        await close();
      }
    },
  );

  test('does not treat a server that is busy for long as silent', async () => {
    const { url } = await relayTo(database.url, 'disable');
    const { sql, close } = await openDatabase({ url, max: 1 });
    try {
      expect(await sql`select 1 as one from pg_sleep(20)`).toEqual([{ one: 1 }]);
    } finally {
      await close();
    }
  });
});
