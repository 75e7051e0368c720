/** What the service promises over any `MarketData`: run it over each implementation. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clock, createScaledClock } from '../../src/clock.ts';
import type { Access } from '../../src/contract/access.ts';
import type { Handler } from '../../src/contract/handler.ts';
import type { MarketData } from '../../src/contract/market-data.ts';
import { readOhlcvRows } from '../../src/contract/ohlcv.ts';
import {
  coinsSchema,
  exchangesSchema,
  globalSchema,
  readRecord,
  type Ticker,
  tickerSchema,
  tickersSchema,
} from '../../src/contract/records.ts';
import { formatTime } from '../../src/contract/time.ts';
import { DAY } from '../../src/core/interval.ts';
import { createService } from '../../src/service/service.ts';

export type Subject = {
  readonly data: MarketData;
  readonly clock: Clock;
  /** An active coin with a closed daily usd candle on each of the 20 days from `firstDay` (midnight UTC) on. */
  readonly coinId: string;
  readonly firstDay: number;
  readonly close?: () => Promise<void>;
};

/** A clock that stands still. */
export function frozenClock(at: number): Clock {
  return createScaledClock({ speed: 0, startAt: at });
}

/** Lets everybody in, and hides nothing. */
export const openAccess: Access = {
  admit: () => ({ kind: 'admitted', plan: 'enterprise' }),
  refuseHistory: () => null,
  account: () => null,
};

