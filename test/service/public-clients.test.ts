/** Public clients of the upstream work unchanged when only the address is set, over the simulator and over a warehouse, on real sockets. */
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXAMPLE_ARGUMENTS } from '../../src/contract/interface/examples.ts';
import { makeApiKey } from '../../src/core/caller/api-key.ts';
import { DAY } from '../../src/core/interval.ts';
import { createMeteredAccess, type MeteredAccess } from '../../src/service/access/metered-access.ts';
import { type Listening, listen } from '../../src/service/http/listen.ts';
import { createService } from '../../src/service/service.ts';
import { createSimulator } from '../../src/simulate.ts';
import { createApiKey } from '../../src/store/callers/api-key.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { CATALOGUE_KINDS } from '../../src/store/catalogue/catalogue-item.ts';
import { createWarehouse } from '../../src/views/market/warehouse.ts';
import { runSchedules } from '../support/scheduled.ts';
import { createWorld, type World } from '../support/world.ts';
import { frozenClock, openAccess } from './conformance.ts';
import { askAsVersion3, callsOfVersion3 } from './node-client-v3.ts';
import { createAnswerCheck } from './upstream-schema.ts';

const NOW = Date.UTC(2024, 5, 1, 12, 3, 20);
const day = (n: number) => new Date(NOW + n * DAY).toISOString().slice(0, 10);

/** The part of the client that is called here; the client has no types. */
type Client = {
  url: string;
  getGlobal(): Promise<unknown>;
  getTicker(args?: { coinId: string }): Promise<unknown>;
  getAllTickers(args?: object): Promise<unknown>;
  getCoins(): Promise<unknown>;
  getCoin(coinId: string): Promise<unknown>;
  getCoinsOHLCVHistorical(args: object): Promise<unknown>;
};
// The vendor's own client for Node.js.
const VendorsClient = createRequire(import.meta.url)('@coinpaprika/api-nodejs-client') as new () => Client;

const KEY = makeApiKey();
let world: World;
let metered: MeteredAccess;
const servers = new Map<string, Listening>();
beforeAll(async () => {
  const onError = (error: unknown) => {
    throw error;
  };
  world = await createWorld({ startAt: NOW, simulator: { seed: 1, coins: 6, unlimited: true } });
  const chandler = await world.open();
  const { sql } = world.database;
  const span = { from: NOW - 20 * DAY, to: NOW };
  await wantSeries(sql, { coinIds: ['btc-bitcoin', 'eth-ethereum'], quote: 'usd', interval: '24h', span, priority: 0 });
  await runSchedules(world, chandler, ['global', 'exchanges', ...CATALOGUE_KINDS]);
  await chandler.backfill({ coins: ['btc-bitcoin'], ...span });
  // From here on time stands still, so that two answers can be compared.
  const clock = frozenClock(world.clock.now() + 60_000);
  const data = createWarehouse({ sql, clock });
  const warehouse = createService({ data, access: openAccess, clock, onError });
  const simulated = { market: 'made-up', seed: 1, coins: 6, unlimited: true, clock, onError } as const;
  const simulator = createSimulator(simulated).fetch;
  // Like the vendor's paid host: a key is required, and stands alone in its header.
  const limits = { requireKey: true, scheme: 'bare', keys: { [KEY.key]: 'enterprise' } } as const;
  const paidSimulator = createSimulator({ ...simulated, limits }).fetch;
  const terms = {
    name: null,
    plan: 'enterprise',
    requestsPerMonth: null,
    requestsPerSecond: 1_000,
    expiresAt: null,
    isOperator: false,
  };
  await createApiKey(sql, terms, { ...KEY, now: clock.now() });
  metered = createMeteredAccess({ sql, clock, limits: true, onError });
  const paidWarehouse = createService({ data, access: metered, clock, onError });
  for (const [name, handler] of Object.entries({ simulator, warehouse, paidSimulator, paidWarehouse }))
    servers.set(name, await listen(handler, { host: '127.0.0.1', port: 0, onError }));
});
afterAll(async () => {
  for (const server of servers.values()) await server.close();
  await metered?.close();
  await world?.close();
});

