/** The embedded server is created, shared and started again. */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { openDatabase } from '../../../src/store/connection/connect.ts';
import { StoreError } from '../../../src/store/connection/store-error.ts';
import { ensureDatabase, startEmbedded } from '../../../src/store/embedded/embedded.ts';
import { pidExists } from '../../../src/store/embedded/process-identity.ts';
import { testAdminUrl } from '../../support/database.ts';
import { ask, home, startElsewhere, useEmbedded } from './embedded.ts';

useEmbedded();

describe('startEmbedded', () => {
  test('creates a database, keeps it, and stops the server when its only user leaves', async () => {
    const first = await startEmbedded({ home, clock: systemClock });
    expect(first.started).toBe(true);
    await ask(first.url, 'create table kept as select 42 as answer');
    await first.stop();
    expect(pidExists(first.pid)).toBe(false);

    const second = await startEmbedded({ home, clock: systemClock });
    // The port stays the same, so that saved connections keep working.
    expect(second.url).toBe(first.url);
    expect(await ask(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
    await second.stop();
  });

  test('listens on loopback only, requires its password, and hides it from other users', async () => {
    const server = await startEmbedded({ home, clock: systemClock });
    const settings = await ask<Record<string, string>[]>(
      server.url,
      `select current_setting('listen_addresses') as listen, current_setting('unix_socket_directories') as sockets,
        current_setting('TimeZone') as zone, current_setting('jit') as jit, current_setting('shared_buffers') as buffers`,
    );
    expect(settings).toEqual([{ listen: '127.0.0.1', sockets: '', zone: 'UTC', jit: 'off', buffers: '256MB' }]);
    const wrong = new URL(server.url);
    wrong.password = 'guess';
    await expect(openDatabase({ url: wrong.href })).rejects.toThrow("refuses the password of user 'chandler'");
    expect(existsSync(path.join(home, 'password'))).toBe(true);
    if (process.platform !== 'win32') {
      const modeOf = (file: string) =>
        execFileSync('stat', ['-c', '%a', path.join(home, file)], { encoding: 'utf8' }).trim();
      expect(modeOf('password')).toBe('600');
      // Otherwise a lock that root made once would block the owner of the folder.
      const locks = readdirSync(home).filter((file) => file.startsWith('start.lock.'));
      expect(locks.map(modeOf)).toEqual(['644']);
    }
    await server.stop();
  });

  test('is shared by two commands that start at the same moment; the last one to leave stops it', async () => {
    const [a, b] = await Promise.all([startElsewhere(), startElsewhere()]);
    expect(a.pid).toBe(b.pid);
    expect([a.started, b.started].sort()).toEqual([false, true]);
    await a.leave();
    expect(await ask(b.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await b.leave();
    expect(pidExists(b.pid)).toBe(false);
  });

  test('recovers when the server itself was killed, and loses no committed row', async () => {
    const owner = await startElsewhere();
    await ask(owner.url, 'create table kept as select generate_series(1, 10000) as n');
    await owner.kill();
    process.kill(owner.pid, 'SIGKILL');
    // Not waited for: the children of the killed server are still ending when the next server starts.
    const next = await startEmbedded({ home, clock: systemClock });
    expect(next.started).toBe(true);
    expect(await ask(next.url, 'select count(*) as n from kept')).toEqual([{ n: 10_000 }]);
    await next.stop();
  });
});

describe('one sentence explains what the operator can fix:', () => {
  const failure = async () => {
    const error = await startEmbedded({ home, clock: systemClock }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(StoreError);
    return (error as StoreError).message;
  };

  test('the home folder is a file', async () => {
    writeFileSync(home, '');
    expect(await failure()).toBe(
      `the data folder ${home} cannot be made: there is a file of that name; choose another folder with CHANDLER_HOME, or set DATABASE_URL to a Postgres of yours`,
    );
  });
});

describe('ensureDatabase', () => {
  test('creates a database once, however many callers ask, and accepts unusual names', async () => {
    const name = `odd "name"/ü ${randomUUID()}`;
    const urls = await Promise.all([1, 2, 3].map(() => ensureDatabase(testAdminUrl(), name)));
    expect(new Set(urls).size).toBe(1);
    expect(await ask(urls[0]!, 'select current_database() as name')).toEqual([{ name }]);
    await ask(testAdminUrl(), `drop database "${name.replaceAll('"', '""')}"`);
  });
});
