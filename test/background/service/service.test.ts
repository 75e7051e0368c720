/** The service as its operator starts it, against a simulator over HTTP and a database of its own. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, test, vi } from 'vitest';
import { planOf } from '../../../src/contract/plan/plans.ts';
import { queueNameOf } from '../../../src/ingest/queue/queue-name.ts';
import { accountIdOf } from '../../../src/ingest/request/account.ts';
import { readInstallationId } from '../../../src/store/work/installation.ts';
import { runCommand } from '../../support/cli.ts';
import { createEmptyDatabase, testRedisUrl } from '../../support/database.ts';
import { type Scene, setScene, testAway, testStartedWhileDown, useServer } from './service.ts';

useServer();

/** Rows of other suites stay. */
async function emptyOurRedis({ database, env }: Scene): Promise<void> {
  const redis = new Redis(testRedisUrl()!);
  const baseUrl = env.CHANDLER_BASE_URL!;
  const asker = { accountId: accountIdOf(null, baseUrl), baseUrl, plan: planOf('pro') };
  const installation = await readInstallationId(database.sql);
  for (const kind of ['chunks', 'fresh', 'ticks'] as const) {
    const keys = await redis.keys(`bull:${queueNameOf(installation, asker, kind)}:*`);
    expect(keys.length).toBeGreaterThan(0);
    await redis.del(...keys);
  }
  redis.disconnect();
}