describe.each(['simulator', 'warehouse'])('the vendor’s client for Node.js, against the %s,', (name) => {
  const open = () => {
    const url = `${servers.get(name)!.url}/v1`;
    const client = new VendorsClient();
    client.url = url;
    return { client, get: async (path: string) => (await fetch(url + path)).json() as Promise<unknown> };
  };

  it('can read the answer with every one of its methods', async () => {
    const { client, get } = open();
    const [range, coinId] = [{ start: day(-9), end: day(-3) }, 'btc-bitcoin'];
    const historical = { start: day(-1), interval: '1d', limit: 10, quote: 'usd' };
    const calls: [Promise<unknown>, string][] = [
      [client.getGlobal(), '/global'],
      [client.getTicker(), '/ticker'],
      [client.getTicker({ coinId }), `/ticker/${coinId}`],
      [client.getAllTickers(), '/tickers'],
      [client.getAllTickers({ coinId, quotes: ['BTC', 'ETH'] }), `/tickers/${coinId}?quotes=BTC,ETH`],
      [
        client.getAllTickers({ coinId, historical }),
        `/tickers/${coinId}/historical?start=${day(-1)}&limit=10&quote=usd&interval=1d`,
      ],
      [client.getCoins(), '/coins'],
      [client.getCoin(coinId), `/coins/${coinId}`],
      [
        client.getCoinsOHLCVHistorical({ coinId, quote: 'usd', ...range }),
        `/coins/${coinId}/ohlcv/historical?start=${range.start}&end=${range.end}`,
      ],
    ];
    for (const [read, path] of calls) {
      const answer = await read;
      expect([path, answer]).toEqual([path, await get(path)]);
      // The answer has content, and is not an error.
      expect([path, Object.keys(answer as object).length > 0]).toEqual([path, true]);
      expect([path, answer]).not.toHaveProperty('1.error');
    }
    expect(await client.getCoinsOHLCVHistorical({ coinId, quote: 'usd', ...range })).toHaveLength(7);
  });

  it('gets the same errors for unknown ids as from the upstream', async () => {
    const { client } = open();
    expect(await client.getCoin('no-nowhere')).toEqual({ error: 'id not found' });
    expect(await client.getCoinsOHLCVHistorical({ coinId: 'no-nowhere', start: day(-3) })).toEqual([]);
    expect(await client.getAllTickers({ quotes: ['USD', 'BTC', 'ETH', 'EUR'] })).toEqual({
      error: 'Max number of quotes is 3',
    });
  });
});

describe.each(['paidSimulator', 'paidWarehouse'])('a request of version 3 of that client to the %s', (name) => {
  const host = () => servers.get(name)!.url;
  const calls = callsOfVersion3(day, String(EXAMPLE_ARGUMENTS.contractAddress));
  const check = createAnswerCheck({ nulls: 'documented' });

  it.each(calls.map((call) => [call.method, call] as const))('is answered as documented: %s', async (_, call) => {
    const answer = await askAsVersion3(host(), KEY.key, call);
    const body = (await answer.json()) as object;
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    check(call.answer, body);
    // In so small a market no id has changed.
    if (call.method !== 'getChangelogIds') expect(Object.keys(body).length).toBeGreaterThan(0);
  });

  it('that is not answered gets JSON that says so; a missing or wrong key is refused', async () => {
    const twitter = await askAsVersion3(host(), KEY.key, { path: '/coins/btc-bitcoin/twitter', query: {} });
    expect([twitter.status, await twitter.json()]).toEqual([404, { error: 'not available here' }]);
    const wrong = await askAsVersion3(host(), 'wrong', { path: '/key/info', query: {} });
    expect([wrong.status, await wrong.json()]).toEqual([403, { error: 'invalid api key' }]);
    const none = await fetch(`${host()}/v1/key/info`);
    expect([none.status, await none.json()]).toEqual([403, { error: 'api key is required' }]);
  });
});
