/** `chandler backup` and `chandler restore` with the real programs of Postgres: what is restored is the same warehouse (promise P17). */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { createScaledClock } from '../../../src/clock.ts';
import { runCommand } from '../../support/cli.ts';
import type { TestDatabase } from '../../support/database.ts';
import { putBefore } from '../../support/postgres-client.ts';
import { changeOne } from '../../support/proved-warehouse.ts';
import {
  backup,
  backups,
  client,
  dumpByHand,
  files,
  folder,
  isEmpty,
  original,
  restore,
  run,
  schemaOf,
  series,
  target,
  useDatabases,
} from './backup.ts';

useDatabases();

async function counts(database: TestDatabase, against: string) {
  const { code, out } = await run(database, ['verify', '--against', against, '--json']);
  return { ...(JSON.parse(out) as { counts: Record<string, number> }).counts, code } as Record<string, number>;
}

describe.skipIf(client === null)('what is restored', () => {
  test('is the same warehouse: it has the same digests, and the same schema with all its grants and comments', async () => {
    const made = await backup();
    expect(made).toMatchObject({ code: 0, err: '' });
    const [dump, attestation] = files() as [string, string];
    expect(files()).toEqual([dump, `${dump}.attestation.jsonl`, `${dump}.sha256`]);
    execFileSync('sha256sum', ['--check', '--strict', `${dump}.sha256`], { cwd: backups() });
    expect(dump).toMatch(/^chandler-\d{8}T\d{6}Z\.dump$/);
    expect(statSync(path.join(backups(), dump)).mode & 0o777).toBe(0o600);

    const restored = await restore();
    expect(restored).toMatchObject({ code: 0, err: '' });
    expect(restored.out).toContain(`restoring ${path.join(backups(), dump)}`);
    expect(restored.out).toContain(`the file has the SHA-256 in ${path.join(backups(), dump)}.sha256`);
    expect(restored.out).toContain('Every covered slot has exactly what the upstream answered.');
    expect(restored.out).toContain('Nothing that was attested was tampered with.');
    const found = await counts(target, path.join(backups(), attestation));
    const { equal, ...others } = found;
    expect(Object.values(others).filter((count) => count > 0)).toEqual([]);
    expect(equal).toBeGreaterThan(3);
    const hashes = async (database: TestDatabase) =>
      (JSON.parse((await run(database, ['verify', '--json'])).out) as { hash: string }[]).map(({ hash }) => hash);
    expect(await hashes(target)).toEqual(await hashes(original));
    expect(schemaOf(target)).toBe(schemaOf(original));
    // Nothing was left to migrate, and no part of the queue was restored.
    expect(JSON.parse((await run(target, ['migrate', '--json'])).out)).toEqual({ applied: [] });
    expect(await target.sql`select from pg_namespace where nspname = 'bullmq'`).toHaveLength(0);

    const again = await restore();
    expect(again.code).toBe(2);
    expect(again.err).toMatch(
      /has a warehouse of 2 series already, and a restore never replaces data; make an empty database/,
    );
    expect(await counts(target, path.join(backups(), attestation))).toEqual(found);
  });

  test('has archive and attestation of the same instant, even if answers were stored meanwhile', async () => {
    const [started, go] = [path.join(folder, 'started'), path.join(folder, 'go')];
    const script = `case "$*" in *--file=*) touch ${started}; while [ ! -e ${go} ]; do sleep 0.02; done;; esac\nexec ${client!.pgDump} "$@"`;
    const PATH = putBefore(client!, path.join(folder, 'bin'), 'pg_dump', script);
    const making = backup({ PATH });
    await vi.waitFor(() => expect(existsSync(started)).toBe(true), { timeout: 60_000, interval: 20 });
    await changeOne(original.sql, series, 7);
    writeFileSync(go, '');
    expect(await making).toMatchObject({ code: 0 });
    const attestation = path.join(backups(), files()[1]!);
    expect(await counts(original, attestation)).toMatchObject({ code: 0, tampered: 0, revised: 1 });
    expect(await restore()).toMatchObject({ code: 0 });
    expect(await counts(target, attestation)).toMatchObject({ code: 0, revised: 0, tampered: 0 });
  });

  test('is older than a newer attestation, and verify --against says so', async () => {
    expect((await backup()).code).toBe(0);
    await changeOne(original.sql, series, 9);
    const newest = path.join(folder, 'newest.jsonl');
    expect((await run(original, ['attest', '--out', newest])).code).toBe(0);
    expect((await restore()).code).toBe(0);
    const compared = await run(target, ['verify', '--against', newest]);
    expect(compared.code).toBe(1);
    expect(compared.out).toMatch(
      /The log has a restore at .*Z, of a backup that was begun at .*Z\. What was stored between backup and restore is\smissing here/,
    );
    const { restored } = JSON.parse((await run(target, ['verify', '--against', newest, '--json'])).out) as {
      restored: { at: string; backupAt: string };
    };
    expect(Date.parse(restored.backupAt)).toBeLessThan(Date.parse(restored.at));
    // For an attestation that the restored warehouse itself has made, the restore explains no difference.
    const later = path.join(folder, 'later.jsonl');
    expect((await run(target, ['attest', '--out', later])).code).toBe(0);
    await target.sql`update market.candle set close = close + 1`;
    expect((await run(target, ['verify', '--against', later])).out).toMatch(/no record explains why\.\n$/);
  });

  test('is reported with exit code 1 when it differs', async () => {
    expect((await backup()).code).toBe(0);
    const before = readFileSync(path.join(backups(), files()[1]!));
    await changeOne(original.sql, series, 9);
    await original.sql`delete from market.revision where series_id = ${series}`;
    for (const name of files()) rmSync(path.join(backups(), name));
    expect((await backup()).code).toBe(0);
    writeFileSync(path.join(backups(), files()[1]!), before);
    const { code, out } = await restore();
    expect(code).toBe(1);
    expect(out).toContain('The backup is restored, but it differs from what the upstream answered');
  });

  test('is printed as JSON: what was loaded, the proof, and the comparison', async () => {
    expect((await backup()).code).toBe(0);
    const [dump, attestation] = files() as [string, string];
    const { code, out, err } = await run(target, ['restore', backups(), '--json']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(JSON.parse(out)).toMatchObject({
      file: path.join(backups(), dump),
      postgres: expect.stringMatching(/^\d+/),
      tables: expect.any(Number),
      roles: [],
      migrated: [],
      tookMs: expect.any(Number),
      verify: { series: 2, candles: expect.any(Number), differing: 0, differences: [], others: [] },
      attestation: { file: path.join(backups(), attestation), isTampered: false, findings: [] },
      exitCode: 0,
    });
    // The log from the backup goes on with the restore.
    const entries = await target.sql`select command, message from ops.audit order by id`;
    const [last] = await target.sql<{ tookMs: number }[]>`
      select (extract(epoch from ended_at - at) * 1000)::float8 as took_ms from ops.audit order by id desc limit 1`;
    // The time of loading is included, although the log was loaded with the rest.
    expect(last!.tookMs).toBeGreaterThanOrEqual(JSON.parse(out).tookMs);
    expect(entries.slice(-2)).toEqual([
      { command: `backup ${backups()}`, message: 'had not ended when the backup was made' },
      { command: `restore ${backups()} --json`, message: null },
    ]);
    const again = await run(target, ['restore', backups(), '--json']);
    expect([again.code, JSON.parse(again.out)]).toMatchObject([2, { exitCode: 2 }]);
  });

  test('is printed as JSON with its differences', async () => {
    await original.sql`update market.candle set close = close + 1 where series_id = ${series}`;
    expect((await backup()).code).toBe(0);
    rmSync(path.join(backups(), files()[1]!));
    const { code, out } = await run(target, ['restore', backups(), '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      verify: {
        differing: 1,
        differences: [{ interval: '24h', differences: expect.arrayContaining([expect.any(String)]) }],
      },
      attestation: null,
      exitCode: 1,
    });
  });

  test('is in the log with the reason when the last step of a restore fails', async () => {
    await original.sql.unsafe(`
      create function ops.refuse() returns trigger language plpgsql as $$ begin raise 'no change here'; end $$;
      create trigger refuse before update on ops.account for each statement execute function ops.refuse()`);
    expect((await backup()).code).toBe(0);
    expect((await restore()).code).toBe(1);
    const entries = await target.sql`select command, message from ops.audit order by id desc limit 1`;
    expect(entries).toEqual([{ command: `restore ${backups()}`, message: 'no change here' }]);
  });
});

