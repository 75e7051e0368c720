/** An upstream that repeats the key in its answers, in any spelling. The key must never be visible. */
import { afterAll, expect, test } from 'vitest';
import { runCommand } from '../support/cli.ts';
import { createTestDatabase } from '../support/database.ts';
import { runCli } from '../support/program.ts';
import { BTC } from '../support/sample-records.ts';
import { http, JSON_TYPE, startRawServer } from '../upstream/raw-server.ts';

// With a character that addresses encode.
const KEY = 'cHJv/ZmVzc2lv+bmFs7';
const ENCODED = encodeURIComponent(KEY);
const BASE64 = Buffer.from(`Bearer ${KEY}`).toString('base64');
const HEX = Buffer.from(KEY).toString('hex');
/** What must not be visible: the key and its first characters, in every spelling that the upstream of these tests uses. */
const FORMS = [KEY, ENCODED, KEY.slice(0, 10), BASE64.slice(12, 28), HEX.slice(0, 20), HEX.slice(-20)];

const databases: { drop(): Promise<void> }[] = [];
const COIN = { ...BTC, quotes: { USD: { price: 95_000, volume_24h: 1, market_cap: 1 } } };

/** An upstream that repeats the key wherever it can. `candles` is its answer to a request for candles. */
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

/** The key in every spelling, and its beginning. */
const SPELT = `${KEY} ${BASE64} ${HEX} ${KEY.slice(0, 12)}…`;

const ANSWERS = {
  'leads in circles': (n) => http(302, { Location: `/v1/gate/${ENCODED}/${HEX}/${n}?api_key=${KEY}&n=${n}` }),
  'refuses the question': () => http(400, JSON_TYPE, JSON.stringify({ error: `header ${SPELT} not understood` })),
  'refuses the key': () => http(403, JSON_TYPE, JSON.stringify({ error: `no such key: ${SPELT}` })),
  'answers broken JSON': () => http(200, JSON_TYPE, `${'.'.repeat(70)}${SPELT}`),
  'answers something else': () =>
    http(
      200,
      JSON_TYPE,
      JSON.stringify([
        { time_open: SPELT, open: HEX },
        { [KEY]: 1, [BASE64]: 1 },
      ]),
    ),
  'says to be a market of that name': () => http(200, { ...JSON_TYPE, 'Chandler-Simulator': BASE64 }, '[]'),
} satisfies Record<string, (n: number) => Buffer>;

export function testEchoes(...ways: (keyof typeof ANSWERS)[]): void {
  afterAll(async () => {
    for (const database of databases) await database.drop();
  });

  test.each(ways)('the key of an upstream that %s and repeats the key is never shown', async (way) => {
    const server = await echoing(ANSWERS[way]);
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
    const json = await runCommand([...command, '--json'], { env });
    const sql = ['sql', '--json', `select '${KEY.slice(0, 5)}' || '${KEY.slice(5)}' as key`];
    const asked = await runCommand(sql, { env });
    for (const { out, err } of [words, json, asked]) {
      for (const form of FORMS) expect(out + err).not.toContain(form);
    }
    expect(asked.out).toContain('***');
    expect(words.code).not.toBe(0);
    const [tables] = await database.sql<{ kept: string }[]>`
    select schema_to_xml('ops', true, false, '')::text || schema_to_xml('market', true, false, '')::text as kept`;
    const { kept } = tables!;
    for (const form of FORMS) expect(kept).not.toContain(form);
    // The key really was in the answer.
    const isAsked = (line: string) => line.includes('/ohlcv');
    expect(server.heard.some(({ line, headers }) => isAsked(line) && headers.authorization?.includes(KEY))).toBe(true);
  });
}
