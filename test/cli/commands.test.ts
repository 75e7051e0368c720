import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ownerName } from '../../src/cli/shell/owner.ts';
import { systemClock } from '../../src/clock.ts';
import { DAY, floorToGrid } from '../../src/core/interval.ts';
import { recordHistoryLimit } from '../../src/store/candle/refusal.ts';
import { makeCurrentAccount, saveAccount } from '../../src/store/quota/account.ts';
import { runCommand } from '../support/cli.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/database.ts';
import { schedulerSeen } from '../support/scheduler-seen.ts';
import { seedSeries } from '../support/warehouse.ts';

const TODAY = floorToGrid(systemClock.now(), '24h');
const day = (ago: number) => new Date(TODAY - ago * DAY).toISOString().slice(0, 10);
const span = (fromAgo: number, toAgo: number) => ({ from: TODAY - fromAgo * DAY, to: TODAY - toAgo * DAY });

/** A process of this machine that has ended. */
const GONE = ownerName(spawnSync(process.execPath, ['--version']).pid);

let database: TestDatabase;
let env: { DATABASE_URL: string };
const chandler = (...argv: string[]) => runCommand(argv, { env });
const json = async (...argv: string[]) => {
  const { code, out, err } = await chandler(...argv, '--json');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return JSON.parse(out);
};

beforeAll(async () => {
  database = await createTestDatabase();
  env = { DATABASE_URL: database.url };
  const { sql } = database;
  // Twenty days are wanted. Three in the middle and the newest five are missing. One of those is waiting.
  const id = await seedSeries(sql, {
    coinId: 'btc-bitcoin',
    interval: '24h',
    wanted: [span(20, 0)],
    covered: [span(20, 13), span(10, 5)],
    candles: Array.from({ length: 7 }, (_, i) => TODAY - (20 - i) * DAY),
  });
  await sql`insert into ops.second_opinion (series_id, span, claim, requested_at, retry_at)
    values (${id}, tstzrange(${day(5)}, ${day(4)}), 'malformed', now(), now() + interval '2 hours 30 seconds')`;
  await seedSeries(sql, {
    coinId: 'eth-ethereum',
    interval: '24h',
    wanted: [span(9, 5)],
    covered: [span(9, 5)],
    candles: [],
  });
  await sql`insert into ops.backfill (requested_at, started_at, state, spec, span, interval, quote, planned_requests, owner, heartbeat_at)
    values (now() - interval '1 hour', now() - interval '1 hour', 'running', '{}', '[2024-01-01,2024-02-01)', '24h', 'usd', 12, 'host:1', now() - interval '10 minutes'),
      (now() - interval '1 hour', now() - interval '1 hour', 'running', '{}', '[2024-01-01,2024-02-01)', '24h', 'usd', 12, 'host:2', now() - interval '5 seconds'),
      (now() - interval '1 hour', now() - interval '1 hour', 'running', '{}', '[2024-01-01,2024-02-01)', '24h', 'usd', 12, ${GONE}, now() - interval '5 seconds')`;
});
// Two of the three owners renewed their leases just now, however long the earlier tests took.
beforeEach(async () => {
  await database.sql`update ops.backfill set heartbeat_at = now() - interval '5 seconds' where owner <> 'host:1'`;
});
afterAll(() => database.drop());

