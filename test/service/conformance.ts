/** What the service promises over any `MarketData`. Each implementation runs this suite. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clock, createScaledClock } from '../../src/clock.ts';
import type { Missing } from '../../src/contract/answer/not-found.ts';
import type { Handler } from '../../src/contract/interface/handler.ts';
import { TOOL_NAMES, type ToolName } from '../../src/contract/interface/tools.ts';
import type { Access } from '../../src/contract/plan/access.ts';
import { type CoinDetails, ID_PROVIDERS } from '../../src/contract/record/catalogue.ts';
import type { MarketData } from '../../src/contract/record/market-data.ts';
import { readOhlcvRows } from '../../src/contract/record/ohlcv.ts';
import {
  coinsSchema,
  exchangesSchema,
  globalSchema,
  readRecord,
  type Ticker,
  tickerSchema,
  tickersSchema,
} from '../../src/contract/record/records.ts';
import { formatTime } from '../../src/contract/time.ts';
import { DAY } from '../../src/core/interval.ts';
import { createService } from '../../src/service/service.ts';
import { type AnswerPath, createAnswerCheck } from './upstream-schema.ts';

export type Subject = {
  readonly data: MarketData<Missing>;
  readonly clock: Clock;
  /** An active coin with a closed daily candle in usd on each of the 20 days from `firstDay` (midnight UTC) on. */
  readonly coinId: string;
  readonly firstDay: number;
  /** `bare`: a source that lacks whole parts of the catalogue and some values; they are then empty or null. */
  readonly catalogue?: 'full' | 'bare';
  /** `coins`: a source without rates of fiat currencies; values in them are null. */
  readonly rates?: 'all' | 'coins';
  /** A coin that was never requested on its own, and everything that lists say about it. */
  readonly listed?: CoinDetails;
  readonly close?: () => Promise<void>;
};

type ContractRow = { readonly address: string; readonly id: string };

/** A clock that does not move. */
export function frozenClock(at: number): Clock {
  return createScaledClock({ speed: 0, startAt: at });
}