describe.skipIf(client === null)('a backup that differs from the SHA-256 beside it', () => {
  test('is refused with exit code 1 before anything changes, also if only a comment of the schema differs', async () => {
    await backup();
    const [name] = files() as [string];
    const file = path.join(backups(), name);
    const whole = readFileSync(file);
    const changed = Buffer.from(whole);
    const comment = 'COMMENT ON SCHEMA market IS ';
    expect(changed.indexOf(comment)).toBeGreaterThan(0);
    changed.write('?', changed.indexOf(comment) + comment.length + 1);
    writeFileSync(file, changed);
    expect(await restore()).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /\.dump is damaged or was changed: its SHA-256 is .*; use another copy, .* Nothing was restored\./,
      ),
    });
    expect(await isEmpty(target)).toBe(true);

    writeFileSync(`${file}.sha256`, 'nothing\n');
    expect(await restore()).toMatchObject({ code: 1, err: expect.stringContaining('contains no SHA-256') });

    // Backups of an earlier version have none.
    rmSync(`${file}.sha256`);
    writeFileSync(file, whole);
    const restored = await restore();
    expect(restored).toMatchObject({ code: 0, err: '' });
    expect(restored.out).not.toContain('SHA-256');
  });
});

describe.skipIf(client === null)('an incomplete backup', () => {
  test('has a temporary name while it is written, and nothing is left when pg_dump fails', async () => {
    const seen = path.join(folder, 'seen');
    const script = `case "$*" in *--file=*) ls ${backups()} >${seen}; echo "pg_dump: error: could not write to file: No space left on device" >&2; exit 1;; esac\nexec ${client!.pgDump} "$@"`;
    const PATH = putBefore(client!, path.join(folder, 'bin'), 'pg_dump', script);
    const { code, err } = await backup({ PATH });
    expect({ code, err }).toEqual({
      code: 1,
      err: 'error: pg_dump failed: could not write to file: No space left on device\n',
    });
    expect(readFileSync(seen, 'utf8')).toMatch(/^chandler-\w+\.dump\.[\da-f-]{36}\.part$/m);
    expect(files()).toEqual([]);
    expect(await restore()).toMatchObject({ code: 2, err: expect.stringContaining('has no backup') });
  });

  test('does not replace a file that another command has made under its name meanwhile', async () => {
    const file = path.join(folder, 'both.dump');
    const script = `case "$*" in *--file=*) echo theirs >${file};; esac\nexec ${client!.pgDump} "$@"`;
    const PATH = putBefore(client!, path.join(folder, 'bin'), 'pg_dump', script);
    const before = readdirSync(folder);
    expect(await run(original, ['backup', file], { PATH })).toMatchObject({
      code: 2,
      err: expect.stringContaining('another command has just made'),
    });
    expect(readFileSync(file, 'utf8')).toBe('theirs\n');
    expect(readdirSync(folder).sort()).toEqual([...before, 'both.dump'].sort());
  });

  test('of an interrupted command is removed', async () => {
    const started = path.join(folder, 'started');
    const script = `case "$*" in *--file=*) touch ${started}; exec sleep 60;; esac\nexec ${client!.pgDump} "$@"`;
    const PATH = putBefore(client!, path.join(folder, 'bin'), 'pg_dump', script);
    const stop = new AbortController();
    const making = backup({ PATH, signal: stop.signal });
    await vi.waitFor(() => expect(existsSync(started)).toBe(true), { timeout: 60_000, interval: 20 });
    stop.abort(new Error('stopped'));
    expect((await making).code).not.toBe(0);
    expect(files()).toEqual([]);
  });
});