export function describeService(title: string, prepare: () => Promise<Subject>): void {
  describe(`the service over ${title}`, () => {
    let subject: Subject;
    let service: Handler;
    beforeAll(async () => {
      subject = await prepare();
      service = createService({
        data: subject.data,
        access: openAccess,
        clock: subject.clock,
        onError: (error) => {
          throw error;
        },
      });
    });
    afterAll(() => subject?.close?.());

    const get = (path: string) => service(new Request(`http://service/v1${path}`));
    const json = async (path: string): Promise<unknown> => (await get(path)).json();
    const day = (n: number) => formatTime(subject.firstDay + n * DAY);
    const times = async (query: string) => {
      const read = readOhlcvRows(await json(`/coins/${subject.coinId}/ohlcv/historical?${query}`));
      if (!read.ok) throw new Error(read.problem);
      return read.rows.map((row) => row.openTime);
    };
    const daysFrom = (n: number, count: number) =>
      Array.from({ length: count }, (_, i) => subject.firstDay + (n + i) * DAY);

    it('includes both ends of the range, ascending', async () => {
      expect(await times(`start=${day(2)}&end=${day(12)}`)).toEqual(daysFrom(2, 11));
      expect(await times(`start=${day(2)}&end=${day(2)}`)).toEqual(daysFrom(2, 1));
    });

    it('gives one candle without end and limit, and the first `limit` of them otherwise', async () => {
      expect(await times(`start=${day(2)}`)).toEqual(daysFrom(2, 1));
      expect(await times(`start=${day(2)}&limit=5`)).toEqual(daysFrom(2, 5));
      expect(await times(`start=${day(2)}&end=${day(12)}&limit=5`)).toEqual(daysFrom(2, 5));
    });

    it('begins with the first candle that opens at or after the start', async () => {
      const start = (subject.firstDay + 2 * DAY + 1000) / 1000;
      expect(await times(`start=${start}&limit=2`)).toEqual(daysFrom(3, 2));
    });

    it('writes rows as the upstream does: keys, order, times, numbers', async () => {
      const answer = await get(`/coins/${subject.coinId}/ohlcv/historical?start=${day(2)}&end=${day(4)}`);
      const text = await answer.text();
      const rows = JSON.parse(text) as Record<string, unknown>[];
      expect(text).toBe(JSON.stringify(rows));
      for (const row of rows) {
        expect(Object.keys(row)).toEqual([
          'time_open',
          'time_close',
          'open',
          'high',
          'low',
          'close',
          'volume',
          'market_cap',
        ]);
        expect(row.time_open).toMatch(/T00:00:00Z$/);
        expect(row.time_close).toBe(String(row.time_open).replace('00:00:00Z', '23:59:59Z'));
      }
      expect(answer.headers.get('content-type')).toBe('application/json');
    });

    it('has the same candles under both paths', async () => {
      const query = `start=${day(2)}&end=${day(9)}&interval=24h`;
      const rows = await json(`/coins/${subject.coinId}/ohlcv?${query}`);
      expect(rows).toHaveLength(8);
      expect(rows).toEqual(await json(`/coins/${subject.coinId}/ohlcv/historical?${query}`));
    });

    it('says of an unknown coin that it has no candles, and no ticker', async () => {
      const ohlcv = await get(`/coins/nono-nowhere/ohlcv/historical?start=${day(2)}`);
      expect([ohlcv.status, await ohlcv.text()]).toEqual([200, '[]']);
      const ticker = await get('/tickers/nono-nowhere');
      expect([ticker.status, await ticker.json()]).toEqual([404, { error: 'id not found' }]);
    });

    it('never answers a candle of the future', async () => {
      const tomorrow = Math.floor(subject.clock.now() / DAY) * DAY + DAY;
      expect(await times(`start=${formatTime(tomorrow)}&end=${formatTime(tomorrow + 5 * DAY)}`)).toEqual([]);
    });

    it('lists coins, of which the active ones have tickers with the quotes that were asked for', async () => {
      const coins = readRecord(coinsSchema, await json('/coins'));
      const tickers = readRecord(tickersSchema, await json('/tickers?quotes=BTC,USD'));
      if (!coins.ok || !tickers.ok) throw new Error(JSON.stringify([coins, tickers]));
      const active = coins.value.filter((coin) => coin.is_active);
      expect(active.map((coin) => coin.id)).toContain(subject.coinId);
      expect(tickers.value.map((ticker) => ticker.id).sort()).toEqual(active.map((coin) => coin.id).sort());
      for (const ticker of tickers.value) expect(Object.keys(ticker.quotes).sort()).toEqual(['BTC', 'USD']);
    });

    it('answers one ticker as it stands in the list', async () => {
      const list = (await json('/tickers')) as Ticker[];
      const one = readRecord(tickerSchema, await json(`/tickers/${subject.coinId}`));
      expect(one.ok && one.value.id).toBe(subject.coinId);
      expect(await json(`/tickers/${subject.coinId}/`)).toEqual(list.find((ticker) => ticker.id === subject.coinId));
    });

    it('has an overview and exchanges of the documented shape', async () => {
      expect(readRecord(globalSchema, await json('/global'))).toMatchObject({ ok: true });
      expect(readRecord(exchangesSchema, await json('/exchanges?quotes=USD'))).toMatchObject({ ok: true });
    });

    it.each([
      ['/coins/{id}/ohlcv/historical', 400, /start is required/],
      ['/coins/{id}/ohlcv/historical?start=soon', 400, /start must be/],
      ['/coins/{id}/ohlcv/historical?start=2020-01-01&end=2021-06-01', 400, /end must be at most one year/],
      ['/coins/{id}/ohlcv/historical?start=2020-01-01&limit=367', 400, /limit must be/],
      ['/coins/{id}/ohlcv/historical?start=2020-01-01&interval=1d', 400, /interval must be/],
      ['/coins/{id}/ohlcv/latest?quote=eur', 400, /quote must be/],
      ['/tickers?quotes=USD,BTC,ETH,EUR', 400, /^Max number of quotes is 3$/],
      ['/tickers/{id}?quotes=XAU', 400, /quotes must be/],
    ])('refuses %s', async (path, status, message) => {
      const answer = await get(path.replace('{id}', subject.coinId));
      expect(answer.status).toBe(status);
      expect(await answer.json()).toEqual({ error: expect.stringMatching(message) });
    });
  });
}
