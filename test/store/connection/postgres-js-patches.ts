/** A client whose connections are lost all the time, each test in another way. */
import net from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, type Sql } from '../../../src/store/connection/connect.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

/** A proxy between client and server that cuts the connections. */
async function createCutter(target: URL) {
  const pairs = new Set<{ client: net.Socket; server: net.Socket }>();
  const listener = net.createServer((client) => {
    const pair = { client, server: net.connect({ host: target.hostname, port: Number(target.port) }) };
    pairs.add(pair);
    client.pipe(pair.server).pipe(client);
    for (const socket of [client, pair.server]) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        pairs.delete(pair);
        client.destroy();
        pair.server.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.host = `127.0.0.1:${(listener.address() as net.AddressInfo).port}`;
  return {
    url: url.href,
    cut: (how: 'end' | 'reset') => {
      for (const { client } of pairs) {
        if (how === 'end') client.end();
        else client.resetAndDestroy();
      }
    },
    close: () => new Promise((resolve) => listener.close(resolve)),
  };
}

type Way = 'end' | 'reset' | 'terminated';

export function testLost(ways: readonly Way[]): void {
  describe.each(ways)('when connections are lost all the time (%s)', (how) => {
    let database: TestDatabase;
    let cutter: Awaited<ReturnType<typeof createCutter>>;
    let sql: Sql;
    const uncaught: unknown[] = [];
    const onUncaught = (error: unknown) => uncaught.push(error);
    beforeAll(async () => {
      database = await createTestDatabase();
      await database.sql`create table tally (n int not null)`;
      await database.sql`insert into tally values (0)`;
      cutter = await createCutter(new URL(database.url));
      sql = createClient({ url: cutter.url, max: 4, applicationName: 'cut' });
      process.on('uncaughtException', onUncaught);
      process.on('unhandledRejection', onUncaught);
    });
    afterAll(async () => {
      process.off('uncaughtException', onUncaught);
      process.off('unhandledRejection', onUncaught);
      await sql.end({ timeout: 0 });
      await cutter.close();
      await database.drop();
    });

    test('the process survives, every slot of the pool stays usable, and no committed row is lost', async () => {
      let committed = 0;
      let failed = 0;
      let stop = false;
      const worker = async (kind: number) => {
        while (!stop) {
          try {
            if (kind % 3 === 0) await sql`select pg_sleep(0.0005)`;
            else if (kind % 3 === 1) {
              // It waits for another connection while its own is lost, and finishes before it would notice.
              await sql.begin(async (tx) => {
                await tx`select 1`;
                await database.sql`select pg_sleep(0.01)`;
                if (kind === 1) throw new Error('its own');
              });
            } else {
              await sql.begin(async (tx) => {
                await tx`select 1`;
                await Promise.all([tx`update tally set n = n + 1`, tx`select 2`, tx`select ${tx`3`}::int`]);
                await tx`select 4`;
              });
              committed++;
            }
          } catch {
            failed++;
          }
          await new Promise((resolve) => setImmediate(resolve));
        }
      };
      const workers = Array.from({ length: 12 }, (_, i) => worker(i));
      for (let i = 0; i < 20; i++) {
        await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 40));
        if (how !== 'terminated') cutter.cut(how);
        else await database.sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'cut'`;
      }
      stop = true;
      await Promise.all(workers);
      expect(uncaught).toEqual([]);
      expect(failed).toBeGreaterThan(5);
      expect(committed).toBeGreaterThan(0);
      // One more statement per slot may fail because of the last cut; after that every slot works again.
      await Promise.allSettled(Array.from({ length: 16 }, () => sql`select pg_sleep(0.05)`));
      const answers = await Promise.all(
        Array.from({ length: 16 }, () => sql<{ pid: number }[]>`select pg_backend_pid() as pid, pg_sleep(0.05)`),
      );
      expect(new Set(answers.map(([row]) => row!.pid)).size).toBe(4);
      // A commit without an acknowledgement may have happened; an acknowledged one must have.
      const [row] = await database.sql<{ n: number }[]>`select n from tally`;
      expect(row!.n).toBeGreaterThanOrEqual(committed);
    });
  });
}