describe.skipIf(client === null)('what cannot succeed is refused before anything is changed:', () => {
  test('with a pg_dump that is older than the server, or none', async () => {
    const bin = path.join(folder, 'bin');
    const PATH = putBefore({ path: '' }, bin, 'pg_dump', 'echo "pg_dump (PostgreSQL) 14.2 (Debian 14.2-1)"');
    const old = await backup({ PATH });
    expect(old.code).toBe(2);
    expect(old.err).toMatch(
      new RegExp(
        `^error: the server is Postgres ${client!.major}\\S*, which needs pg_dump of Postgres ${client!.major} or newer, and on the PATH there is only ${bin}/pg_dump of version 14.2; install`,
      ),
    );
    expect(old.err).toContain(`postgresql-client-${client!.major}`);
    const none = await backup({ PATH: folder });
    expect(none).toMatchObject({ code: 2, err: expect.stringContaining('there is no pg_dump on the PATH') });
    // A newer pg_dump further back in the PATH is found.
    expect((await backup({ PATH: putBefore(client!, bin, 'pg_dump', 'echo "pg_dump (PostgreSQL) 14.2"') })).code).toBe(
      0,
    );
  });

  test('with a backup of a newer Chandler', async () => {
    await original.sql`insert into ops.migration (hash, created_at, name) values ('x', 9999999999999, '0042_future')`;
    const archive = path.join(folder, 'newer.dump');
    dumpByHand(original, archive);
    const { code, err } = await run(target, ['restore', archive]);
    expect({ code, err }).toEqual({
      code: 1,
      err: `error: the database in ${archive} was migrated by a newer chandler (migration 0042_future); upgrade chandler\n`,
    });
    expect(await isEmpty(target)).toBe(true);
  });

  test('with a file that exists, a folder that does not, and options that need a folder', async () => {
    const taken = path.join(folder, 'taken.dump');
    writeFileSync(taken, 'mine');
    for (const [args, message] of [
      [['backup', taken], 'exists, and a backup never replaces a file'],
      [['backup', path.join(folder, 'no/such/x.dump')], 'there is no such folder'],
      [['backup', taken, '--keep', '2'], '--keep needs a folder'],
      [['backup', taken, '--every', '24h'], '--every needs a folder'],
      [['backup', backups(), '--every', '5s'], 'It must be a minute at least'],
      [['restore', path.join(folder, 'nothing.dump')], 'there is no backup'],
    ] as const) {
      expect(await run(original, [...args]), message).toMatchObject({ code: 2, err: expect.stringContaining(message) });
    }
    expect(readFileSync(taken, 'utf8')).toBe('mine');
  });
});

