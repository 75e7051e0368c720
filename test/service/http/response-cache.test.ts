/** What was answered is answered again without asking the source for it, as long as the source says that it still holds. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createScaledClock } from '../../../src/clock.ts';
import { standingOn, wholeAsOf } from '../../../src/contract/answer/provenance.ts';
import { lasting } from '../../../src/contract/answer/revalidation.ts';
import type { Ticker } from '../../../src/contract/record/records.ts';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { createService } from '../../../src/service/service.ts';
import { createMadeUpMarket } from '../../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../../src/simulator/made-up/made-up-world.ts';

const NOON = Date.UTC(2024, 5, 1, 12);
const clock = createScaledClock({ speed: 0, startAt: NOON });
const market = createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 3 }), clock });
const errors: unknown[] = [];
const onError = (error: unknown) => void errors.push(error);

/** How often the source was asked for the ticker, and whether it still holds. */
let asked: number;
let price: number;
let isAway: boolean;
let admitted: number;
let server: Listening;
/** As a source keeps what it may answer again: what nobody holds is not given again. */
const kept: Ticker[] = [];
beforeEach(async () => {
  [asked, price, isAway, admitted] = [0, 1, false, 0];
  const ticker = async (query: Parameters<typeof market.ticker>[0]) => {
    asked++;
    const found = await market.ticker(query);
    if (found === null) return null;
    const told = price;
    const answer = { ...found, rank: told } as Ticker;
    kept.push(answer);
    return lasting(standingOn(answer, wholeAsOf(NOON)), async () => {
      if (isAway) throw new Error('away');
      return told === price;
    });
  };
  const access = {
    admit: async () => {
      admitted++;
      return { kind: 'admitted', plan: 'enterprise' } as const;
    },
    refuseHistory: () => null,
    refuseTickerHistory: () => null,
    refuseIdChanges: () => null,
    account: () => null,
  };
  const service = createService({ data: { ...market, ticker }, access, clock, onError });
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

it('is not asked for again while it holds, and at once when it does not; who asks is admitted once each time', async () => {
  expect([await ask('btc-bitcoin'), await ask('btc-bitcoin'), await ask('btc-bitcoin')]).toEqual([1, 1, 1]);
  expect([asked, admitted]).toEqual([1, 3]);
  price = 2;
  expect([await ask('btc-bitcoin'), await ask('btc-bitcoin')]).toEqual([2, 2]);
  expect([asked, admitted]).toEqual([2, 5]);
});

it('is asked for anew while nobody can say whether it holds', async () => {
  expect(await ask('btc-bitcoin')).toBe(1);
  isAway = true;
  expect([await ask('btc-bitcoin'), asked]).toEqual([1, 2]);
});

it('is another answer at another address, and to anything but a plain GET', async () => {
  expect([await ask('btc-bitcoin'), await ask('eth-ethereum'), await ask('nobody-here')]).toEqual([1, 1, 404]);
  expect(await ask('nobody-here')).toBe(404);
  expect(asked).toBe(4);
  expect([await ask('btc-bitcoin?quotes=USD,BTC'), await ask('btc-bitcoin', { method: 'POST' })]).toEqual([1, 1]);
  expect(asked).toBe(6);
});
