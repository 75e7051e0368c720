import { afterAll, expect, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { runCli } from '../support/program.ts';
import { BTC } from '../support/sample-records.ts';
import { http, JSON_TYPE, startRawServer } from '../upstream/raw-server.ts';

// With a character that addresses write in another way.
const KEY = 'cHJv/ZmVzc2lv+bmFs7';
const ENCODED = encodeURIComponent(KEY);

const databases: { drop(): Promise<void> }[] = [];
afterAll(async () => {
  for (const database of databases) await database.drop();
});

const COIN = { ...BTC, quotes: { USD: { price: 95_000, volume_24h: 1, market_cap: 1 } } };

/** One that repeats the key wherever it can; `candles` is what it says when it is asked for some. */
async function echoing(candles: (n: number) => Buffer) {
  let asked = 0;
  return startRawServer((socket, { line }) => {
    const path = line.split(' ')[1]!;
    if (/^\/v1\/(coins|tickers)(\?|$)/.test(path)) return socket.write(http(200, JSON_TYPE, JSON.stringify([COIN])));
    if (path.includes('/ohlcv') || path.startsWith('/v1/gate')) return socket.write(candles(++asked));
    if (path.includes('/me') || path.includes('/info')) return socket.write(http(404, JSON_TYPE, `{"error":"${KEY}"}`));
    return socket.write(http(200, JSON_TYPE, '[]'));
  });
}

test.each<[string, (n: number) => Buffer]>([
  ['leads in circles', (n) => http(302, { Location: `/v1/gate/${ENCODED}/${n}?api_key=${KEY}&n=${n}` })],
  [
    'refuses the question',
    () => http(400, JSON_TYPE, JSON.stringify({ error: `header Bearer ${KEY} not understood` })),
  ],
  ['refuses the key', () => http(403, JSON_TYPE, JSON.stringify({ error: `no such key: ${KEY}` }))],
  ['answers broken JSON', () => http(200, JSON_TYPE, `${'.'.repeat(70)}${KEY}`)],
  ['answers something else', () => http(200, JSON_TYPE, JSON.stringify([{ time_open: KEY, open: 1 }, { [KEY]: 1 }]))],
])('an upstream that %s and repeats the key does not get it to be seen', async (_, candles) => {
  const server = await echoing(candles);
  const database = await createTestDatabase();
  databases.push(database);
  const env = {
    DATABASE_URL: database.url,
    CHANDLER_API_KEY: KEY,
    CHANDLER_PLAN: 'enterprise',
    CHANDLER_REQUESTS_PER_SECOND: 'unlimited',
    CHANDLER_BASE_URL: `${server.origin}/v1`,
    LOG_LEVEL: 'trace',
  };
  const command = ['backfill', 'btc-bitcoin', '--start', '-30d', '--max-wait', '1s', '--yes'];
  const words = await runCli(command, env);
  const json = await runCli([...command, '--json'], env);
  const sql = ['sql', '--json', `select '${KEY.slice(0, 5)}' || '${KEY.slice(5)}' as key`];
  const asked = await runCli(sql, env);
  for (const { out, err } of [words, json, asked]) {
    for (const form of [KEY, ENCODED]) expect(out + err).not.toContain(form);
  }
  expect(asked.out).toContain('***');
  expect(words.code).not.toBe(0);
  const tables = await database.sql`
    select (select json_agg(f) from ops.fetch f) f, (select json_agg(q) from ops.quota q) q,
      (select json_agg(r) from market.refusal r) r, (select json_agg(x) from market.quarantine x) x`;
  const kept = JSON.stringify(tables);
  for (const form of [KEY, ENCODED, KEY.slice(0, 12)]) expect(kept).not.toContain(form);
  // It was there to be seen.
  const isAsked = (line: string) => line.includes('/ohlcv');
  expect(server.heard.some(({ line, headers }) => isAsked(line) && headers.authorization?.includes(KEY))).toBe(true);
});
