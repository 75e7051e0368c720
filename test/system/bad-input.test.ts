import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Listening, listen } from '../../src/service/http/listen.ts';
import { runCommand } from '../support/cli.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type CliResult, runCli } from '../support/program.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';

let database: TestDatabase;
let untouched: TestDatabase;
let upstream: SimulatedUpstream;
let website: Listening;
let folder: string;
let good: Record<string, string>;

beforeAll(async () => {
  database = await createTestDatabase();
  untouched = await createEmptyDatabase();
  upstream = await startUpstream({ seed: 3, coins: 20, limits: { keys: { right: 'pro' } } });
  const page = () =>
    new Response('<!doctype html><title>Welcome</title>', { headers: { 'content-type': 'text/html' } });
  website = await listen(async () => page(), { host: '127.0.0.1', port: 0 });
  folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-bad-input-'));
  good = { DATABASE_URL: database.url, CHANDLER_BASE_URL: `${upstream.url}/v1` };
  // The list of coins is known, and stored data exists that none of the tests below may change.
  const { code, err } = await runCommand(
    ['backfill', 'btc-bitcoin', '--start', '2024-01-01', '--end', '2024-02-01', '--yes', '--json'],
    { env: { ...good, CHANDLER_PLAN: 'enterprise' } },
  );
  expect(err).not.toMatch(/error/);
  expect(code).toBe(0);
  // A coin that left the list of coins under another id.
  await database.sql`
    insert into market.coin select (jsonb_populate_record(c, '{"id": "bit-old", "last_seen_at": "2024-01-01Z"}')).*
    from market.coin c where id = 'btc-bitcoin'`;
  await database.sql`insert into market.coin_rename (old_id, new_id, renamed_at, seen_at, source)
    values ('bit-old', 'btc-bitcoin', '2024-01-02Z', '2024-01-02Z', 'changelog')`;
});
afterAll(async () => {
  await upstream?.close();
  await website?.close();
  await database?.drop();
  await untouched?.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** One sentence after `error:`, perhaps with a list of problems, a proposal or a hint at the help. No stack, no secret. */
function expectOneSentence({ out, err }: Pick<CliResult, 'out' | 'err'>, message: RegExp): void {
  const errors = err.split('\n').filter((line) => line.startsWith('error: '));
  expect(errors, err).toHaveLength(1);
  expect(err).toMatch(message);
  expect(err).not.toMatch(/^\s+at .*:\d+:\d+/m);
  expect(err + out).not.toMatch(/hunter2|node_modules|node:internal|"stack"/);
}

/** All rows of our schemas, except for records of requests. */
async function everything(): Promise<unknown> {
  const [row] = await database.sql`
    select (select count(*)::int from market.series) as series, (select count(*)::int from ops.backfill) as backfills,
      (select count(*)::int from market.candle) as candles, (select string_agg(wanted::text, ' ') from market.series) as wanted,
      (select count(*)::int from market.refusal) as refusals`;
  return row;
}

const COIN = ['btc-bitcoin', '--start', '2024-01-01'];
describe('wrong usage is reported in one sentence, ends with 2 and changes nothing', () => {
  test.concurrent.each<[string[], RegExp]>([
    ...[
      [['btc-bitcion', '--start', '2024-01-01'], /the upstream has no coin btc-bitcion; did you mean btc-bitcoin\?/],
      [[...COIN, '--interval', '2h'], /There are no 2h candles; give 5m, 15m, 30m, 1h, 6h, 12h, 24h/],
      [[...COIN, '--interval', '1d'], /There are no 1d candles; give 24h/],
      [[...COIN, '--quote', 'eur'], /'eur' is invalid.*usd, btc/],
      [[...COIN, '--end', '2023-01-01'], /--end 2023-01-01 is not after --start 2024-01-01/],
      [['btc-bitcoin', '--start', '2099-01-01'], /--start 2099-01-01 lies in the future/],
      [['btc-bitcoin', '--start', '2024-02-30'], /--start '2024-02-30' is not a time.*2024-02 has 29 days/],
      [['btc-bitcoin', '--start', '-5'], /--start '-5' is not a time.*5 days before now write -5d/],
      [['btc-bitcoin', '--start', '2024-01-01T10:00'], /needs its zone: 2024-01-01T10:00Z/],
      [[...COIN, '--end', 'tomorrow'], /--end 'tomorrow' is not a time.*2024-01-31/],
      [[...COIN, '--top', '-5'], /'--top <n>' argument '-5' is invalid.*above 0/],
      [['--start', '2024-01-01'], /No coins given; give ids like btc-bitcoin/],
      [['btc-bitcoin'], /--start is missing; give one like --start 2024-01-01/],
      [['', '--start', '2024-01-01'], /A coin id is empty; ids look like btc-bitcoin/],
      [['btc-bitcoin', '--strat', '2024-01-01'], /unknown option '--strat'[\s\S]*Did you mean --start\?/],
    ].map(([args, message], i): [string[], RegExp] => [
      [i % 2 === 0 ? 'backfill' : 'plan', ...(args as string[])],
      message as RegExp,
    ]),
    [['backfill', ...COIN, '--concurrency', '-1'], /'-1' is invalid.*from 1 to 32/],
    [['backfill', ...COIN, '--max-wait', '-5m'], /'-5m' is invalid.*90s, 5m, 2h/],
    [['bakfill', ...COIN], /unknown command 'bakfill'[\s\S]*Did you mean backfill\?/],
    ...['backfill', 'plan'].map((command): [string[], RegExp] => [
      [command, 'bit-old', '--start', '2024-01-01'],
      /the coin bit-old has the id btc-bitcoin now/,
    ]),
    [['explain', 'bit-old', '24h', '2024-01-06'], /the coin bit-old has the id btc-bitcoin now/],
    [['verify', 'bit-old'], /there are no series of bit-old \(its id is btc-bitcoin now\)/],
    [['verify', 'btc-bitcion'], /btc-bitcion \(did you mean btc-bitcoin\?\)/],
    [
      ['verify', 'btc-bitcoin', '--interval', '5m'],
      /there are no series of btc-bitcoin: 5m candles; chandler status lists/,
    ],
    [['verify', 'btc-bitcoin', 'btc-bitcion', '--quote', 'btc'], /no series of btc-bitcion \(did you mean/],
    [['verify', '--quote', 'btc'], /there are no series of any interval in btc/],
    [['verify', '--interval', '2h'], /'2h' is invalid.*24h/],
    [['verify', '--quote', 'eur'], /'eur' is invalid.*usd, btc/],
    [['simulate', '--port', '-1'], /'-1' is invalid.*from 0 to 65535/],
    [['simulate', '--coins', '-1'], /'-1' is invalid.*from 1 to 65000/],
    [['simulate', '--latency', '-1s'], /'-1s' is invalid/],
    [['simulate', '--market', 'recoded'], /'recoded' is invalid.*did you mean recorded\?/],
    [['simulate', '--plan', 'gold'], /'gold' is invalid.*free, starter, pro/],
    [['simulate', '--faults', '50:0.1'], /'50:0.1' is invalid/],
    [['simulate', '--faults', '500:2'], /from 0 to 1/],
  ])('%j', async (argv, message) => {
    const before = await everything();
    const result = await runCommand(argv, { env: good });
    expectOneSentence(result, message);
    expect(result.code).toBe(2);
    expect(result.out).toBe('');
    expect(await everything()).toEqual(before);
  });
});

describe('wrong settings are reported in one sentence and end with 2', () => {
  test.concurrent.each<[Record<string, string>, RegExp]>([
    [
      { DATABASE_URL: 'localhost:5432/x' },
      /DATABASE_URL 'localhost:5432\/x' is not a Postgres address; .*postgres:\/\//,
    ],
    [{ DATABASE_URL: 'mysql://u:hunter2@h/x' }, /not a Postgres address/],
    [{ DATABASE_URL: 'postgres://u:hunter2@h' }, /DATABASE_URL 'postgres:\/\/u:\*\*\*@h' names no database/],
    [{ REDIS_URL: 'http://u:hunter2@h' }, /REDIS_URL is .*redis:\/\/host:6379/],
    [{ REDIS_URL: 'nonsense' }, /REDIS_URL is "nonsense".*redis:\/\/host:6379/],
    [{ CHANDLER_BASE_URL: 'https://example.org/api' }, /CHANDLER_BASE_URL is "https:\/\/example.org\/api".*\/v1/],
    [{ CHANDLER_BASE_URL: 'ftp://example.org/v1' }, /must start with https:\/\/ or http:\/\//],
    [{ CHANDLER_PLAN: 'gold' }, /CHANDLER_PLAN is "gold".*free, starter/],
    [{ CHANDLER_MONTHLY_REQUESTS: '-5' }, /CHANDLER_MONTHLY_REQUESTS is "-5".*above 0/],
    [{ CHANDLER_REQUESTS_PER_SECOND: '0' }, /CHANDLER_REQUESTS_PER_SECOND is "0".*above 0/],
    [{ CHANDLER_CANDLES_PER_REQUEST: '-1' }, /CHANDLER_CANDLES_PER_REQUEST is "-1"/],
    [{ CHANDLER_AUTH_SCHEME: 'basic' }, /CHANDLER_AUTH_SCHEME is "basic".*auto, bearer, bare/],
    [{ CHANDLER_LISTEN: 'localhost:99999' }, /CHANDLER_LISTEN is "localhost:99999"/],
    [
      { CHANDLER_APIKEY: 'hunter2' },
      /CHANDLER_APIKEY is not a setting of Chandler \(did you mean CHANDLER_API_KEY\?\)/,
    ],
    [
      { DATABASE_URL: '', DATABSE_URL: 'postgres://u:hunter2@h/x' },
      /DATABSE_URL is not a setting .*did you mean DATABASE_URL\?/,
    ],
    [{ REDIS_ULR: 'redis://:hunter2@h' }, /REDIS_ULR is not a setting .*did you mean REDIS_URL\?/],
  ])('%j', async (settings, message) => {
    const home = path.join(folder, `never-${Object.keys(settings).join()}-${Object.values(settings).join().length}`);
    const env = { ...good, CHANDLER_HOME: home, ...settings };
    const result = await runCommand(['backfill', ...COIN], { env });
    expectOneSentence(result, message);
    expect(result.code).toBe(2);
    expect(existsSync(home)).toBe(false);
  });

  test('all of them at once', async () => {
    const { code, err } = await runCli(['plan', ...COIN], {
      ...good,
      CHANDLER_PLAN: 'gold',
      LOG_LEVEL: 'loud',
      REDIS_URL: 'x',
    });
    expect(code).toBe(2);
    expect(err).toMatch(/^error: 3 settings are wrong:\n( {2}.*\n){3}$/);
  });
});

describe('a server that cannot be used is reported in one sentence', () => {
  const backfill = ['backfill', 'btc-bitcoin', '--start', '2023-01-01', '--end', '2024-01-01', '--yes'];
  test.concurrent.each<[string, () => Record<string, string>, RegExp, number]>([
    [
      'nothing listens where Postgres should',
      () => ({ DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/x' }),
      /no Postgres answers at 127.0.0.1:1 \(connection refused\); start it, or correct host and port in DATABASE_URL/,
      1,
    ],
    [
      'what listens there is not Postgres',
      () => ({ DATABASE_URL: `postgres://u:hunter2@${new URL(upstream.url).host}/x` }),
      /is not Postgres; correct host and port in DATABASE_URL/,
      2,
    ],
    [
      'there is no such database',
      () => ({ DATABASE_URL: `${database.url}_not` }),
      /the database '.*_not' does not exist on .*createdb/,
      2,
    ],
    [
      'there is no such host',
      () => ({ DATABASE_URL: 'postgres://u:hunter2@nowhere.invalid/x' }),
      /the host nowhere.invalid of DATABASE_URL cannot be found/,
      1,
    ],
    [
      'nothing listens where Redis should',
      () => ({ REDIS_URL: 'redis://:hunter2@127.0.0.1:1' }),
      /no Redis answers at 127.0.0.1:1 \(connection refused\); start it, correct REDIS_URL, or leave REDIS_URL out/,
      1,
    ],
    [
      'what listens there is not Redis',
      () => ({ REDIS_URL: `redis://${new URL(upstream.url).host}` }),
      /is not Redis; correct host and port in REDIS_URL/,
      2,
    ],
    [
      'there is no such host for Redis',
      () => ({ REDIS_URL: 'redis://:hunter2@nowhere.invalid' }),
      /the host nowhere.invalid of REDIS_URL cannot be found/,
      1,
    ],
    [
      'the key is wrong',
      () => ({ CHANDLER_API_KEY: 'hunter2' }),
      /the upstream refused the key \(.* answered 403: .*\), sent as Bearer and bare; set CHANDLER_API_KEY to a key that is valid/,
      2,
    ],
    [
      'a web site answers at the base URL',
      () => ({ CHANDLER_BASE_URL: `${website.url}/v1`, CHANDLER_PLAN: 'enterprise' }),
      /CHANDLER_BASE_URL does not answer like the market data API .*end in \/v1/,
      2,
    ],
    [
      'another path of the upstream is the base URL',
      () => ({ CHANDLER_BASE_URL: `${upstream.url}/api/v1`, CHANDLER_PLAN: 'enterprise' }),
      /CHANDLER_BASE_URL does not answer like the market data API .*end in \/v1/,
      2,
    ],
  ])('when %s', async (_, settings, message, code) => {
    const before = await database.sql`select coin_id, covered::text from market.series`;
    const result = await runCommand(backfill, { env: { ...good, ...settings() } });
    expectOneSentence(result, message);
    expect(result.code).toBe(code);
    expect(await database.sql`select coin_id, covered::text from market.series`).toEqual(before);
  });

  test('and leaves no run that seems to be running', async () => {
    expect(await database.sql`select from ops.backfill where state = 'running'`).toHaveLength(0);
  });

  test('a missing Redis is reported before anything is requested or planned', async () => {
    const redis = 'redis://127.0.0.1:1';
    const settings = { DATABASE_URL: untouched.url, CHANDLER_BASE_URL: good.CHANDLER_BASE_URL!, REDIS_URL: redis };
    const result = await runCommand(backfill, { env: settings });
    expectOneSentence(result, /no Redis answers at 127.0.0.1:1 \(connection refused\)/);
    expect(result.code).toBe(1);
    expect(result.out).toBe('');
    expect(await untouched.sql`select from ops.fetch`).toHaveLength(0);
    // A plan needs no queue.
    const planned = await runCommand([...backfill, '--dry-run'], { env: settings });
    expect(planned.code).toBe(0);
    await untouched.sql`delete from ops.fetch`;
    await untouched.sql`delete from market.coin`;
  });

  test('an upstream that never answered is reported at the first request', async () => {
    const plain = await listen(async () => new Response(''), { host: '127.0.0.1', port: 0 });
    const port = new URL(plain.url).port;
    try {
      for (const [base, key, message] of [
        ['http://127.0.0.1:1/v1', '', /CHANDLER_BASE_URL http:\/\/127.0.0.1:1\/v1 .*nothing listens there\); correct/],
        ['http://127.0.0.1:1/v1', 'hunter2', /CHANDLER_BASE_URL http:\/\/127.0.0.1:1\/v1 .*nothing listens there\)/],
        ['http://nowhere.invalid/v1', '', /the name nowhere.invalid is not known.*; correct the host/],
        [`https://127.0.0.1:${port}/v1`, '', /does not speak TLS.*; write http:\/\//],
      ] as const) {
        const settings = { DATABASE_URL: untouched.url, CHANDLER_BASE_URL: base, CHANDLER_API_KEY: key };
        const result = await runCommand(backfill, { env: settings });
        expectOneSentence(result, message);
        expect(result.code).toBe(2);
      }
    } finally {
      await plain.close();
    }
    expect(await untouched.sql`select from market.series`).toHaveLength(0);
    expect(await untouched.sql`select outcome from ops.fetch`).toHaveLength(4);
  });

  test('a run stops with 75 after --max-wait when the upstream goes away, and leaves nothing half-written', async () => {
    const shortLived = await listen(async () => Response.json({ error: 'invalid key' }, { status: 403 }), {
      host: '127.0.0.1',
      port: 0,
    });
    const settings = { ...good, CHANDLER_PLAN: 'enterprise', CHANDLER_BASE_URL: `${shortLived.url}/v1` };
    // It has answered before, so its address is not wrong.
    await runCommand(['doctor', '--online'], { env: settings });
    await shortLived.close();
    const result = await runCli([...backfill, '--max-wait', '1s'], settings);
    expect(result.code).toBe(75);
    expect(result.out).toMatch(
      /Stopped early: the upstream gives no valid answers.*longer than --max-wait allows\. Run the same command again/,
    );
    expect(result.err).not.toMatch(/^\s+at /m);
    expect(await database.sql`select state from ops.backfill order by id desc limit 1`).toEqual([{ state: 'stopped' }]);
  });
});

describe('the machine refuses', () => {
  test('a port that is in use', async () => {
    const taken = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    const { port } = taken.address() as net.AddressInfo;
    const result = await runCli(['simulate', '--port', String(port)]);
    taken.close();
    expectOneSentence(
      result,
      new RegExp(`port ${port} of 127.0.0.1 is in use by another program; choose another port with --port`),
    );
    expect(result.code).toBe(1);
  });

  test('a data folder whose place a file has', async () => {
    const file = path.join(folder, 'a-file');
    writeFileSync(file, 'mine');
    for (const home of [file, path.join(file, 'deeper')]) {
      const env = { CHANDLER_BASE_URL: good.CHANDLER_BASE_URL!, CHANDLER_HOME: home };
      const result = await runCommand(['plan', ...COIN], { env });
      expectOneSentence(result, /the data folder .*a-file.*; choose another folder with CHANDLER_HOME/);
      expect(result.code).toBe(2);
    }
    expect(readdirSync(folder).filter((name) => name.startsWith('a-file'))).toEqual(['a-file']);
  });
});
