/** The response cache sends bytes again without reading the source, as long as the source confirms that they are current. */
import { once } from 'node:events';
import http from 'node:http';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { completeAsOf, withProvenance } from '../../../src/contract/answer/provenance.ts';
import { revalidatedBy } from '../../../src/contract/answer/revalidation.ts';
import type { Ticker } from '../../../src/contract/record/records.ts';
import { DAY } from '../../../src/core/interval.ts';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { canonicalTarget } from '../../../src/service/http/response-cache.ts';
import { createService } from '../../../src/service/service.ts';
import { createMadeUpMarket } from '../../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../../src/simulator/made-up/made-up-world.ts';

const NOON = Date.UTC(2024, 5, 1, 12);
let now = NOON;
const clock = { now: () => now, sleep: async () => undefined };
const market = createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 3 }), clock });
const errors: unknown[] = [];
const onError = (error: unknown) => void errors.push(error);

/** How often the source was read; a cached ticker is current while it has this price. */
let asked: number;
let price: number;
let isUnavailable: boolean;
let admitted: number;
/** How far back the plan may read; null for no limit. */
let depthMs: number | null;
let server: Listening;
beforeEach(async () => {
  [asked, price, isUnavailable, admitted, now, depthMs] = [0, 1, false, 0, NOON, null];
  const ticker = async (query: Parameters<typeof market.ticker>[0]) => {
    asked++;
    const found = await market.ticker(query);
    if (found === null) return null;
    const told = price;
    const answer = { ...found, rank: told } as Ticker;
    return revalidatedBy(withProvenance(answer, completeAsOf(NOON)), async () => {
      if (isUnavailable) throw new Error('away');
      return told === price;
    });
  };
  const access = {
    admit: async () => {
      admitted++;
      return { kind: 'admitted', plan: 'enterprise' } as const;
    },
    refuseHistory: (_: unknown, __: unknown, start: number) =>
      depthMs !== null && start < now - depthMs ? 'too far back' : null,
    refuseTickerHistory: () => null,
    refuseIdChanges: () => null,
    refuseMappings: () => null,
    account: () => null,
  };
  const ohlcv = async (query: Parameters<typeof market.ohlcv>[0]) => {
    asked++;
    const found = [...(await market.ohlcv(query))!];
    return revalidatedBy(withProvenance(found, completeAsOf(NOON)), async () => true);
  };
  const service = createService({ data: { ...market, ticker, ohlcv }, access, clock, onError });
  server = await listen(service, { host: '127.0.0.1', port: 0, onError });
});
afterEach(async () => {
  await server.close();
  expect(errors.splice(0)).toEqual([]);
});

const ask = async (path: string, init: RequestInit = {}) => {
  const answer = await fetch(`${server.url}/v1/tickers/${path}`, init);
  return answer.status === 200 ? ((await answer.json()) as Ticker).rank : answer.status;
};

it('a cached answer is reused while it is current, and read again once it is not; each request is admitted once', async () => {
  expect([await ask('btc-bitcoin'), await ask('btc-bitcoin'), await ask('btc-bitcoin')]).toEqual([1, 1, 1]);
  expect([asked, admitted]).toEqual([1, 3]);
  price = 2;
  expect([await ask('btc-bitcoin'), await ask('btc-bitcoin')]).toEqual([2, 2]);
  expect([asked, admitted]).toEqual([2, 5]);
});

it('an answer is read again while the source cannot confirm that it is current', async () => {
  expect(await ask('btc-bitcoin')).toBe(1);
  isUnavailable = true;
  expect([await ask('btc-bitcoin'), asked]).toEqual([1, 2]);
});

it('answers to other addresses, and to anything but a plain GET, are read separately', async () => {
  expect([await ask('btc-bitcoin'), await ask('eth-ethereum'), await ask('nobody-here')]).toEqual([1, 1, 404]);
  expect(await ask('nobody-here')).toBe(404);
  expect(asked).toBe(4);
  expect([await ask('btc-bitcoin?quotes=USD,BTC'), await ask('btc-bitcoin', { method: 'POST' })]).toEqual([1, 1]);
  expect(asked).toBe(6);
});