/** As when a standby takes the place of its primary: all connections end, and the new ones are read-only, or writable again. */
async function setReadOnly({ database: { sql } }: Scene, is: boolean): Promise<void> {
  const [row] = await sql<{ name: string }[]>`select current_database() as name`;
  await sql.begin('read write', (tx) =>
    tx.unsafe(`alter database ${row!.name} set default_transaction_read_only = ${is ? 'on' : 'off'}`),
  );
  await sql`
    select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
}

describe('the service', { concurrent: true }, () => {
  test('waits while its database is read-only, also at its start, and says so', async (context) => {
    const scene = await setScene(context);
    const { env, start } = scene;
    const stands = (service: ReturnType<typeof start>, status: number) =>
      vi.waitFor(async () => expect(await service.get('/ready')).toMatchObject({ status }), { timeout: 60_000 });
    const running = start();
    await running.line(/^ready/);
    await setReadOnly(scene, true);
    const started = start();
    for (const service of [running, started]) {
      await service.line(/^the database: .* is read-only \(a standby\?\); point DATABASE_URL at the primary/);
      await stands(service, 503);
    }
    const { code, out } = await runCommand(['doctor'], { env });
    expect(out).toMatch(/FAIL {2}database .*read-only \(a standby\?\)\n *→ point DATABASE_URL at the primary/);
    expect(code).toBe(1);
    await setReadOnly(scene, false);
    for (const service of [running, started]) {
      await stands(service, 200);
      // The queue asks for work with pauses, and does not report the failure separately.
      expect(service.lines().filter(({ msg }) => /^queue failed|read-only transaction/.test(msg))).toEqual([]);
    }
  });

  test('keeps tracked series fresh, fetches their past, and reports its health', async (context) => {
    const { chandler, database, json, start } = await setScene(context);
    await chandler('track', 'add', '--top', '2', '--interval', '1h', '--since', '-40d');
    // At its start the service reads the market as a whole once. By default it would read it again at the next fifth minute of the hour.
    const service = start([], { CHANDLER_SCHEDULE_GLOBAL: '7 0 * * *' });
    await service.line(/^ready/);
    expect(await service.get('/ready')).toMatchObject({ status: 200 });
    await service.line(/^schedule freshness: done/);
    await service.line(/^backfill 1: done/);
    // A refresh ends a moment after its answer is stored.
    await vi.waitFor(
      async () => {
        const [gaps] = await database.sql`
          select count(*)::int as n, count(*) filter (where reason <> 'provisional')::int as others from market.gaps`;
        expect(gaps!.others).toBe(0);
        const [seen] = await database.sql`
          select count(*) filter (where seen_until > now() - interval '2 hours')::int as n, count(queued_at)::int as queued from ops.tracked`;
        expect(seen).toEqual({ n: 2, queued: 0 });
      },
      { timeout: 60_000 },
    );
    const spenders: { class: string; name: string; day: number }[] = (await json('quota')).spenders;
    // A permit that expires on a busy machine stays counted.
    expect(spenders.find(({ name }) => name === 'freshness')).toMatchObject({ class: 'scheduled' });
    expect(spenders.find(({ name }) => name === 'freshness')!.day).toBeGreaterThanOrEqual(2);
    expect(spenders.find(({ name }) => name === 'backfill 1')).toMatchObject({ class: 'backfill' });
    expect(spenders.find(({ name }) => name === 'backfill 1')!.day).toBeGreaterThanOrEqual(4);
    const [sent] = await database.sql`select count(*)::int as requests from ops.fetch where backfill_id = 1`;
    expect(sent).toEqual({ requests: 4 });
    const tables = await database.sql`
      select (select count(*)::int from market.ticker) as tickers, (select count(*)::int from market.global_history) as global,
        (select count(*)::int from market.exchange) > 0 as exchanges`;
    expect(tables[0]).toMatchObject({ tickers: expect.any(Number), global: 1, exchanges: true });
    const { text } = await service.get('/metrics');
    expect(text).toMatch(/^chandler_chunks_total\{kind="freshness",outcome="stored"\} 2$/m);
    expect(text).toMatch(/^chandler_requests_total\{endpoint="ohlcv",outcome="answered"\} 6$/m);
    expect(text).toMatch(/^chandler_freshness_target_age_seconds\{tier="top",interval="1h",priority="10"\} 7200$/m);
    expect(text).toMatch(/^chandler_unanswered_series\{tier="top",interval="1h",priority="10"\} 0$/m);
    expect(text).toMatch(/^chandler_ready 1$/m);
    expect(await service.stop()).toBe(0);
    expect(await database.sql`select from ops.instance`).toHaveLength(0);
  });

  test('runs a recorded backfill once, however many services there are', async (context) => {
    const { json, start } = await setScene(context);
    const recorded = await json(
      'backfill',
      '--top',
      '3',
      '--start',
      '-30d',
      '--interval',
      '1h',
      '--detach',
      '--priority',
      '5',
    );
    expect(recorded.backfill).toEqual({ state: 'queued', id: 1, priority: 5, isServed: false });
    const two = [start(), start(['--role', 'worker'])];
    await vi.waitFor(
      async () => expect((await json('backfills', 'list', '--all'))[0]).toMatchObject({ state: 'done' }),
      {
        timeout: 60_000,
      },
    );
    expect((await json('backfills', 'list', '--all'))[0]).toMatchObject({
      isDetached: true,
      spent: recorded.plan.historyLimit.requestsIfOpen,
      leftRequests: 0,
      finishAt: null,
      message: null,
    });
    expect(two.flatMap((service) => service.lines()).filter(({ msg }) => /^backfill 1: /.test(msg))).toHaveLength(1);
  });

  test.runIf(testRedisUrl() !== null)('loses nothing when Redis is emptied', async (context) => {
    const scene = await setScene(context);
    const { database, json, start } = scene;
    const service = start([], { REDIS_URL: testRedisUrl()! });
    await service.line(/^schedule coins: done/);
    const { backfill } = await json('backfill', '--top', '3', '--start', '-80d', '--interval', '1h', '--detach');
    await service.line(new RegExp(`^backfill ${backfill.id} started`));
    await service.line(/^chunk$/);
    await emptyOurRedis(scene);
    await service.line(new RegExp(`^backfill ${backfill.id}: done`));
    const [row] = await database.sql`select count(*)::int as n from market.gaps where reason not in ('provisional')`;
    expect(row).toEqual({ n: 0 });
  });

  testAway('all', 'the database');

  test('with one role does only the work of that role', async (context) => {
    const { database, start } = await setScene(context);
    const http = start(['--role', 'http']);
    await http.line(/^ready/);
    expect(await http.get('/ready')).toMatchObject({ status: 200 });
    const scheduler = start(['--role', 'scheduler']);
    await scheduler.line(/^ready/);
    expect(scheduler.lines().some(({ msg }) => /serving|schedule|chunk/.test(msg))).toBe(false);
    expect(await database.sql`select from ops.schedule_run`).toHaveLength(0);
    const worker = start(['--role', 'worker']);
    await worker.line(/^schedule global: done/);
    const roles = await database.sql<{ roles: string[] }[]>`select roles from ops.instance`;
    // All roles run in this process, and have its number as owner.
    expect(roles).toHaveLength(1);
    expect(
      http
        .lines()
        .concat(scheduler.lines())
        .some(({ msg }) => /^schedule /.test(msg)),
    ).toBe(false);
  });

  test('waits for a migration by another process, reports that, and continues', async (context) => {
    const { database, start } = await setScene(context);
    const [last] = await database.sql<{ hash: string; createdAt: number; name: string }[]>`
      delete from ops.migration where id = (select max(id) from ops.migration) returning *`;
    const service = start();
    await service.line(/^the database: this database lacks migration .*; run: chandler migrate/);
    expect(await service.get('/ready')).toMatchObject({ status: 503 });
    expect(JSON.parse((await service.get('/health')).text)).toMatchObject({
      status: 'waiting',
      incidents: [{ what: 'the database' }],
    });
    const { hash, createdAt, name } = last!;
    await database.sql`insert into ops.migration (hash, created_at, name) values (${hash}, ${createdAt}, ${name})`;
    await service.line(/^the database recovered/);
    await service.line(/^ready/);
  });

  test('writes an attestation, keeps those of a month, and shows the newest root in /health', async (context) => {
    const { database, start } = await setScene(context);
    const folder = await mkdtemp(join(tmpdir(), 'attest-'));
    context.onTestFinished(() => rm(folder, { recursive: true }));
    const dir = join(folder, 'attestations');
    const key = join(folder, 'key.pem');
    await writeFile(key, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }));
    await mkdir(dir);
    const old = Array.from({ length: 62 }, (_, day) => {
      const date = new Date(Date.UTC(2020, 0, 5 + day)).toISOString().slice(0, 10);
      return `attestation-${date}.jsonl`;
    });
    for (const name of [...old, 'attestation-20200110T000000Z.jsonl']) await writeFile(join(dir, name), 'old\n');
    const service = start([], { CHANDLER_ATTEST_DIR: dir, CHANDLER_ATTEST_KEY: key });
    await service.line(/^schedule attest: done/);
    const left = (await readdir(dir)).sort();
    const [newest] = left.slice(-1);
    // Today's, the thirty before it, the first of each earlier month, and the file that the service did not write.
    expect(left).toEqual(
      [
        old[0]!,
        'attestation-2020-02-01.jsonl',
        ...old.slice(-30),
        newest!,
        'attestation-20200110T000000Z.jsonl',
      ].sort(),
    );
    const { code, out } = await runCommand(['verify', '--against', join(dir, newest!), '--json'], {
      env: { DATABASE_URL: database.url },
    });
    expect({ code, tampered: JSON.parse(out).counts.tampered ?? 0 }).toEqual({ code: 0, tampered: 0 });
    const last = JSON.parse((await readFile(join(dir, newest!), 'utf8')).trimEnd().split('\n').at(-1)!);
    // Several tests run at once, so only the context knows which one asks.
    await context.expect
      .poll(async () => JSON.parse((await service.get('/health')).text).attestation, { timeout: 60_000 })
      .toMatchObject({ file: newest, root: last.root, isSigned: true });
    expect(last.signature).toEqual(expect.any(String));
  });

  test('keeps a lake up to date, and reports when it cannot', async (context) => {
    const { database, start } = await setScene(context);
    const folder = await mkdtemp(join(tmpdir(), 'lake-'));
    context.onTestFinished(() => rm(folder, { recursive: true }));
    const lake = join(folder, 'lake');
    const first = start([], { CHANDLER_LAKE_URL: lake, CHANDLER_LAKE_DATASETS: 'coins' });
    await first.line(/^schedule lake: done/);
    // No data is kept for a limited time, so retention does not hold the lake up.
    const ofLake = first.lines().filter(({ schedule }) => schedule === 'lake');
    expect(ofLake.map(({ msg }) => msg)).toEqual(['schedule lake: done']);
    await first.stop();
    const env = { DATABASE_URL: database.url };
    const { code, out } = await runCommand(['verify', '--files', lake, '--json'], { env });
    expect([code, JSON.parse(out).findings]).toEqual([0, []]);
    const status = async (place: string) => {
      const found = await runCommand(['status'], { env: { ...env, CHANDLER_LAKE_URL: place } });
      return found.out.split('\n').find((line) => line.startsWith('Lake '));
    };
    expect(await status(lake)).toMatch(/^Lake .*\/lake: as of /);
    const shown = await runCommand(['schedule'], { env: { ...env, CHANDLER_LAKE_URL: lake } });
    expect(shown.out).toMatch(/^lake +/m);
    expect((await runCommand(['schedule'], { env })).out).not.toMatch(/^lake +/m);
    // An export made by hand is there: no later attempt changes that.
    await rm(lake, { recursive: true });
    expect((await runCommand(['export', '--out', lake, '--what', 'coins'], { env })).code).toBe(0);
    await database.sql`delete from ops.schedule_run where schedule = 'lake'`;
    const second = start([], { CHANDLER_LAKE_URL: lake, CHANDLER_LAKE_DATASETS: 'coins' });
    expect(await second.line(/^schedule failed/)).toMatchObject({
      message: expect.stringContaining('has an export that was made by hand'),
    });
    expect(await status(lake)).toMatch(/; the last run failed: .*has an export that was made by hand/);
    await second.stop();
  });

  test('creates the schema in an empty database', async (context) => {
    const { start } = await setScene(context);
    const empty = await createEmptyDatabase();
    try {
      const service = start([], { DATABASE_URL: empty.url });
      await service.line(/^schedule coins: done/);
      await service.stop();
    } finally {
      await empty.drop();
    }
  });

  test('waits for a database that is not available yet', async (context) => {
    const { start } = await setScene(context);
    const service = start([], { DATABASE_URL: 'postgres://u@127.0.0.1:1/x' });
    await service.line(/^the database: .*127\.0\.0\.1:1/);
    expect(await service.get('/health')).toMatchObject({ status: 200 });
    expect(await service.stop()).toBe(0);
  });

  if (testRedisUrl() !== null) testStartedWhileDown('the queue');

  test('refuses schedules that need more than the quota, and shows the calculation', async (context) => {
    const { env, database } = await setScene(context);
    const { code, err } = await runCommand(['service'], {
      env: { ...env, CHANDLER_DAILY_REQUESTS: '100', CHANDLER_SCHEDULE_TICKERS: '* * * * *' },
    });
    expect(code).toBe(2);
    // It ended by itself: it is not reported as missing, and the log has the reason.
    expect(await database.sql`select from ops.instance`).toHaveLength(0);
    expect(await database.sql`select message from ops.audit where command = 'service'`).toEqual([
      { message: expect.stringMatching(/^the schedules alone need/) },
    ]);
    expect(err).toMatch(/the schedules alone need [\d,]+ requests in a day \(tickers 1,440 × 1 .*the limit is 100/);
  });

  test.for([
    [['--role', 'boss'], /--role.*must be one of scheduler, worker, http, all/],
    [['--concurrency', '0'], /--concurrency.*whole number from 1 to 32/],
  ] as const)('reports what is wrong with %j', async ([argv, problem], context) => {
    const { env } = await setScene(context);
    const { code, err } = await runCommand(['service', ...argv], { env });
    expect(code).toBe(2);
    expect(err).toMatch(problem);
  });
});