describe('migrate', () => {
  test('migrates an empty database, and then has nothing to do', async () => {
    const empty = await createEmptyDatabase();
    try {
      const there = { env: { DATABASE_URL: empty.url } };
      const before = await runCommand(['status'], there);
      expect(before).toMatchObject({ code: 1, err: 'error: this database is empty; run: chandler migrate\n' });
      expect((await runCommand(['migrate'], there)).out).toMatch(/^Applied \d+ migrations: 0000_coins_and_candles, /);
      expect((await runCommand(['migrate'], there)).out).toBe('The schema is up to date.\n');
      expect((await runCommand(['migrate', '--json'], there)).out).toBe('{"applied":[]}\n');
      expect((await runCommand(['status'], there)).out).toContain(
        'There are no series yet. Begin with: chandler backfill',
      );
      expect((await runCommand(['gaps'], there)).out).toBe('There are no series yet.\n');
    } finally {
      await empty.drop();
    }
  });

  test('refuses a database whose encoding lacks characters, names it, and changes nothing', async () => {
    const name = `chandler_latin_${randomUUID().slice(0, 8)}`;
    await database.sql.unsafe(`create database ${name} encoding 'LATIN1' locale 'C' template template0`);
    const url = new URL(database.url);
    url.pathname = `/${name}`;
    try {
      const there = { env: { DATABASE_URL: url.href } };
      const { code, err } = await runCommand(['migrate'], there);
      expect(code).toBe(1);
      expect(err).toContain(`the database '${name}' has the encoding LATIN1`);
      expect(err).toContain('createdb --encoding=UTF8');
      expect((await runCommand(['status'], there)).err).toContain('this database is empty');
    } finally {
      await database.sql.unsafe(`drop database ${name} with (force)`);
    }
  });
});

describe('status', () => {
  test('shows series by interval, and running backfills with their last heartbeat', async () => {
    const { code, out } = await chandler('status');
    expect(code).toBe(0);
    expect(out).toMatch(/^24h +usd +2 +24 +16 +8 +1 +69\.6% +7 +/m);
    expect(out).toMatch(/^2 +24h usd +2024-01-01 … 2024-02-01 +0 of 12 +1h ago +\d+ s ago +host:2$/m);
  });

  test('does not show a run as running when its process has no heartbeat', async () => {
    const { out } = await chandler('status');
    expect(out).toMatch(
      /^Backfill 1 \(24h usd, 2024-01-01 … 2024-02-01\): no heartbeat since .*Z \(10m( \d+s)? ago\)\.\nIts process host:1 was killed/m,
    );
    expect(out).toMatch(new RegExp(`^Backfill 3 .*: no heartbeat since .*\\nIts process ${GONE} was killed`, 'm'));
  });

  test('shows the same as JSON', async () => {
    const status = await json('status');
    expect(status.series).toMatchObject([
      {
        interval: '24h',
        quote: 'usd',
        series: 2,
        slotsWanted: 24,
        slotsCovered: 16,
        slotsMissing: 8,
        slotsUnsettled: 1,
        candles: 7,
        finalUntil: `${day(5)}T00:00:00.000Z`,
      },
    ]);
    expect(status.backfills).toMatchObject([
      { id: 1, plannedRequests: 12, requests: 0, owner: 'host:1', isSilent: true },
      { id: 2, owner: 'host:2', isSilent: false },
      { id: 3, owner: GONE, isSilent: true },
    ]);
  });
});

