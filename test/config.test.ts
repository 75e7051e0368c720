import { BlockList } from 'node:net';
import { describe, expect, test } from 'vitest';
import { secretsIn, secretsOf } from '../src/cli/shell/secrets.ts';
import { type Config, candlesPerRequest, effectiveLimits, parseConfig } from '../src/config.ts';
import { DAY } from '../src/core/interval.ts';
import { DEFAULT_RETENTION } from '../src/core/settings/retention-settings.ts';
import { FREE_BASE_URL, PAID_BASE_URL } from '../src/settings.ts';

function config(env: Record<string, string>): Config {
  const result = parseConfig(env);
  if ('problems' in result) throw new Error(result.problems.join('\n'));
  return result.ok;
}

function problems(env: Record<string, string>): readonly string[] {
  const result = parseConfig(env);
  return 'problems' in result ? result.problems : [];
}

describe('parseConfig', () => {
  test('without any setting gives the free plan, no key, and the embedded server', () => {
    expect(config({})).toEqual({
      databaseUrl: null,
      attest: null,
      lake: null,
      s3: { endpoint: null, region: 'us-east-1', pathStyle: false, credentials: null },
      serveDatabaseUrl: null,
      redisUrl: null,
      home: '.chandler',
      baseUrl: FREE_BASE_URL,
      rpcUrl: 'https://mcp.coinpaprika.com/json-rpc',
      apiKey: null,
      plan: 'free',
      limits: {},
      candlesPerRequest: null,
      authScheme: 'auto',
      cadences: {},
      listen: { host: '127.0.0.1', port: 8080 },
      operationsListen: null,
      serveLimits: true,
      trustedProxies: null,
      connectionsPerAddress: 200,
      serveSql: false,
      serveOrigins: [],
      keep: DEFAULT_RETENTION,
      notify: null,
      stuckAfterMs: 3_600_000,
      heartbeatUrl: null,
      logLevel: 'info',
    });
  });

  test('with a key uses the paid host and takes the plan from /users/me', () => {
    expect(config({ CHANDLER_API_KEY: 'abc' })).toMatchObject({ baseUrl: PAID_BASE_URL, plan: null, apiKey: 'abc' });
  });

  test('treats an empty variable as not set, as compose files write it', () => {
    expect(config({ CHANDLER_API_KEY: '', DATABASE_URL: ' ', LOG_LEVEL: '' })).toEqual(config({}));
  });

  test('reads every variable', () => {
    expect(
      config({
        DATABASE_URL: 'postgresql://u:p@db/x',
        CHANDLER_SERVE_DATABASE_URL: 'postgresql://r:p@replica/x',
        REDIS_URL: 'rediss://r:6380',
        CHANDLER_HOME: '/data',
        CHANDLER_BASE_URL: 'http://127.0.0.1:9000/v1/',
        CHANDLER_RPC_URL: 'http://127.0.0.1:9000/rpc',
        CHANDLER_API_KEY: 'k',
        CHANDLER_PLAN: 'Pro',
        CHANDLER_MONTHLY_REQUESTS: '5000',
        CHANDLER_DAILY_REQUESTS: 'unlimited',
        CHANDLER_REQUESTS_PER_SECOND: '0.5',
        CHANDLER_CANDLES_PER_REQUEST: '100',
        CHANDLER_AUTH_SCHEME: 'bare',
        CHANDLER_LISTEN: '[::1]:0',
        CHANDLER_OPERATIONS_LISTEN: '127.0.0.1:9090',
        CHANDLER_SERVE_LIMITS: 'OFF',
        CHANDLER_TRUSTED_PROXIES: '10.0.0.0/8, ::1',
        CHANDLER_CONNECTIONS_PER_ADDRESS: 'unlimited',
        CHANDLER_SERVE_SQL: 'on',
        CHANDLER_SERVE_ORIGINS: 'https://app.example, http://localhost:5173',
        CHANDLER_KEEP_TICKERS: '30d',
        CHANDLER_KEEP_FETCHES: '1y',
        CHANDLER_KEEP_GLOBAL: '52w',
        CHANDLER_KEEP_EXCHANGES: 'forever',
        CHANDLER_KEEP_CANDLES: '5m=90d, 1h=2y',
        CHANDLER_WEBHOOK_URL: 'https://hooks.example.com/services/T0/B0/x?y=z',
        CHANDLER_NOTIFY: 'stuck quota',
        CHANDLER_STUCK_AFTER: '2h',
        CHANDLER_HEARTBEAT_URL: 'https://hc.example.com/0b7e3f4a-5d66',
        CHANDLER_REVISIONS_A_DAY: '7',
        LOG_LEVEL: 'debug',
        CHANDLER_SCHEDULE_TICKERS: ' */5  * * * * ',
        CHANDLER_SCHEDULE_GLOBAL: 'OFF',
        CHANDLER_SCHEDULE_RETENTION: '@weekly',
        CHANDLER_ATTEST_DIR: 'attestations',
        CHANDLER_ATTEST_KEY: 'key.pem',
        CHANDLER_LAKE_URL: 's3://bucket/a/b/',
        CHANDLER_LAKE_DATASETS: 'coins, candles',
        CHANDLER_SCHEDULE_LAKE: '@hourly',
        CHANDLER_S3_PATH_STYLE: 'Off',
        AWS_ACCESS_KEY_ID: 'id',
        AWS_SECRET_ACCESS_KEY: 'secret',
        AWS_SESSION_TOKEN: 'token',
        AWS_DEFAULT_REGION: 'eu-central-1',
        AWS_ENDPOINT_URL: 'https://elsewhere.example',
        AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9001',
      }),
    ).toEqual({
      databaseUrl: 'postgresql://u:p@db/x',
      attest: { dir: 'attestations', keyFile: 'key.pem' },
      lake: { address: { kind: 's3', bucket: 'bucket', prefix: 'a/b' }, datasets: ['candles', 'coins'] },
      s3: {
        endpoint: 'http://127.0.0.1:9001',
        region: 'eu-central-1',
        pathStyle: false,
        credentials: { accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: 'token' },
      },
      serveDatabaseUrl: 'postgresql://r:p@replica/x',
      redisUrl: 'rediss://r:6380',
      serveLimits: false,
      trustedProxies: expect.any(BlockList),
      connectionsPerAddress: null,
      home: '/data',
      baseUrl: 'http://127.0.0.1:9000/v1',
      rpcUrl: 'http://127.0.0.1:9000/rpc',
      apiKey: 'k',
      plan: 'pro',
      limits: { perMonth: 5000, perDay: null, perSecond: 0.5 },
      candlesPerRequest: 100,
      authScheme: 'bare',
      cadences: { tickers: '*/5 * * * *', global: 'off', retention: '@weekly', lake: '@hourly' },
      listen: { host: '::1', port: 0 },
      operationsListen: { host: '127.0.0.1', port: 9090 },
      serveSql: true,
      serveOrigins: ['https://app.example', 'http://localhost:5173'],
      keep: {
        tickers: 30 * DAY,
        fetches: 365 * DAY,
        global: 364 * DAY,
        exchanges: null,
        candles: { ...DEFAULT_RETENTION.candles, '5m': 90 * DAY, '1h': 730 * DAY },
      },
      notify: {
        url: 'https://hooks.example.com/services/T0/B0/x?y=z',
        events: ['stuck', 'quota'],
        revisionsADay: 7,
      },
      stuckAfterMs: 2 * 3_600_000,
      heartbeatUrl: 'https://hc.example.com/0b7e3f4a-5d66',
      logLevel: 'debug',
    });
  });

  test.each([
    ['DATABASE_URL', 'localhost:5432', /'localhost:5432'.*postgres:\/\/user@host:5432\/database/],
    ['DATABASE_URL', 'mysql://h/x', /mysql.*postgres:\/\//],
    ['DATABASE_URL', 'postgres://u:p@h:99999/x', /'postgres:\/\/\*\*\*@h:99999\/x'/],
    ['DATABASE_URL', 'postgres://u@h', /names no database/],
    ['DATABASE_URL', 'postgres://u@h1,h2/x', /names several hosts; write the one/],
    ['DATABASE_URL', 'postgres://u:5%@h/x', /write % as %25/],
    [
      'CHANDLER_SERVE_DATABASE_URL',
      'x',
      /^CHANDLER_SERVE_DATABASE_URL 'x' .*; CHANDLER_SERVE_DATABASE_URL should look/,
    ],
    ['REDIS_URL', 'redis://:5%@h', /"\*\*\*@h".*redis:\/\/host:6379/],
    ['REDIS_URL', 'redis//h', /"redis\/\/h".*redis:\/\/host:6379/],
    ['REDIS_URL', 'redis://h/first', /must end with the number of a database, like redis:\/\/host:6379\/0/],
    ['REDIS_URL', 'redis://h?maxRetriesPerRequest=1', /no \? and no #/],
    ['CHANDLER_WEBHOOK_URL', 'hooks.example.com/T0', /is \(20 characters, not shown\), which is not a web address/],
    ['CHANDLER_HEARTBEAT_URL', 'hc.example.com/T0', /is \(17 characters, not shown\), which is not a web address/],
    ['CHANDLER_NOTIFY', 'quota,stick', /"stick"; it must be all, or some of .*did you mean stuck/],
    ['CHANDLER_STUCK_AFTER', '60', /"60"; it must be minutes, hours or days like 30m, 2h or 1d/],
    ['CHANDLER_REVISIONS_A_DAY', '-1', /"-1"; it must be a whole number of candles in 24 hours/],
    ['CHANDLER_HOME', '~/data', /whole path/],
    ['CHANDLER_BASE_URL', 'https://example.org/', /does not end in \/v1/],
    ['CHANDLER_BASE_URL', 'example.org/v1', /https:\/\//],
    ['CHANDLER_BASE_URL', 'https://u:topsecret@example.org/v1', /CHANDLER_API_KEY/],
    ['CHANDLER_BASE_URL', 'https://example.org/v1?x=1', /no \?/],
    ['CHANDLER_RPC_URL', 'ftp://x', /https:\/\//],
    ['CHANDLER_PLAN', 'buisness', /not one of free, starter.*did you mean business/],
    ['CHANDLER_MONTHLY_REQUESTS', '-5', /"-5"; it must be a whole number above 0/],
    ['CHANDLER_MONTHLY_REQUESTS', '1.5', /whole/],
    ['CHANDLER_DAILY_REQUESTS', '0', /above 0/],
    ['CHANDLER_REQUESTS_PER_SECOND', 'fast', /"fast"; it must be a number above 0/],
    ['CHANDLER_REQUESTS_PER_SECOND', '1e999', /number above 0/],
    ['CHANDLER_CANDLES_PER_REQUEST', '0', /from 1 to 366\.$/],
    ['CHANDLER_CANDLES_PER_REQUEST', '367', /"367"; it must be .* from 1 to 366, the most that the upstream answers/],
    ['CHANDLER_AUTH_SCHEME', 'bearr', /did you mean bearer/],
    ['CHANDLER_LISTEN', '8080', /127\.0\.0\.1:8080/],
    ['CHANDLER_SERVE_LIMITS', 'of', /not one of on, off/],
    ['CHANDLER_CONNECTIONS_PER_ADDRESS', '-3', /"-3"/],
    ['CHANDLER_CONNECTIONS_PER_ADDRESS', '2.5', /"2\.5"/],
    ['CHANDLER_TRUSTED_PROXIES', '10.0.0.0/33', /"10\.0\.0\.0\/33" is neither an address nor a network/],
    ['CHANDLER_TRUSTED_PROXIES', '127.0.0.1, proxy', /"proxy" is neither an address/],
    ['CHANDLER_LISTEN', 'localhost:70000', /host and port/],
    ['CHANDLER_OPERATIONS_LISTEN', '9090', /"9090", which is not a host and port/],
    [
      'CHANDLER_OPERATIONS_LISTEN',
      '127.0.0.1:8080',
      /is the address for callers, CHANDLER_LISTEN, too; choose another port/,
    ],
    ['CHANDLER_SERVE_SQL', 'yes', /"yes", which is not one of on, off/],
    ['CHANDLER_SERVE_ORIGINS', 'https://a.example/x', /"https:\/\/a.example\/x" is not an origin; write it like/],
    ['CHANDLER_SERVE_ORIGINS', '* app.example', /"app.example" is not an origin/],
    [
      'CHANDLER_KEEP_TICKERS',
      '90',
      /"90"; it must be a number of days, weeks or years like 90d, 12w or 2y, or forever/,
    ],
    ['CHANDLER_KEEP_TICKERS', '0d', /like 90d/],
    ['CHANDLER_KEEP_TICKERS', '-5d', /like 90d/],
    ['CHANDLER_KEEP_GLOBAL', '999999y', /like 90d/],
    ['CHANDLER_KEEP_EXCHANGES', 'never', /or forever/],
    ['CHANDLER_KEEP_FETCHES', '3d', /like 90d, 12w or 2y, 7d or more, or forever/],
    ['CHANDLER_KEEP_CANDLES', 'soon', /like 90d.* or by interval, like 5m=90d 1h=2y/],
    ['CHANDLER_KEEP_CANDLES', '2h=90d', /which has 2h=90d; .* of 5m 15m/],
    ['CHANDLER_KEEP_CANDLES', '1h=90d 1h=80d', /write each interval once/],
    ['CHANDLER_KEEP_CANDLES', '1h=90d 5m=soon', /which has 5m=soon; it must be a number of days/],
    ['LOG_LEVEL', 'verbose', /not one of trace/],
    [
      'CHANDLER_SCHEDULE_TICKERS',
      '5m',
      /"5m", which is not a cron expression; write minute.*like \*\/15 \* \* \* \*, or off\.$/,
    ],
    ['CHANDLER_SCHEDULE_COINS', '0 25 * * *', /not a cron expression \(25 is not a valid hour\)/],
    ['CHANDLER_SCHEDULE_COINS', '* * * * * *', /more than once a minute/],
    ['CHANDLER_SCHEDULE_GAPS', 'of', /or off \(did you mean off\?\)/],
  ])('explains what is wrong with %s=%s and what would be right', (name, value, expected) => {
    const found = problems({ [name]: value });
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(new RegExp(`^${name} .*\\.$`));
    expect(found[0]).toMatch(expected);
  });

  test.each([
    ['CHANDLER_NOTIFY', 'all'],
    ['CHANDLER_REVISIONS_A_DAY', '7'],
  ])('rejects %s=%s without a webhook', (name, value) => {
    expect(problems({ [name]: value, CHANDLER_WEBHOOK_URL: ' ' })).toEqual([
      `${name} is "${value}", but there is no webhook; set CHANDLER_WEBHOOK_URL too, or remove this setting.`,
    ]);
    expect(problems({ [name]: value, CHANDLER_WEBHOOK_URL: 'here' })).toHaveLength(1);
  });

  test.each([
    ['CHANDLER_ATTEST_KEY', 'key.pem'],
    ['CHANDLER_SCHEDULE_ATTEST', '0 4 * * *'],
  ])('rejects %s=%s when no attestations are written', (name, value) => {
    expect(problems({ [name]: value })).toEqual([
      `${name} is "${value}", but there is no folder for attestations; set CHANDLER_ATTEST_DIR too, or remove this setting.`,
    ]);
    expect(config({ [name]: value, CHANDLER_ATTEST_DIR: 'there' }).attest?.dir).toBe('there');
    expect(config({ CHANDLER_SCHEDULE_ATTEST: 'off' }).attest).toBeNull();
  });

  test.each([
    [
      { CHANDLER_LAKE_URL: 's3://key:hidden@bucket' },
      'CHANDLER_LAKE_URL is (not shown), which contains an @; leave out keys',
    ],
    [{ CHANDLER_LAKE_URL: 'gs://bucket' }, 'CHANDLER_LAKE_URL is "gs://bucket", which is neither a folder nor s3://'],
    [{ CHANDLER_LAKE_URL: 's3://' }, 'CHANDLER_LAKE_URL is "s3://", which names no bucket'],
    [{ CHANDLER_LAKE_URL: 's3:///prefix' }, 'which names no bucket'],
    [{ CHANDLER_LAKE_URL: 's3://My-Bucket/a' }, 'whose bucket has no valid name: 3 to 63 lower-case letters'],
    [{ CHANDLER_LAKE_URL: 's3://ab/prefix' }, 'whose bucket has no valid name: 3 to 63 lower-case letters'],
    [{ CHANDLER_LAKE_URL: 's3://bucket/a/../b' }, 'whose prefix has a part . or ..; leave it out'],
    [{ CHANDLER_LAKE_URL: 's3://bucket/a//b' }, 'whose prefix may have letters, digits'],
    [{ CHANDLER_LAKE_URL: '~/lake' }, 'CHANDLER_LAKE_URL is "~/lake", but Chandler does not expand ~'],
    [{ CHANDLER_LAKE_DATASETS: 'coins' }, 'but there is no lake; set CHANDLER_LAKE_URL too'],
    [{ CHANDLER_SCHEDULE_LAKE: '@hourly' }, 'but there is no lake; set CHANDLER_LAKE_URL too'],
    [{ CHANDLER_LAKE_URL: 'x', CHANDLER_LAKE_DATASETS: 'coin' }, '"coin" is not a dataset; the datasets are candles, '],
    [{ AWS_ENDPOINT_URL: 'https://id:hidden@x' }, 'AWS_ENDPOINT_URL is "***@x", which contains keys; leave them out'],
    [{ AWS_ENDPOINT_URL_S3: 'storage:9000' }, 'which is not a web address; it must start with https:// or http://'],
  ])('rejects %j', (env, message) => {
    const found = problems(env);
    expect(found).toEqual([expect.stringContaining(message)]);
    expect(found[0]).not.toContain('hidden');
  });

  test('puts the bucket into the path at addresses other than that of AWS, unless configured', () => {
    const styleOf = (env: Record<string, string>) => config(env).s3.pathStyle;
    expect([styleOf({}), styleOf({ AWS_ENDPOINT_URL: 'https://x' })]).toEqual([false, true]);
    expect(styleOf({ AWS_ENDPOINT_URL: 'https://x', CHANDLER_S3_PATH_STYLE: 'off' })).toBe(false);
    // Half of a key counts as none: then the credentials of the machine are used.
    expect(config({ AWS_ACCESS_KEY_ID: 'id' }).s3.credentials).toBeNull();
  });

  test('accepts one retention for the candles of all intervals', () => {
    const { candles } = config({ CHANDLER_KEEP_CANDLES: '3y' }).keep;
    expect(new Set(Object.values(candles))).toEqual(new Set([3 * 365 * DAY]));
  });

  test('reports every problem at once', () => {
    expect(problems({ LOG_LEVEL: 'x', CHANDLER_PLAN: 'y', DATABASE_URL: 'z', CHANDLER_FOO_BAR_BAZ: '1' })).toHaveLength(
      4,
    );
  });

  test('suggests the variable that a misspelt name probably meant', () => {
    expect(problems({ CHANDLER_APIKEY: 'secret' })).toEqual([
      'CHANDLER_APIKEY is not a setting of Chandler (did you mean CHANDLER_API_KEY?).',
    ]);
    for (const [given, meant] of [
      ['CHANDLER_PALN', 'CHANDLER_PLAN'],
      ['CHANDLER_HOEM', 'CHANDLER_HOME'],
      ['CHANDLER_KEY', 'CHANDLER_API_KEY'],
      ['chandler_plan', 'CHANDLER_PLAN'],
      ['DATABASE_ULR', 'DATABASE_URL'],
    ] as const) {
      expect(problems({ [given]: 'x' })).toEqual([`${given} is not a setting of Chandler (did you mean ${meant}?).`]);
    }
    expect(problems({ CHANDLER_SCHEDULE_TICKER: 'off' })).toEqual([
      'CHANDLER_SCHEDULE_TICKER is not a setting of Chandler (did you mean CHANDLER_SCHEDULE_TICKERS?).',
    ]);
    expect(problems({ CHANDLER_WEATHER: 'x' })[0]).toContain(
      'there are CHANDLER_SERVE_DATABASE_URL, CHANDLER_HOME, CHANDLER_BASE_URL',
    );
  });

  test('never shows a secret, however broken it is', () => {
    const text = problems({
      CHANDLER_API_KEY: 'top secret',
      DATABASE_URL: 'postgres//u:topsecret@h/x',
      REDIS_URL: 'http://:topsecret@h',
      CHANDLER_BASE_URL: 'https://u:topsecret@h/v1',
    });
    expect(text).toHaveLength(4);
    expect(text.join('\n')).not.toMatch(/top ?secret/);
  });
});

describe('effectiveLimits', () => {
  test('are those of the plan; the daily limit binds only without a key', () => {
    expect(effectiveLimits('free', config({}))).toEqual({ perMonth: 20_000, perDay: 1000, perSecond: 10 });
    expect(effectiveLimits('free', config({ CHANDLER_API_KEY: 'k' }))).toMatchObject({
      perMonth: 20_000,
      perDay: null,
    });
  });

  test('give way to single configured limits; unlimited removes a limit', () => {
    const byHand = config({ CHANDLER_DAILY_REQUESTS: 'unlimited', CHANDLER_REQUESTS_PER_SECOND: '2' });
    expect(effectiveLimits('free', byHand)).toEqual({ perMonth: 20_000, perDay: null, perSecond: 2 });
  });

  test('have a configurable number of candles per request', () => {
    expect(candlesPerRequest('free', config({}))).toBe(366);
    expect(candlesPerRequest('free', config({ CHANDLER_CANDLES_PER_REQUEST: '10' }))).toBe(10);
  });
});

test('the secrets of a configuration are the key and the passwords, raw and decoded', () => {
  expect(
    secretsOf(config({ CHANDLER_API_KEY: 'key1', DATABASE_URL: 'postgres://u:p%40ss@h/x', REDIS_URL: 'redis://h' })),
  ).toEqual(['key1', 'p%40ss', 'p@ss']);
});

test('the address of the heartbeat monitor is a secret, too', () => {
  const CHANDLER_HEARTBEAT_URL = 'https://hc.example.com/0b7e3f4a-5d66';
  const parts = [CHANDLER_HEARTBEAT_URL, '/0b7e3f4a-5d66'];
  expect(secretsOf(config({ CHANDLER_HEARTBEAT_URL }))).toEqual(parts);
  expect(secretsIn({ CHANDLER_HEARTBEAT_URL })).toEqual([CHANDLER_HEARTBEAT_URL, ...parts]);
});

test('the address of the webhook is a secret, and its parts other than the host', () => {
  const CHANDLER_WEBHOOK_URL = 'https://hooks.example.com/services/T0/B0/x?y=z';
  const parts = [CHANDLER_WEBHOOK_URL, '/services/T0/B0/x?y=z'];
  expect(secretsOf(config({ CHANDLER_WEBHOOK_URL }))).toEqual(parts);
  expect(secretsIn({ CHANDLER_WEBHOOK_URL })).toEqual([CHANDLER_WEBHOOK_URL, ...parts]);
  expect(secretsOf(config({ CHANDLER_WEBHOOK_URL: 'http://10.0.0.1/hook' }))).toEqual(['http://10.0.0.1/hook']);
  expect(secretsIn({ CHANDLER_WEBHOOK_URL: 'hooks.example.com/T0' })).toEqual(['hooks.example.com/T0']);
});

test('only real secrets are masked in output: not a password that is also a word of the address', () => {
  const env = {
    CHANDLER_API_KEY: ' abcd-1234 ',
    DATABASE_URL: 'postgres://postgres:postgres@h/x',
    REDIS_URL: 'redis://:p%40ssword@h',
  };
  expect(secretsIn(env)).toEqual(['abcd-1234', 'p%40ssword', 'p@ssword']);
  expect(
    secretsIn({ CHANDLER_API_KEY: 'right', DATABASE_URL: 'not an address', REDIS_URL: 'redis://:%zz123456@h' }),
  ).toEqual(['%zz123456', '%zz123456']);
});
