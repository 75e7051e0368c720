/** What a user without a key sees first: candles of the last day, a year of prices, and both commands. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createJumpingClock } from '../../support/jumping-clock.ts';

const clock = createJumpingClock({ speed: 1, startAt: Date.UTC(2026, 10, 3, 12) });
let server: Listening;
let database: TestDatabase;
const chandler = (...argv: string[]) =>
  runCommand(argv, { env: { DATABASE_URL: database.url, CHANDLER_BASE_URL: `${server.url}/v1` }, clock });
const json = async (...argv: string[]) => JSON.parse((await chandler(...argv, '--json')).out);

beforeAll(async () => {
  const onError = (error: unknown) => {
    throw error;
  };
  const simulator = createSimulator({ market: 'made-up', clock, coins: 20, limits: { plan: 'free' }, onError });
  server = await listen(simulator.fetch, { host: '127.0.0.1', port: 0 });
  database = await createTestDatabase();
});
afterAll(async () => {
  await server.close();
  await database.drop();
});

const WHICH = ['btc-bitcoin', 'eth-ethereum', '--start', '-300d'];

test('plan offers prices in place of candles, and the command that it prints fills them', async () => {
  const { code, out } = await chandler('plan', ...WHICH);
  expect(code).toBe(0);
  expect(out).toContain('  Each request brings one final candle: the last full day (/ohlcv/latest).\n');
  const command = 'chandler backfill btc-bitcoin eth-ethereum --start -300d --series prices --interval 1d';
  expect(out).toContain(
    `  Prices instead of candles, daily: the last 365d, 2 requests for up to 600 rows:\n  ${command}\n`,
  );
  expect(await json('plan', ...WHICH)).toMatchObject({
    endpoint: 'ohlcv/latest',
    prices: { interval: '1d', requests: 2, rowsExpected: 600, slotsBeyondPlan: 0, command },
  });
  const filled = await chandler(...command.split(' ').slice(1), '--end', '-3d');
  expect(filled).toMatchObject({ code: 0 });
  expect(filled.out).toMatch(/^2 coins, 1d prices in usd from 2026-01-08 to 2026-11-01 \(exclusive\)$/m);
  expect(filled.out).toMatch(/^ {2}stored +594 prices \(594 rows received\)$/m);
  expect(filled.out).toMatch(/^ {2}gaps left +none: every slot has a price or is known to be empty$/m);
  expect(await json('plan', ...WHICH, '--series', 'prices')).toMatchObject({
    endpoint: 'tickers/historical',
    prices: null,
    interval: 'prices-1d',
  });
});

test('plan offers prices only as far back as the plan allows', async () => {
  const long = await json('plan', 'btc-bitcoin', '--start', '2020-01-01');
  expect(long.prices.command).toBe('chandler backfill btc-bitcoin --start -365d --series prices --interval 1d');
  const filled = await chandler(...long.prices.command.split(' ').slice(1), '--end', '-3d');
  expect(filled).toMatchObject({ code: 0 });
  // The free plan has no hourly candles, and hourly prices of one day.
  const hours = await json('plan', 'btc-bitcoin', '--start', '-5d', '--interval', '1h');
  expect(hours.prices.command).toBe('chandler backfill btc-bitcoin --start -24h --series prices --interval 1h');
  const quoted = await json('plan', 'btc-bitcoin', '--start', '2026-10-01 00:00Z');
  expect(quoted.prices.command).toContain("--start '2026-10-01 00:00Z' --series");
});

test('plan and track add warn when prices become final only after the plan no longer shows them', async () => {
  const never = 'None of the 12h prices becomes final: plan free no longer serves them by the time they are final.';
  const { out } = await chandler('plan', 'btc-bitcoin', '--start', '-3d', '--series', 'prices', '--interval', '12h');
  expect(out).toContain(never);
  const added = await chandler('track', 'add', 'btc-bitcoin', '--series', 'prices', '--interval', '12h');
  expect(added.out).toContain(never);
  await chandler('track', 'remove', 'btc-bitcoin');
});

test('the comparison of plans uses the price history of each plan', async () => {
  const { out } = await chandler(
    'plan',
    'ltc-litecoin',
    '--start',
    '-800d',
    '--series',
    'prices',
    '--interval',
    '1d,5m',
  );
  expect(out).toMatch(/^→ free +20,000 +2 +36[45] +43\d/m);
  expect(out).toMatch(/^ {2}starter +400,000 +1 +800 /m);
  expect(out).toContain('230,400 slots lie beyond the documented limit: plan free includes no 5m prices.');
  expect(out).toMatch(/^ {2}business +5,000,000 +22 +105,1\d\d +125,2\d\d /m);
});

test('status, gaps, explain and verify call prices by that name', async () => {
  await chandler('backfill', 'btc-bitcoin', '--start', '-300d', '--series', 'prices');
  expect((await chandler('status')).out).toMatch(/^prices-1d usd +2 /m);
  expect((await chandler('gaps', '--interval', 'prices-1d', 'btc-bitcoin')).out).toMatch(
    /^btc-bitcoin +prices-1d usd +2026-11-02 +2026-11-04 +2 +provisional/m,
  );
  const verified = await chandler('verify');
  expect(verified.code).toBe(0);
  expect(verified.out).toMatch(
    /^\d+ series: [\d,]+ final prices, \d+ slots known to be empty\. Every covered slot has exactly what the upstream answered/m,
  );
  const { out } = await chandler('explain', 'btc-bitcoin', 'prices-1d', '2026-05-01');
  expect(out).toMatch(/price \d+\.\d+, volume of 24 hours \d+, market cap \d+/);
  expect(out).not.toContain('candle');
});

test('a price series is tracked like a candle series', async () => {
  const added = await chandler(
    'track',
    'add',
    '--top',
    '3',
    '--series',
    'prices',
    '--interval',
    '1h,24h',
    '--target-age',
    '1h=6h',
  );
  expect(added).toMatchObject({ code: 0 });
  const { rules } = await json('track', 'list');
  expect(
    rules.map(({ interval, targetAgeMs }: { interval: string; targetAgeMs: number }) => [interval, targetAgeMs]),
  ).toEqual([
    ['prices-1d', DAY],
    ['prices-1h', DAY / 4],
  ]);
  const removed = await json('track', 'remove', '--top', '3', '--series', 'prices');
  expect(removed.removed).toBe(2);
});

test('the command that the demo prints last works without a key', async () => {
  const { code, out } = await chandler('backfill', '--top', '50', '--start', '-365d', '--series', 'prices');
  // Slots at the end of an inactive coin wait for their second answer.
  expect([0, 75]).toContain(code);
  expect(out).toMatch(/stored +[\d,]+ prices/);
  expect(out).not.toMatch(/^ {2}refused/m);
});

test.each<[readonly string[], RegExp]>([
  [['--interval', '1d'], /There are no 1d candles; give 24h, or --series prices for 1d prices\./],
  [['--interval', '10m'], /There are no 10m candles; give 5m, 15m, .*24h, or --series prices for 10m prices\./],
  [['--series', 'price'], /'price' is invalid\. It must be one of candles, prices \(did you mean prices\?\)/],
  [['--series', 'prices', '--interval', '4h'], /'4h' is invalid.*of prices 5m, 10m/],
])('%j is wrong usage', async (options, message) => {
  const { code, out, err } = await chandler('plan', 'btc-bitcoin', '--start', '-9d', ...options);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toMatch(message);
});