describe('gaps', () => {
  test('lists each gap with its reason and the time of its next request', async () => {
    const { code, out } = await chandler('gaps');
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`btc-bitcoin +24h usd +${day(13)} +${day(10)} +3 +not asked yet`));
    expect(out).toMatch(new RegExp(`${day(5)} +${day(4)} +1 +malformed +in 2h`));
    expect(out).toMatch(
      /^3 gaps: 7 slots not asked yet, 1 slot malformed; of these, 1 slot too recent for a final answer\.$/m,
    );
  });

  test('prints a long message of the upstream once, however many gaps it explains', async () => {
    const { sql } = database;
    const account = { id: 'a@upstream.test', origin: 'http://upstream.test', plan: 'free' } as const;
    const answer =
      'upstream.test answered 402: Getting historical OHLCV data before 2026-11-20 is not allowed in this plan';
    await saveAccount(sql, { ...account, authScheme: 'bearer', accountPath: null, checkedAt: null, monthLimit: null });
    await makeCurrentAccount(sql, account.id);
    const limit = { plan: 'free', interval: '24h', depthMs: 4 * DAY, message: answer, refusedAt: TODAY } as const;
    await recordHistoryLimit(sql, limit);
    try {
      const { out } = await runCommand(['gaps'], { env, columns: 100 });
      expect(out.split(answer)).toHaveLength(2);
      expect(out).toMatch(new RegExp(`btc-bitcoin +24h usd +${day(13)} +${day(10)} +3 +history limit \\[1\\]$`, 'm'));
      expect(out).toContain(`\n[1] ${answer}\n`);
      expect((await json('gaps')).map((gap: { detail: string }) => gap.detail)).toContain(answer);
    } finally {
      await sql`delete from market.refusal`;
      await sql`delete from ops.account`;
    }
  });

  test('adds up to the missing slots in status', async () => {
    const rows: { slots: number }[] = await json('gaps');
    const status = await json('status');
    expect(rows.reduce((sum, gap) => sum + gap.slots, 0)).toBe(status.series[0].slotsMissing);
  });

  test('filters by coin, reason and limit', async () => {
    expect(await json('gaps', 'eth-ethereum')).toEqual([]);
    expect(await json('gaps', '--reason', 'malformed')).toMatchObject([
      { coinId: 'btc-bitcoin', from: `${day(5)}T00:00:00.000Z`, to: `${day(4)}T00:00:00.000Z`, slots: 1 },
    ]);
    expect(await json('gaps', '--limit', '1')).toHaveLength(1);
    expect((await chandler('gaps', '--limit', '1')).out).toContain('3 gaps (1 shown; --all shows every one)');
  });

  test('does not claim more than it has read', async () => {
    expect((await chandler('gaps', '--reason', 'history limit')).out).toBe(
      'No gaps with the reason history limit; 8 slots missing for other reasons.\n',
    );
    expect((await chandler('gaps', 'eth-ethereum')).out).toBe(
      'No gaps: every wanted slot of eth-ethereum has its final answer.\n',
    );
    expect((await chandler('gaps', 'btc-bitcoin', '--interval', '5m')).out).toBe(
      'There are no series of btc-bitcoin: 5m candles.\n',
    );
    expect((await chandler('gaps', '--quote', 'btc')).out).toBe('There are no series of any interval in btc.\n');
  });

  test('and verify refuses coins of which one has no such series: exit code 0 would read as a proof', async () => {
    const id = await seedSeries(database.sql, {
      ...{ coinId: 'btc-bitcoin', interval: '1h', wanted: [], covered: [], candles: [] },
    });
    const verify = (...coins: string[]) => chandler('verify', ...coins, '--interval', '1h');
    expect((await verify('btc-bitcoin')).code).toBe(0);
    expect(await verify('btc-bitcoin', 'eth-ethereum')).toMatchObject({
      code: 2,
      err: 'error: there are no series of eth-ethereum: 1h candles; chandler status lists what is stored\n',
    });
    await database.sql`delete from market.series where id = ${id}`;
  });

  test.each(['btc-bitcion', 'BTC'])('refuses %s, which is no id, and names the nearest', async (given) => {
    const { code, err } = await chandler('gaps', given);
    expect(code).toBe(2);
    expect(err).toBe(
      `error: there are no series of ${given} (did you mean btc-bitcoin?); a coin is named by its id, like btc-bitcoin\n`,
    );
  });
});