test.skipIf(client === null)('a password appears neither on the command line nor in the output', async () => {
  const { password } = new URL(original.url);
  expect(password.length).toBeGreaterThan(8);
  const said = path.join(folder, 'arguments');
  const bin = path.join(folder, 'bin');
  putBefore(client!, bin, 'pg_dump', `echo "$@" >>${said}\nexec ${client!.pgDump} "$@"`);
  const PATH = putBefore(client!, bin, 'pg_restore', `echo "$@" >>${said}\nexec ${client!.pgRestore} "$@"`);
  const made = await backup({ PATH });
  const restored = await run(target, ['restore', backups()], { PATH });
  expect([made.code, restored.code]).toEqual([0, 0]);
  const lines = readFileSync(said, 'utf8');
  expect(lines).toContain('--snapshot=');
  expect(lines).toContain('--single-transaction');
  for (const text of [lines, made.out, made.err, restored.out, restored.err]) expect(text).not.toContain(password);
});

test.skipIf(client === null)(
  'a repeated backup reports a failure, tries again, and keeps the newest files',
  async () => {
    const failed = path.join(folder, 'failed');
    const script = `case "$*" in *--file=*) [ -e ${failed} ] || { touch ${failed}; echo "pg_dump: error: not today" >&2; exit 1; };; esac\nexec ${client!.pgDump} "$@"`;
    const PATH = putBefore(client!, path.join(folder, 'bin'), 'pg_dump', script);
    // A backup that was killed long ago, and one that runs now.
    const old = path.join(folder, 'x');
    writeFileSync(old, '');
    const stop = new AbortController();
    let lines: { msg: string; file?: string; removed?: number }[] = [];
    const { code } = await runCommand(['backup', backups(), '--every', '1h', '--keep', '2'], {
      env: { DATABASE_URL: original.url, PATH, LOG_LEVEL: 'info' },
      clock: createScaledClock({ speed: 5_000, startAt: Date.UTC(2026, 0, 1) }),
      signal: stop.signal,
      onError: (text) => {
        lines = text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line));
        if (lines.length === 4) stop.abort(new Error('stopped'));
      },
    });
    expect(code).toBe(0);
    expect(lines[0]!.msg).toBe('the backup failed: pg_dump failed: not today');
    const written = lines.slice(1);
    expect(written.map(({ msg, removed }) => [msg, removed])).toEqual([
      ['wrote a backup', 0],
      ['wrote a backup', 0],
      ['wrote a backup', 1],
    ]);
    const kept = written.slice(1).map(({ file }) => path.basename(file!));
    expect(files()).toEqual(kept.flatMap((name) => [name, `${name}.attestation.jsonl`, `${name}.sha256`]).sort());
  },
);