/** Admits every caller and hides nothing. */
export const openAccess: Access = {
  admit: () => ({ kind: 'admitted', plan: 'enterprise' }),
  refuseHistory: () => null,
  refuseTickerHistory: () => null,
  refuseIdChanges: () => null,
  refuseMappings: () => null,
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

    it('includes both ends of the range, in ascending order', async () => {
      expect(await times(`start=${day(2)}&end=${day(12)}`)).toEqual(daysFrom(2, 11));
      expect(await times(`start=${day(2)}&end=${day(2)}`)).toEqual(daysFrom(2, 1));
    });

    it('returns one candle without end and limit, otherwise the first `limit` ones', async () => {
      expect(await times(`start=${day(2)}`)).toEqual(daysFrom(2, 1));
      expect(await times(`start=${day(2)}&limit=5`)).toEqual(daysFrom(2, 5));
      expect(await times(`start=${day(2)}&end=${day(12)}&limit=5`)).toEqual(daysFrom(2, 5));
    });

    it('starts with the first candle that opens at or after the start', async () => {
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

    it('returns the same candles under both paths', async () => {
      const query = `start=${day(2)}&end=${day(9)}&interval=24h`;
      const rows = await json(`/coins/${subject.coinId}/ohlcv?${query}`);
      expect(rows).toHaveLength(8);
      expect(rows).toEqual(await json(`/coins/${subject.coinId}/ohlcv/historical?${query}`));
    });

    it('returns no candles for an unknown coin, and 404 for its ticker', async () => {
      const ohlcv = await get(`/coins/nono-nowhere/ohlcv/historical?start=${day(2)}`);
      expect([ohlcv.status, await ohlcv.text()]).toEqual([200, '[]']);
      const ticker = await get('/tickers/nono-nowhere');
      expect([ticker.status, await ticker.json()]).toEqual([404, { error: 'id not found' }]);
    });

    it('never returns a candle of the future', async () => {
      const tomorrow = Math.floor(subject.clock.now() / DAY) * DAY + DAY;
      expect(await times(`start=${formatTime(tomorrow)}&end=${formatTime(tomorrow + 5 * DAY)}`)).toEqual([]);
    });

    it('lists coins; the active ones have tickers in the requested quotes', async () => {
      const coins = readRecord(coinsSchema, await json('/coins'));
      const tickers = readRecord(tickersSchema, await json('/tickers?quotes=BTC,USD'));
      if (!coins.ok || !tickers.ok) throw new Error(JSON.stringify([coins, tickers]));
      const active = coins.value.filter((coin) => coin.is_active);
      expect(active.map((coin) => coin.id)).toContain(subject.coinId);
      expect(tickers.value.map((ticker) => ticker.id).sort()).toEqual(active.map((coin) => coin.id).sort());
      for (const ticker of tickers.value) expect(Object.keys(ticker.quotes).sort()).toEqual(['BTC', 'USD']);
    });

    it('returns one ticker as it is in the list', async () => {
      const list = (await json('/tickers')) as Ticker[];
      const one = readRecord(tickerSchema, await json(`/tickers/${subject.coinId}`));
      expect(one.ok && one.value.id).toBe(subject.coinId);
      // The vendor's own JavaScript client sends such a path.
      expect(await json(`/tickers//${subject.coinId}`)).toEqual(await json(`/tickers/${subject.coinId}`));
      expect(await json(`/tickers/${subject.coinId}?quotes=BTC?`)).toEqual(
        await json(`/tickers/${subject.coinId}?quotes=BTC`),
      );
      expect(await json(`/tickers/${subject.coinId}?`)).toEqual(await json(`/tickers/${subject.coinId}`));
      expect(await json(`/tickers/${subject.coinId}/`)).toEqual(list.find((ticker) => ticker.id === subject.coinId));
    });

    it('returns an overview and exchanges in the documented shape', async () => {
      expect(readRecord(globalSchema, await json('/global'))).toMatchObject({ ok: true });
      expect(readRecord(exchangesSchema, await json('/exchanges?quotes=USD'))).toMatchObject({ ok: true });
    });

    describe('in the shapes of the vendor’s document', () => {
      const isFull = () => subject.catalogue !== 'bare';
      const checked = async <T>(path: AnswerPath, filled: string): Promise<T> => {
        const body = await json(filled);
        const unrated = subject.rates === 'coins' ? ['EUR'] : [];
        createAnswerCheck({ nulls: isFull() ? 'documented' : 'anywhere', unrated })(path, body);
        return body as T;
      };
      type Row = { readonly id: string };

      it('returns the market', async () => {
        await checked('/global', '/global');
        await checked('/coins', '/coins');
        for (const quotes of ['', '?quotes=BTC', '?quotes=usd,EUR']) {
          await checked('/tickers', `/tickers${quotes}`);
          await checked('/tickers/{coin_id}', `/tickers/${subject.coinId}${quotes}`);
          await checked('/tickers/simple', `/tickers/simple${quotes}`);
          await checked('/exchanges', `/exchanges${quotes}`);
        }
        await checked('/ticker', '/ticker');
        await checked('/ticker/{coin_id}', `/ticker/${subject.coinId}`);
      });

      it('returns a hundred prices a page', async () => {
        const all = (await json('/tickers')) as Row[];
        const pages = [await json('/tickers/simple'), await json('/tickers/simple?page=2')] as Row[][];
        expect(pages.flat().map(({ id }) => id)).toEqual(all.slice(0, 200).map(({ id }) => id));
        expect(pages[0]!.length).toBeLessThanOrEqual(100);
      });

      it('returns history', async () => {
        const range = `start=${day(2)}&end=${day(9)}`;
        for (const path of ['/coins/{coin_id}/ohlcv', '/coins/{coin_id}/ohlcv/historical'] as const) {
          expect(await checked(path, `${path.replace('{coin_id}', subject.coinId)}?${range}`)).toHaveLength(8);
        }
        for (const path of ['/coins/{coin_id}/ohlcv/latest', '/coins/{coin_id}/ohlcv/today'] as const) {
          await checked(path, path.replace('{coin_id}', subject.coinId));
        }
        const ticks = `/tickers/${subject.coinId}/historical`;
        const daily = await checked<{ timestamp: string }[]>(
          '/tickers/{coin_id}/historical',
          `${ticks}?${range}&interval=1d`,
        );
        if (isFull()) expect(daily.map(({ timestamp }) => timestamp)).toEqual([2, 3, 4, 5, 6, 7, 8].map(day));
        const two = await checked<{ timestamp: string }[]>(
          '/tickers/{coin_id}/historical',
          `${ticks}?${range}&interval=24h&limit=2`,
        );
        expect(two).toEqual(daily.slice(0, 2));
      });

      it('returns a coin, its markets and its events', async () => {
        const { coinId } = subject;
        const coin = await checked<Row>('/coins/{coin_id}', `/coins/${coinId}`);
        expect(coin.id).toBe(coinId);
        await checked('/coins/{coin_id}/events', `/coins/${coinId}/events`);
        const places = await checked<Row[]>('/coins/{coin_id}/exchanges', `/coins/${coinId}/exchanges`);
        const markets = await checked<{ exchange_id: string; quotes: object }[]>(
          '/coins/{coin_id}/markets',
          `/coins/${coinId}/markets?quotes=BTC,EUR`,
        );
        expect(markets.length).toBeGreaterThan(0);
        for (const { exchange_id, quotes } of markets) {
          expect(places.map(({ id }) => id)).toContain(exchange_id);
          expect(Object.keys(quotes)).toEqual(['BTC', 'EUR']);
        }
      });

      it('answers for a coin without details from the lists, and leaves out what no list has', async () => {
        const { listed } = subject;
        if (listed === undefined) return;
        const coin = await json(`/coins/${listed.id}`);
        createAnswerCheck({ nulls: 'documented', absent: 'any' })('/coins/{coin_id}', coin);
        expect(coin).toEqual(listed);
      });

      it('returns an exchange and its markets', async () => {
        const [exchange] = (await json('/exchanges')) as Row[];
        const path = `/exchanges/${exchange!.id}`;
        expect(await checked('/exchanges/{exchange_id}', path)).toEqual(exchange);
        expect(await checked('/exchanges/{exchange_id}/markets', `${path}/markets`)).not.toEqual([]);
      });

      it('returns tags, and their coins and icos only on request', async () => {
        const tags = await checked<Row[]>('/tags', '/tags');
        if (!isFull()) return expect(tags).toEqual([]);
        const path = `/tags/${tags[0]!.id}`;
        const keys = async (query: string) =>
          Object.keys(await checked<object>('/tags/{tag_id}', path + query)).filter((key) =>
            /^(coins|icos)$/.test(key),
          );
        expect(await keys('')).toEqual([]);
        expect(await keys('?additional_fields=icos')).toEqual(['icos']);
        expect(await keys('?additional_fields=coins,icos')).toEqual(['coins', 'icos']);
        const all = await checked<object[]>('/tags', '/tags?additional_fields=coins');
        expect(all[0]).toHaveProperty('coins');
        expect(all[0]).not.toHaveProperty('icos');
        return undefined;
      });

      it('returns the people of a team', async () => {
        const { team } = (await json(`/coins/${subject.coinId}`)) as { team: Row[] };
        if (!isFull()) return expect(team).toEqual([]);
        const person = await checked<{ positions: { coin_id: string }[] }>(
          '/people/{person_id}',
          `/people/${team[0]!.id}`,
        );
        expect(person.positions.map(({ coin_id }) => coin_id)).toContain(subject.coinId);
        return undefined;
      });

      it('redirects from a contract to the ticker of its coin, by a relative address that keeps the query', async () => {
        const platforms = await checked<string[]>('/contracts', '/contracts');
        if (!isFull()) return expect(platforms).toEqual([]);
        const rows = await checked<{ id: string; address: string }[]>(
          '/contracts/{platform_id}',
          `/contracts/${platforms[0]}`,
        );
        const { id, address } = rows[0]!;
        for (const below of ['', '/historical']) {
          const answer = await get(`/contracts/${platforms[0]}/${address}${below}?quotes=EUR&start=${day(2)}`);
          expect([answer.status, answer.headers.get('location')]).toEqual([
            301,
            `/v1/tickers/${id}${below}?quotes=EUR&start=${day(2)}`,
          ]);
        }
        expect((await get(`/contracts/${platforms[0]}/0x00`)).status).toBe(404);
        return undefined;
      });

      it('finds what is searched for and nothing else, with and without a trailing slash', async () => {
        const { symbol, name } = (await json(`/tickers/${subject.coinId}`)) as { symbol: string; name: string };
        const found = await checked<{ currencies: Row[] }>('/search', `/search?q=${encodeURIComponent(name)}`);
        expect(found.currencies[0]!.id).toBe(subject.coinId);
        expect(Object.keys(found)).toEqual(['currencies', 'icos', 'exchanges', 'people', 'tags']);
        expect(await json(`/search/?q=${encodeURIComponent(name)}`)).toEqual(found);
        const one = (await json('/search?q=o&c=currencies,tags&limit=1')) as Record<string, Row[]>;
        expect(Object.keys(one)).toEqual(['currencies', 'tags']);
        for (const list of Object.values(one)) expect(list.length).toBeLessThanOrEqual(1);
        for (const modifier of ['symbol_search', 'symbol']) {
          const by = (await json(`/search?q=${symbol.toLowerCase()}&modifier=${modifier}`)) as {
            currencies: { symbol: string }[];
          };
          expect(new Set(by.currencies.map((currency) => currency.symbol))).toEqual(new Set([symbol]));
        }
      });

      it('converts an amount, and by default none', async () => {
        const path = `/price-converter?base_currency_id=${subject.coinId}&quote_currency_id=usd-us-dollars`;
        expect(await checked('/price-converter', path)).toMatchObject({ amount: 0, price: 0 });
        const { quotes } = (await json(`/tickers/${subject.coinId}`)) as { quotes: { USD: { price: number } } };
        const { price } = await checked<{ price: number }>('/price-converter', `${path}&amount=2.5`);
        expect(price / (2.5 * quotes.USD.price)).toBeCloseTo(1, 9);
      });

      it('returns the ids of a coin at other providers, by each of them', async () => {
        const path = `/coins/mappings?coinpaprika=${subject.coinId}`;
        const mapping = await checked<Record<string, string>>('/coins/mappings', path);
        expect(mapping.coinpaprika).toBe(subject.coinId);
        for (const provider of ID_PROVIDERS) {
          if (mapping[provider] === '') continue;
          expect(await json(`/coins/mappings?${provider}=${mapping[provider]}`)).toEqual(mapping);
          expect(await json(`/coins/mappings/?${provider}=${mapping[provider]}&`)).toEqual(mapping);
        }
      });

      it('returns changes of ids', async () => {
        await checked('/changelog/ids', '/changelog/ids');
        expect(await checked('/changelog/ids', '/changelog/ids?page=1000')).toEqual([]);
      });
    });

    it.each([
      '/coins/nono-nowhere',
      '/coins/nono-nowhere/events',
      '/coins/nono-nowhere/exchanges',
      '/coins/nono-nowhere/markets',
      '/tickers/nono-nowhere/historical?start=2024-01-01&interval=1d',
      '/ticker/nono-nowhere',
      '/exchanges/nowhere',
      '/exchanges/nowhere/markets',
      '/tags/nothing',
      '/people/nobody-nowhere',
      '/coins/mappings?coinpaprika=nono-nowhere',
      '/coins/mappings?coingecko=nowhere',
      '/coins/mappings?isin=a%00b',
      '/contracts/nono-nowhere',
      '/contracts/eth-ethereum/0x00',
      '/price-converter?base_currency_id=nono-nowhere&quote_currency_id=usd-us-dollars',
    ])('returns 404 for %s', async (path) => {
      const answer = await get(path);
      expect([answer.status, await answer.json()]).toEqual([404, { error: 'id not found' }]);
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
      ['/tickers/simple?page=0', 400, /page must be a whole number from 1/],
      ['/tickers/{id}/historical', 400, /start is required/],
      ['/tickers/{id}/historical?start=soon', 400, /start must be a date .*, got "soon"/],
      ['/tickers/{id}/historical?start=2024-01-02&end=2024-01-01', 400, /end must not be before start/],
      ['/tickers/{id}/historical?start=2024-01-02&interval=4h', 400, /interval must be one of .*, got "4h"/],
      ['/tickers/{id}/historical?start=2024-01-02&interval=toString', 400, /interval must be/],
      ['/tickers/{id}/historical?start=2024-01-02&limit=5001', 400, /limit must be a whole number from 1 to 5000/],
      ['/tickers/{id}/historical?start=2024-01-02&quote=eur', 400, /quote must be usd or btc/],
      ['/coins/{id}/markets?quotes=XAU', 400, /quotes must be/],
      ['/exchanges?quotes=USD,BTC,ETH,EUR', 400, /^Max number of quotes is 3$/],
      ['/exchanges/nowhere?quotes=XAU', 400, /quotes must be/],
      ['/tags?additional_fields=people', 400, /additional_fields must be one or more of coins icos, got "people"/],
      ['/search', 400, /q is required/],
      ['/search?q=%20', 400, /q is required/],
      ['/search?q=a%00b', 400, /q must be a text/],
      ['/search?q=btc&c=coins', 400, /c must be one or more of currencies exchanges icos people tags, got "coins"/],
      ['/search?q=btc&modifier=name', 400, /modifier must be symbol or symbol_search/],
      ['/search?q=btc&limit=251', 400, /limit must be a whole number from 1 to 250, got "251"/],
      ['/price-converter?base_currency_id=btc-bitcoin', 400, /quote_currency_id is required/],
      ['/price-converter?quote_currency_id=btc-bitcoin', 400, /base_currency_id is required/],
      [
        '/price-converter?base_currency_id={id}&quote_currency_id={id}&amount=-1',
        400,
        /amount must be a number of at least 0, got "-1"/,
      ],
      // Times a price, the amount would exceed every number, and the result would be null, as if there were no price.
      [
        '/price-converter?base_currency_id={id}&quote_currency_id={id}&amount=1e308',
        400,
        /amount must be at most 1e100/,
      ],
      ['/coins/mappings', 400, /exactly one of coinpaprika, .*, dti must be given$/],
      ['/coins/mappings?coinpaprika=', 400, /exactly one of coinpaprika, .*, dti must be given$/],
      ['/coins/mappings?coinpaprika={id}&coingecko=bitcoin', 400, /exactly one of/],
      ['/coins/mappings?coinpaprika={id}&coinpaprika={id}', 400, /exactly one of/],
      ['/coins/mappings?messari=bitcoin', 400, /messari is unknown: exactly one of/],
      ['/coins/mappings?coinpaprika={id}&limit=1', 400, /limit is unknown: exactly one of/],
      ['/changelog/ids?page=two', 400, /page must be a whole number from 1/],
    ])('rejects %s', async (path, status, message) => {
      const answer = await get(path.replaceAll('{id}', subject.coinId));
      expect(answer.status).toBe(status);
      expect(await answer.json()).toEqual({ error: expect.stringMatching(message) });
    });

    it('tools return what REST returns', async () => {
      const { coinId } = subject;
      const idOf = async (path: string) => ((await json(path)) as { id: string }[])[0]?.id;
      const exchangeId = await idOf('/exchanges');
      const tagId = await idOf('/tags');
      const personId = ((await json(`/coins/${coinId}`)) as { team: { id: string }[] }).team[0]?.id;
      const [platformId] = (await json('/contracts')) as string[];
      const contracts = platformId === undefined ? [] : ((await json(`/contracts/${platformId}`)) as ContractRow[]);
      const contract = contracts[0];
      const some = { limit: 7 };
      const pairs: readonly (readonly [ToolName, object, string, boolean?])[] = [
        ['getGlobal', {}, '/global'],
        ['getCoins', some, '/coins'],
        ['getCoinById', { coinId }, `/coins/${coinId}`],
        ['getCoinEvents', { coinId, ...some }, `/coins/${coinId}/events`],
        ['getCoinExchanges', { coinId, ...some }, `/coins/${coinId}/exchanges`],
        ['getCoinMarkets', { coinId, quotes: 'USD,BTC', ...some }, `/coins/${coinId}/markets?quotes=USD,BTC`],
        ['getTickers', { quotes: 'BTC', ...some }, '/tickers?quotes=BTC'],
        ['getTickersById', { coinId, quotes: 'eth' }, `/tickers/${coinId}?quotes=ETH`],
        ['getPeopleById', { personId }, `/people/${personId}`, personId !== undefined],
        ['getTags', { ...some, additionalFields: 'coins' }, '/tags?additional_fields=coins'],
        [
          'getTagById',
          { tagId, additionalFields: 'icos' },
          `/tags/${tagId}?additional_fields=icos`,
          tagId !== undefined,
        ],
        ['getExchanges', some, '/exchanges'],
        ['getExchangeByID', { exchangeId }, `/exchanges/${exchangeId}`, exchangeId !== undefined],
        ['getExchangeMarkets', { exchangeId, ...some }, `/exchanges/${exchangeId}/markets`, exchangeId !== undefined],
        ['getPlatforms', some, '/contracts'],
        ['getContracts', { platformId, ...some }, `/contracts/${platformId}`, platformId !== undefined],
        [
          'getTickerByContract',
          { platformId, contractAddress: contract?.address },
          `/tickers/${contract?.id}`,
          contract !== undefined,
        ],
        [
          'priceConverter',
          { baseCurrencyId: coinId, quoteCurrencyId: 'usd-us-dollars', amount: 2 },
          `/price-converter?base_currency_id=${coinId}&quote_currency_id=usd-us-dollars&amount=2`,
        ],
        ['search', { q: 'b', categories: 'currencies,tags', ...some }, '/search?q=b&c=currencies,tags&limit=7'],
      ];
      expect(pairs.map(([name]) => name)).toEqual(TOOL_NAMES);
      for (const [name, given, path, exists = true] of pairs) {
        if (!exists) continue;
        const answer = await service(
          new Request('http://service/rpc', {
            method: 'POST',
            headers: { 'Content-Type': 'application/json' },
            body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } }),
          }),
        );
        const said = (await answer.json()) as { result?: { content: { text: string }[] }; error?: unknown };
        const rest = await get(path);
        if (rest.status !== 200) {
          expect(said.error, name).toMatchObject({ data: { status: rest.status } });
          continue;
        }
        const body = await rest.json();
        const expected = JSON.stringify(Array.isArray(body) && 'limit' in given ? body.slice(0, some.limit) : body);
        expect(said.result?.content[0]?.text, name).toBe(expected);
      }
    });
  });
}