describe('quota', () => {
  test('shows both windows of the account and what is left, and sends no request', async () => {
    await schedulerSeen(database, { accountId: 'anonymous@api.coinpaprika.com', at: systemClock.now() });
    const quota = await json('quota');
    expect(quota).toMatchObject({
      account: 'anonymous@api.coinpaprika.com',
      plan: 'free',
      planSource: 'configured',
      month: { spent: 0, limit: 20_000 },
      day: { spent: 0, limit: 1000 },
      requestsPerSecond: { limit: 10, now: 10 },
      hold: null,
    });
    expect(quota.month.left).toBe(20_000 - quota.month.reserved);
    const { out } = await chandler('quota');
    expect(out).toMatch(/^Account anonymous@api\.coinpaprika\.com, plan free \(as configured\)$/m);
    expect(out).toMatch(/^month +0 +[\d,]+ +[\d,]+ +20,000 +\d{4}-\d\d-01 00:00Z \(in /m);
    expect(out).toContain(
      'Reserved for the schedules until each reset: tickers, 1 request at */15 * * * *; global, 1 request at */30 * * * *; coins, 1 request at 7 */6 * * *; exchanges, 1 request at 22 0 * * *; rates, 14 requests at 47 3 * * *; the catalogue, ',
    );
    expect(quota.scheduled.slice(0, 5)).toEqual([
      { name: 'tickers', requests: 1, cron: '*/15 * * * *' },
      { name: 'global', requests: 1, cron: '*/30 * * * *' },
      { name: 'coins', requests: 1, cron: '7 */6 * * *' },
      { name: 'exchanges', requests: 1, cron: '22 0 * * *' },
      { name: 'rates', requests: 14, cron: '47 3 * * *' },
    ]);
  });

  test('never shows the key', async () => {
    const withKey = await runCommand(['quota'], { env: { ...env, CHANDLER_API_KEY: 'hunter2hunter2' } });
    expect(withKey.out).toMatch(
      /^Account key-[0-9a-f]{12}@api-pro\.coinpaprika\.com, plan free \(assumed, not confirmed yet\)$/m,
    );
    expect(withKey.out).not.toContain('hunter2');
  });
});

describe('sql', () => {
  test('prints rows as a table, and what statements without rows did', async () => {
    const { code, out } = await chandler(
      'sql',
      "create temp table t (a int, b text); insert into t values (1, 'x'), (20, null); select * from t",
    );
    expect(code).toBe(0);
    expect(out).toBe('CREATE TABLE\nINSERT 2\n a  b\n──  ─\n 1  x\n20\n(2 rows)\n');
  });

  test('takes a statement that begins with a comment, and still refuses an unknown option', async () => {
    for (const comment of ['-- one\n', '--one\n', '--\n'])
      expect(await chandler('sql', `${comment}select 1 as one`), comment).toMatchObject({ code: 0, err: '' });
    expect((await chandler('sql', '-- one\nselect 1;\nselect x')).err).toMatch(/line 3, column 8/);
    expect((await chandler('sql', '-- only a comment')).code).toBe(0);
    expect(await chandler('sql', '--jsom')).toMatchObject({ code: 2, err: expect.stringContaining('--jsom') });
  });

  test('reads statements from a pipe', async () => {
    expect(
      (await runCommand(['sql'], { env, stdin: 'select count(*) as series\nfrom market.series;\n' })).out,
    ).toContain('     2\n(1 row)\n');
  });

  test('prints JSON with the types of the columns', async () => {
    const statement = `select 1 as a, 2 as a, 1.5::numeric as n, 9007199254740993 as big, 'NaN'::float8 as nan, true as yes,
      null as nil, '{"x":[1]}'::jsonb as j, '2024-01-02 03:04:05.5Z'::timestamptz as at, '2024-01-02'::date as d`;
    expect(await json('sql', statement)).toEqual([
      {
        a: 1,
        a_2: 2,
        n: 1.5,
        big: '9007199254740993',
        nan: 'NaN',
        yes: true,
        nil: null,
        j: { x: [1] },
        at: '2024-01-02T03:04:05.5Z',
        d: '2024-01-02',
      },
    ]);
    expect((await chandler('sql', '--json', 'select 1 as a where false; set work_mem to default')).out).toBe(
      '[]\n{"command":"SET","count":null}\n',
    );
  });

  test('prints any number of rows as JSON, and says when a table does not show all', async () => {
    expect(await json('sql', 'select g from generate_series(1, 20000) g')).toHaveLength(20_000);
    const { out } = await chandler('sql', 'select g from generate_series(1, 10001) g');
    expect(out).toMatch(/^\(10,001 rows; 1 more are not shown: --json prints all\)$/m);
  });

  test('prints an error with its position and its hint, and keeps what earlier statements did', async () => {
    const { code, out, err } = await chandler('sql', 'select 1 as one;\nselect *\n  from market.candels');
    expect(code).toBe(1);
    expect(out).toContain('(1 row)');
    expect(err).toBe('error: relation "market.candels" does not exist (line 3, column 8)\n');
    expect((await chandler('sql', 'select clos from market.candles')).err).toMatch(
      /\(line 1, column 8\)\. Perhaps you meant/,
    );
    expect((await chandler('sql', 'select 1/0')).err).toBe('error: division by zero\n');
  });

  test('prints the output of copy to stdout as it arrives', async () => {
    const copy = "copy (select i, 'a,b' as text from generate_series(1, 3) i) to stdout";
    const csv = await chandler('sql', `select 1 as one; ${copy} (format csv, header); select 2 as two`);
    expect(csv).toMatchObject({ code: 0, err: '' });
    expect(csv.out).toBe('one\n───\n  1\n(1 row)\ni,text\n1,"a,b"\n2,"a,b"\n3,"a,b"\ntwo\n───\n  2\n(1 row)\n');
    expect((await chandler('sql', "/* a list */ copy (select 'from stdin', '-- it''s') to stdout")).out).toBe(
      "from stdin\t-- it's\n",
    );
    const failed = await chandler('sql', 'copy (select 1 / (2 - i) from generate_series(1, 3) i) to stdout');
    expect(failed).toMatchObject({ code: 1, err: 'error: division by zero\n' });
    const wanted = await chandler('sql', 'copy (select nonsense) to stdout');
    expect(wanted.err).toBe('error: column "nonsense" does not exist (line 1, column 14)\n');
    expect(await chandler('sql', 'copy market.coin from stdin')).toMatchObject({
      code: 1,
      err: 'error: copy from stdin needs psql: open it with chandler sql, or connect it to the address of chandler db url\n',
    });
  });
});

describe('doctor', () => {
  test('goes on with the checks that do not depend on the failed one', async () => {
    const gone = { CHANDLER_HOME: `${import.meta.filename}/deeper`, REDIS_URL: 'redis://127.0.0.1:1' };
    const { code, out } = await runCommand(['doctor', '--json'], { env: gone });
    expect(code).toBe(1);
    const failed = JSON.parse(out).filter((check: { state: string }) => check.state === 'fail');
    expect(failed.map((check: { name: string }) => check.name)).toEqual(['home folder', 'Redis']);
  });

  test('says whether the attestations of each day can be written and signed', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'doctor-'));
    const checked = async (env: Record<string, string>) => {
      const { out } = await runCommand(['doctor', '--json'], {
        env: { REDIS_URL: 'redis://127.0.0.1:1', ...gone, ...env },
      });
      return (JSON.parse(out) as { name: string; state: string; found: string }[]).find(
        ({ name }) => name === 'attestations',
      );
    };
    const gone = { CHANDLER_HOME: `${import.meta.filename}/deeper` };
    try {
      expect(await checked({})).toBeUndefined();
      expect(await checked({ CHANDLER_ATTEST_DIR: path.join(folder, 'new') })).toMatchObject({
        state: 'ok',
        found: `one a day in ${path.join(folder, 'new')}, not signed`,
      });
      const file = { CHANDLER_ATTEST_DIR: import.meta.filename };
      expect(await checked(file)).toMatchObject({ state: 'fail', found: `${import.meta.filename} is not a folder` });
      const key = { CHANDLER_ATTEST_DIR: folder, CHANDLER_ATTEST_KEY: path.join(folder, 'none.pem') };
      const failed = await checked(key);
      expect(failed?.state).toBe('fail');
      expect(failed?.found).toMatch(/^CHANDLER_ATTEST_KEY: .*none\.pem cannot be read/);
      const { out } = await runCommand(['doctor', '--json'], { env: { ...gone, ...key, ...file } });
      const both = (JSON.parse(out) as { name: string; state: string }[]).filter(({ name }) => name === 'attestations');
      expect(both.map(({ state }) => state)).toEqual(['fail', 'fail']);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('says whether the lake can be written, and what it contains', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'lake-'));
    const checked = async (lake: string) => {
      const env = { CHANDLER_HOME: `${import.meta.filename}/deeper`, CHANDLER_LAKE_URL: lake };
      const { out } = await runCommand(['doctor', '--json'], { env });
      return (JSON.parse(out) as { name: string }[]).find(({ name }) => name === 'lake');
    };
    try {
      const file = path.join(folder, 'manifest.json');
      expect(await checked(path.join(folder, 'new'))).toMatchObject({
        state: 'ok',
        found: `${path.join(folder, 'new')}, nothing there yet`,
      });
      const head = { manifest: 1, kind: 'lake', at: '2025-01-02T03:04:00.000Z' };
      await writeFile(file, `${JSON.stringify(head).slice(0, -1)},\n`);
      expect(await checked(folder)).toMatchObject({ state: 'ok', found: `${folder}, as of 2025-01-02 03:04Z` });
      await writeFile(file, `${JSON.stringify({ ...head, kind: 'export' }).slice(0, -1)},\n`);
      expect(await checked(folder)).toMatchObject({
        state: 'fail',
        found: `${folder} has an export that was made by hand`,
      });
      await writeFile(file, 'mine\n');
      expect(await checked(folder)).toMatchObject({
        state: 'fail',
        found: `manifest.json in ${folder} is not a manifest of an export`,
      });
      expect(await checked(import.meta.filename)).toMatchObject({
        state: 'fail',
        found: `${import.meta.filename} cannot be written (ENOTDIR)`,
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('prints its findings, warns of abandoned work, and succeeds', async () => {
    const { code, out } = await chandler('doctor');
    expect(code).toBe(0);
    expect(out).toMatch(/^ ok {3}Node +(20|22|24)\./m);
    expect(out).toMatch(/ ok {3}database +Postgres 1[5-8]/);
    expect(out).toMatch(/warn {2}backfill 1 +host:1 sent its last heartbeat 10m( \d+s)? ago\n +→ run the same/);
    expect(out).toMatch(/Chandler is ready, 1 warning\.\n$/);
  });

  test('fails when something must be repaired, and says how', async () => {
    const absent = { DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/x', REDIS_URL: 'redis://:hunter2@127.0.0.1:1' };
    const { code, out } = await runCommand(['doctor', '--json'], { env: absent });
    expect(code).toBe(1);
    const failed = JSON.parse(out).filter((check: { state: string }) => check.state === 'fail');
    expect(failed).toEqual([
      {
        name: 'Redis',
        state: 'fail',
        found: 'no Redis answers at 127.0.0.1:1 (connection refused)',
        fix: expect.stringContaining('leave REDIS_URL out'),
      },
      {
        name: 'database',
        state: 'fail',
        found: expect.stringContaining('127.0.0.1:1'),
        fix: expect.stringContaining('start it'),
      },
    ]);
    expect(out).not.toContain('hunter2');
  });

  test('names settings that contradict each other', async () => {
    const lines = async (more: Record<string, string>) =>
      (await runCommand(['doctor'], { env: { ...env, ...more } })).out;
    expect(await lines({ CHANDLER_PLAN: 'pro' })).toMatch(/FAIL {2}plan +pro needs a key/);
    expect(await lines({ CHANDLER_BASE_URL: 'https://api-pro.coinpaprika.com/v1' })).toMatch(
      /FAIL {2}key +.*answers only with a key/,
    );
    expect(await lines({ CHANDLER_API_KEY: 'k', CHANDLER_BASE_URL: 'http://example.org/v1' })).toMatch(
      /warn {2}key +.*unencrypted/,
    );
    expect(await lines({ CHANDLER_APIKEY: 'k' })).toMatch(/FAIL {2}configuration +CHANDLER_APIKEY is not a setting/);
  });
});