it('parameters without meaning do not change the cached answer, and every request is still admitted', async () => {
  for (const query of ['', '?junk=1', '?junk=2', '?', '?%6aunk=3']) expect(await ask(`btc-bitcoin${query}`)).toBe(1);
  expect([asked, admitted]).toEqual([1, 5]);
});

it.each(['?x=#&quotes=EUR', '?%71uotes=EUR&quotes=BTC', '?x=1?&quotes=EUR'])(
  'the answer to the odd spelling %s is no answer to another question',
  async (odd) => {
    const quotes = async (query: string) => Object.keys((await askRaw(`/v1/tickers/btc-bitcoin${query}`)).quotes);
    const first = await quotes(odd);
    expect(await quotes(odd)).toEqual(first);
    expect(await quotes('?quotes=EUR')).toEqual(['EUR']);
    expect(await quotes('?quotes=BTC')).toEqual(['BTC']);
    expect(await quotes('')).toEqual(['USD']);
  },
);

/** As it is spelled: `fetch` would leave out what follows a `#`. */
async function askRaw(path: string): Promise<Ticker> {
  const { hostname, port } = new URL(server.url);
  const request = http.get({ hostname, port, path });
  const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
  return (await json(answer)) as Ticker;
}

it('a POST is answered whatever tag it names, and a GET with that tag has the answer already', async () => {
  const { url } = server;
  const given = { headers: { 'If-None-Match': '*' } };
  const get = await fetch(`${url}/v1/tickers/btc-bitcoin`, given);
  const post = await fetch(`${url}/v1/tickers/btc-bitcoin`, { ...given, method: 'POST' });
  expect([get.status, post.status, ((await post.json()) as Ticker).id]).toEqual([304, 200, 'btc-bitcoin']);
});

const candles = (path: string) => fetch(`${server.url}/v1/coins/btc-bitcoin/ohlcv${path}`);

it('a cached answer is not sent once it lies before the moving history limit of the plan', async () => {
  depthMs = DAY;
  const path = '/historical?start=2024-05-31T12:00:00Z&interval=1h';
  for (const _ of [1, 2]) expect((await candles(path)).status).toBe(200);
  expect(asked).toBe(1);
  now += 1;
  expect((await candles(path)).status).toBe(402);
});

it('after midnight the latest candle is another one', async () => {
  const openTimes = async () => {
    const rows = (await (await candles('/latest')).json()) as { time_open: string }[];
    return rows.map((row) => row.time_open);
  };
  for (const _ of [1, 2]) expect(await openTimes()).toEqual(['2024-05-31T00:00:00Z']);
  expect(asked).toBe(1);
  now += DAY;
  expect(await openTimes()).toEqual(['2024-06-01T00:00:00Z']);
  expect(asked).toBe(2);
});

describe('the cache key of a request', () => {
  const known = new Set(['quotes', 'page']);
  it.each([
    ['/v1/tickers', '/v1/tickers'],
    ['/v1//tickers?junk=1', '/v1/tickers'],
    ['/v1/tickers?quotes=USD,BTC&page=2', '/v1/tickers?quotes=USD,BTC&page=2'],
    ['/v1/tickers?page=1&quotes=USD&page=2', '/v1/tickers?page=1&quotes=USD'],
    ['/v1/tickers?quotes=USD%26page=2', '/v1/tickers?quotes=USD%26page=2'],
    ['/v1/tickers?%71uotes=%55SD', '/v1/tickers?quotes=USD'],
    ['/v1/tickers?quotes=a+b%2Bc', '/v1/tickers?quotes=a b%2Bc'],
    ['/v1/%74ickers', null],
    [`/v1/tickers?quotes=${'x'.repeat(200)}`, null],
  ])('to %s is %s', (given, target) => {
    expect(canonicalTarget(`http://service:80${given}`, known)).toBe(target);
  });
});