describe.skipIf(client === null)(
  '--keep never removes the new backup, even if others have names from the future',
  () => {
    test.each([
      ['1', []],
      ['2', ['chandler-29120103T000000Z.dump']],
    ])('--keep %s', async (keep, others) => {
      mkdirSync(backups());
      for (const day of ['01', '02', '03'])
        writeFileSync(path.join(backups(), `chandler-291201${day}T000000Z.dump`), '');
      const { code, out } = await run(original, ['backup', backups(), '--keep', keep, '--no-attest', '--json']);
      expect(code).toBe(0);
      const { file } = JSON.parse(out);
      expect(files().filter((name) => name.endsWith('.dump'))).toEqual([path.basename(file), ...others]);
    });
  },
);

describe.skipIf(client === null)('an old backup that cannot be removed', () => {
  const stuck = 'chandler-20200101T000000Z.dump';
  beforeEach(() => {
    // Nobody can remove a folder as if it were a file, not even root.
    mkdirSync(path.join(backups(), stuck), { recursive: true });
    writeFileSync(path.join(backups(), 'chandler-20200102T000000Z.dump'), '');
  });

  test('is named with exit code 1, and the new backup and the other removals stand', async () => {
    const part = `chandler-20200103T000000Z.dump.${randomUUID()}.part`;
    mkdirSync(path.join(backups(), part));
    utimesSync(path.join(backups(), part), 0, 0);
    const { code, out } = await run(original, ['backup', backups(), '--keep', '1']);
    expect(code).toBe(1);
    expect(out).toMatch(/chandler-20200101T000000Z\.dump cannot be removed \(/);
    expect(out).toMatch(/\.part cannot be removed \(/);
    const left = files().filter((name) => name.endsWith('.dump'));
    expect(left).toEqual([stuck, expect.stringMatching(/^chandler-202[^0]/)]);
  });

  test('is logged by a repeated backup, which counts the new backup as written', async () => {
    const stop = new AbortController();
    let lines: { level: string; msg: string }[] = [];
    const { code } = await runCommand(['backup', backups(), '--every', '1h', '--keep', '1'], {
      env: { DATABASE_URL: original.url, PATH: client!.path, LOG_LEVEL: 'info' },
      clock: createScaledClock({ speed: 5_000, startAt: Date.UTC(2026, 0, 1) }),
      signal: stop.signal,
      onError: (text) => {
        lines = text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line));
        if (lines.length === 4) stop.abort(new Error('stopped'));
      },
    });
    expect(code).toBe(0);
    expect(lines.map(({ level, msg }) => [level, msg.replace(/^.*(cannot be removed).*/, '$1')])).toEqual([
      ['info', 'wrote a backup'],
      ['error', 'cannot be removed'],
      ['info', 'wrote a backup'],
      ['error', 'cannot be removed'],
    ]);
  });
});
