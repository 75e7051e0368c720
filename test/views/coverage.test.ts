/** The provenance of the warehouse's answers, over REST and from tools. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { provenanceOf } from '../../src/contract/answer/provenance.ts';
import { isCurrentOf } from '../../src/contract/answer/revalidation.ts';
import type { Handler } from '../../src/contract/interface/handler.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { createService } from '../../src/service/service.ts';
import { writeContracts } from '../../src/store/catalogue/contract.ts';
import { type DocumentKind, markDocumentsGone, writeDocuments } from '../../src/store/catalogue/document.ts';
import { recordRenames } from '../../src/store/upkeep/rename.ts';
import { createWarehouse } from '../../src/views/market/warehouse.ts';
import { createWarehouseTools } from '../../src/views/operations/warehouse-tools.ts';
import { frozenClock, openAccess } from '../service/conformance.ts';
import { createTestDatabase } from '../support/database.ts';
import { runSchedules } from '../support/scheduled.ts';
import { fillTickerHistory } from '../support/ticker-history.ts';
import { seedSeries } from '../support/warehouse.ts';
import { createWorld, type World } from '../support/world.ts';

const NOW = Date.UTC(2024, 5, 10, 12, 3, 20);
const TODAY = Date.UTC(2024, 5, 10);
const day = (n: number) => new Date(TODAY + n * DAY).toISOString().slice(0, 10);
const at = (ms: number) => new Date(ms).toISOString().replace('.000', '');

let world: World;
let serve: Handler;

beforeAll(async () => {
  world = await createWorld({ startAt: NOW, simulator: { seed: 1, coins: 6 } });
  const chandler = await world.open();
  const { sql } = world.database;
  await runSchedules(world, chandler, ['exchanges']);
  const days = (from: number, count: number) => Array.from({ length: count }, (_, i) => TODAY + (from + i) * DAY);
  await seedSeries(sql, {
    coinId: 'btc-bitcoin',
    interval: '24h',
    wanted: [{ from: TODAY - 30 * DAY, to: TODAY }],
    // Of ten days two are known to be empty, and the day after them is missing.
    covered: [{ from: TODAY - 10 * DAY, to: TODAY - 3 * DAY }],
    candles: [...days(-10, 5), ...days(-2, 2)],
  });
  await sql`update market.series set answered_at = ${NOW - HOUR}`;
  // Two days with a snapshot in each hour, and one day with a single snapshot.
  const hours = Array.from({ length: 48 }, (_, i) => TODAY - 4 * DAY + i * HOUR + 60_000);
  await fillTickerHistory(sql, world.simulator.data, [...hours, TODAY - 2 * DAY + 5 * HOUR]);
  serve = createService({
    data: createWarehouse({ sql, clock: frozenClock(NOW) }),
    warehouse: createWarehouseTools({ sql, clock: frozenClock(NOW) }),
    access: openAccess,
    clock: frozenClock(NOW),
    onError: (error) => {
      throw error;
    },
  });
});
afterAll(() => world?.close());

/** `[coverage, as-of]` of a path. */
const of = async (path: string) => {
  const { status, headers } = await serve(new Request(`http://service/v1${path}`));
  if (status !== 200) throw new Error(`${path}: ${status}`);
  return [headers.get('x-chandler-coverage'), headers.get('x-chandler-as-of')];
};
/** The same for a path that answers 404. */
const nothingAt = async (path: string, via: Handler = serve) => {
  const answer = await via(new Request(`http://service/v1${path}`));
  expect([path, answer.status, await answer.json()]).toEqual([path, 404, { error: 'id not found' }]);
  return [answer.headers.get('x-chandler-coverage'), answer.headers.get('x-chandler-as-of')];
};
/** The same for a tool that finds nothing. */
const noneBy = async (name: string, given: object) => {
  const { error } = await call(name, given);
  expect(error).toMatchObject({ message: '404: id not found', data: { status: 404 } });
  return [error?.data['chandler/coverage'] ?? null, error?.data['chandler/as-of'] ?? null];
};
const tool = async (name: string, given: object) => {
  const { result } = await call(name, given);
  return [result?._meta?.['chandler/coverage'] ?? null, result?._meta?.['chandler/as-of'] ?? null];
};
type Called = {
  readonly result?: { readonly _meta?: Record<string, string> };
  readonly error?: { readonly data: Record<string, string> };
};
const call = async (name: string, given: object, more: Record<string, string> = {}): Promise<Called> => {
  const request = new Request('http://service/rpc', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...more },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } }),
  });
  return (await (await serve(request)).json()) as Called;
};
const seen = (text: string | null | undefined) => Date.parse(text ?? '');

describe('the provenance of candles', () => {
  const asked = (query: string, id = 'btc-bitcoin') => of(`/coins/${id}/ohlcv/historical?${query}`);
  const ANSWERED = at(Math.floor((NOW - HOUR) / 1000) * 1000);

  it.each([
    ['every slot has its candle, or is known to be empty', `start=${day(-10)}&end=${day(-4)}`, 'full'],
    ['the limit ends before what is missing', `start=${day(-10)}&end=${day(0)}&limit=5`, 'full'],
    [
      'a slot is missing between others',
      `start=${day(-10)}&end=${day(-1)}`,
      `partial; first-missing=${day(-3)}T00:00:00Z`,
    ],
    [
      'today is requested and not there',
      `start=${day(-2)}&end=${day(3)}`,
      `partial; first-missing=${day(0)}T00:00:00Z`,
    ],
  ])('says how much was received if %s', async (_, query, coverage) => {
    expect(await asked(query)).toEqual([coverage, ANSWERED]);
    const [start, end, limit] = [/start=([^&]*)/, /end=([^&]*)/, /limit=(\d+)/].map((part) => part.exec(query)?.[1]);
    const given = { coinId: 'btc-bitcoin', start, end, ...(limit && { limit: Number(limit) }) };
    expect(await tool('getOHLCV', given)).toEqual([coverage, ANSWERED]);
  });

  it('is none when nothing of the range was received, whatever else was', async () => {
    const before = `start=${day(-20)}&end=${day(-15)}`;
    expect(await asked(before)).toEqual(['none', null]);
    expect(await tool('getOHLCV', { coinId: 'btc-bitcoin', start: day(-20), end: day(-15) })).toEqual(['none', null]);
    // The other coin has no series.
    expect(await asked(before, 'eth-ethereum')).toEqual(['none', null]);
  });

  it('is partial from a slot whose candle was answered last while the slot was open, once the slot has ended', async () => {
    const { sql } = world.database;
    const id = await seedSeries(sql, {
      coinId: 'ltc-litecoin',
      interval: '24h',
      wanted: [{ from: TODAY - 3 * DAY, to: TODAY + DAY }],
      covered: [{ from: TODAY - 3 * DAY, to: TODAY - DAY }],
      candles: [-3, -2, -1].map((n) => TODAY + n * DAY),
    });
    // Nobody has asked since noon of yesterday.
    const noon = TODAY - DAY / 2;
    await sql`insert into market.open_candle (series_id, open_time, close_time) values (${id}, ${TODAY - DAY}, ${noon})`;
    await sql`update market.series set answered_at = ${noon} where id = ${id}`;
    let now = noon;
    const data = createWarehouse({ sql, clock: { ...frozenClock(noon), now: () => now } });
    const query = { coinId: 'ltc-litecoin', interval: '24h', quote: 'usd', from: TODAY - 2 * DAY, limit: 2 } as const;
    const open = await data.ohlcv({ ...query, to: TODAY - DAY });
    expect(provenanceOf(open)).toEqual({ coverage: 'full', asOf: noon, firstMissing: null });
    expect(await isCurrentOf(open)!()).toBe(true);
    now = NOW;
    expect(await isCurrentOf(open)!()).toBe(false);
    const PARTIAL = [`partial; first-missing=${day(-1)}T00:00:00Z`, at(noon)];
    expect(await asked(`start=${day(-2)}&end=${day(-1)}`, 'ltc-litecoin')).toEqual(PARTIAL);
    expect(await of('/coins/ltc-litecoin/ohlcv/latest')).toEqual(PARTIAL);
    expect(await tool('getCoinOHLCVLatest', { coinId: 'ltc-litecoin' })).toEqual(PARTIAL);
    expect(await asked(`start=${day(-3)}&end=${day(-2)}`, 'ltc-litecoin')).toEqual(['full', at(noon)]);
  });

  it('is full before the data of a coin begin, and in the future', async () => {
    expect(await asked('start=2008-01-01&end=2008-02-01')).toEqual(['full', null]);
    expect(await asked(`start=${day(2)}&end=${day(3)}`)).toEqual(['full', null]);
  });
});

describe('the provenance of ticker history', () => {
  const asked = (query: string, id = 'btc-bitcoin') => of(`/tickers/${id}/historical?${query}`);
  const newest = at(TODAY - 2 * DAY + 5 * HOUR);

  it('is full where each hour of its spans has a snapshot', async () => {
    expect(await asked(`start=${day(-4)}&end=${day(-2)}&interval=1d`)).toEqual([
      'full',
      at(TODAY - 2 * DAY - HOUR + 60_000),
    ]);
    expect(await asked(`start=${day(-4)}&end=${day(-2)}&interval=1h`)).toEqual(['full', expect.any(String)]);
    expect(await asked(`start=${day(-4)}&end=${day(0)}&interval=1d&limit=2`)).toEqual(['full', expect.any(String)]);
  });

  it('is partial where a span has fewer snapshots, or none', async () => {
    const single = `start=${day(-2)}&end=${day(-1)}&interval=1d`;
    expect(await asked(single)).toEqual([`partial; first-missing=${day(-2)}T00:00:00Z`, newest]);
    expect(await asked(`start=${day(-4)}&end=${day(-1)}&interval=1d`)).toEqual([
      `partial; first-missing=${day(-2)}T00:00:00Z`,
      newest,
    ]);
    expect(await asked(`start=${day(-4)}&end=${day(-3)}&interval=5m`)).toEqual([
      `partial; first-missing=${day(-4)}T00:05:00Z`,
      expect.any(String),
    ]);
  });

  it('is none where there is no snapshot', async () => {
    expect(await asked(`start=${day(-9)}&end=${day(-5)}&interval=1d`)).toEqual(['none', null]);
  });

  it('is full before the data of a young coin begin', async () => {
    const { sql } = world.database;
    // It began within the fourth hour of the first day with snapshots.
    const began = TODAY - 4 * DAY + 3 * HOUR + 10 * 60_000;
    await sql`update market.coin set first_data_at = ${began} where id = 'eth-ethereum'`;
    await sql`delete from market.ticker_history where coin_id = 'eth-ethereum' and at < ${began}`;
    const young = (query: string) => asked(query, 'eth-ethereum');
    expect(await young(`start=${day(-90)}&end=${day(-2)}&interval=1d`)).toEqual(['full', expect.any(String)]);
    expect(await young(`start=${day(-9)}&end=${day(-5)}&interval=1d`)).toEqual(['full', null]);
    await sql`delete from market.ticker_history
      where coin_id = 'eth-ethereum' and at between ${began} and ${began + HOUR}`;
    // Cached answers are valid until the next snapshot.
    await sql`update market.ticker set rank = rank`;
    expect(await young(`start=${day(-90)}&end=${day(-2)}&interval=1d`)).toEqual([
      `partial; first-missing=${day(-4)}T00:00:00Z`,
      expect.any(String),
    ]);
  });
});

describe('the provenance of', () => {
  it('a search is that of the lists that were searched', async () => {
    const [coverage, asOf] = await of('/search?q=bitcoin&c=currencies');
    expect(coverage).toBe('full');
    expect(Math.abs(seen(asOf) - NOW)).toBeLessThan(HOUR);
    expect(await of('/search?q=b&c=exchanges')).toEqual(['full', expect.any(String)]);
    // Tags were never requested, and ICOs cannot be.
    expect(await of('/search?q=b&c=tags')).toEqual(['none', null]);
    expect(await of('/search?q=b&c=icos')).toEqual(['none', null]);
    expect(await of('/search?q=b')).toEqual(['partial', expect.any(String)]);
    expect(await tool('search', { q: 'bitcoin', categories: 'currencies' })).toEqual([coverage, asOf]);
  });

  it('a conversion is that of the prices of both sides', async () => {
    const path = (base: string, quote: string) =>
      `/price-converter?base_currency_id=${base}&quote_currency_id=${quote}&amount=1`;
    const [coverage, asOf] = await of(path('btc-bitcoin', 'eth-ethereum'));
    expect([coverage, Number.isNaN(seen(asOf))]).toEqual(['full', false]);
    expect(await of(path('btc-bitcoin', 'usd-us-dollars'))).toEqual(['full', expect.any(String)]);
    expect(await of(path('btc-bitcoin', 'eur-euro'))).toEqual(['partial', expect.any(String)]);
    expect(await of(path('eur-euro', 'pln-polish-zloty'))).toEqual(['none', null]);
    expect(await of(path('usd-us-dollars', 'usd-us-dollars'))).toEqual(['full', null]);
    const given = { baseCurrencyId: 'btc-bitcoin', quoteCurrencyId: 'eth-ethereum' };
    expect(await tool('priceConverter', given)).toEqual([coverage, asOf]);
  });

  it('prices in a currency without a rate is partial', async () => {
    for (const path of ['/tickers', '/tickers/btc-bitcoin', '/exchanges']) {
      expect([path, ...(await of(path))]).toEqual([path, 'full', expect.any(String)]);
      expect([path, ...(await of(`${path}?quotes=USD,EUR`))]).toEqual([path, 'partial', expect.any(String)]);
    }
  });
});

describe('the provenance of the catalogue', () => {
  it('is partial for details while only the list of coins was received', async () => {
    expect(await of('/coins/btc-bitcoin')).toEqual(['partial', expect.any(String)]);
    expect(await of('/coins/btc-bitcoin/events')).toEqual(['none', null]);
    expect(await of('/tags')).toEqual(['none', null]);
  });

  it('is partial for a list that was received with a limit', async () => {
    const { sql } = world.database;
    const keep = (isTruncated: boolean, when: number) =>
      writeDocuments(sql, {
        kind: 'coin_events',
        documents: [{ id: 'btc-bitcoin', text: '[]', fingerprint: '[]' }],
        at: when,
        isTruncated,
      });
    await keep(true, TODAY);
    expect(await of('/coins/btc-bitcoin/events')).toEqual(['partial', at(TODAY)]);
    await keep(false, TODAY + 1_000);
    expect(await of('/coins/btc-bitcoin/events')).toEqual(['full', at(TODAY + 1_000)]);
  });

  it('is partial for changes of ids: those since the first list, as of when they were received', async () => {
    expect(await of('/changelog/ids')).toEqual(['none', null]);
    const rename = { oldId: 'old-a', newId: 'new-a', at: TODAY - DAY, seenAt: TODAY };
    await recordRenames(world.database.sql, [rename], 'changelog');
    expect(await of('/changelog/ids')).toEqual(['partial', at(TODAY)]);
  });
});

describe('the provenance of a 404', () => {
  const OF_COINS: readonly [path: string, tool: string, given: object][] = [
    ['/coins/nono-nowhere', 'getCoinById', { coinId: 'nono-nowhere' }],
    ['/coins/nono-nowhere/events', 'getCoinEvents', { coinId: 'nono-nowhere' }],
    ['/coins/nono-nowhere/exchanges', 'getCoinExchanges', { coinId: 'nono-nowhere' }],
    ['/coins/nono-nowhere/markets?quotes=BTC', 'getCoinMarkets', { coinId: 'nono-nowhere', quotes: 'BTC' }],
    ['/tickers/nono-nowhere', 'getTickersById', { coinId: 'nono-nowhere' }],
    [
      `/tickers/nono-nowhere/historical?start=${day(-1)}&interval=1d`,
      'getOHLCV',
      { coinId: 'nono-nowhere', start: day(-1) },
    ],
    [
      '/price-converter?base_currency_id=nono-nowhere&quote_currency_id=usd-us-dollars',
      'priceConverter',
      { baseCurrencyId: 'nono-nowhere', quoteCurrencyId: 'usd-us-dollars' },
    ],
  ];
  const OF_EXCHANGES: typeof OF_COINS = [
    ['/exchanges/nowhere?quotes=EUR', 'getExchangeByID', { exchangeId: 'nowhere', quotes: 'EUR' }],
    ['/exchanges/nowhere/markets', 'getExchangeMarkets', { exchangeId: 'nowhere' }],
  ];
  const OF_THE_REST: typeof OF_COINS = [
    ['/tags/nothing', 'getTagById', { tagId: 'nothing' }],
    ['/contracts/nono-nowhere', 'getContracts', { platformId: 'nono-nowhere' }],
    ['/contracts/eth-ethereum/0x00', 'getTickerByContract', { platformId: 'eth-ethereum', contractAddress: '0x00' }],
  ];
  const PERSON: (typeof OF_COINS)[number] = ['/people/nobody', 'getPeopleById', { personId: 'nobody' }];

  it.each([...OF_COINS, ...OF_EXCHANGES])(
    'is that of the received list that lacks the id: %s',
    async (path, name, given) => {
      const list = path.includes('exchanges/nowhere') ? await of('/exchanges') : await of('/coins');
      expect(list).toEqual(['full', expect.any(String)]);
      expect(await nothingAt(path)).toEqual(list);
      expect(await noneBy(name, given)).toEqual(list);
    },
  );

  it.each([...OF_THE_REST, PERSON])('is none where the list was never received: %s', async (path, name, given) => {
    expect(await nothingAt(path)).toEqual(['none', null]);
    expect(await noneBy(name, given)).toEqual(['none', null]);
  });

  it('is full for candles of an unknown coin, and for impossible ids', async () => {
    const coins = await of('/coins');
    expect(await of(`/coins/nono-nowhere/ohlcv/historical?start=${day(-1)}`)).toEqual(coins);
    expect(await of('/coins/nono-nowhere/ohlcv/today')).toEqual(coins);
    for (const path of ['/coins/a%20b', '/tags/%00', `/people/${'x'.repeat(300)}`, '/contracts/%0A/0x00']) {
      expect([path, ...(await nothingAt(path))]).toEqual([path, 'full', null]);
    }
    expect(await noneBy('getTagById', { tagId: 'a b' })).toEqual(['full', null]);
  });

  it('is none for the ticker of an active coin that was never received', async () => {
    const { sql } = world.database;
    await sql`delete from market.ticker where coin_id = 'eth-ethereum'`;
    expect(await nothingAt('/tickers/eth-ethereum')).toEqual(['none', null]);
    expect(await nothingAt('/price-converter?base_currency_id=eth-ethereum&quote_currency_id=btc-bitcoin')).toEqual([
      'none',
      null,
    ]);
    await sql`update market.coin set is_active = false where id = 'eth-ethereum'`;
    expect(await nothingAt('/tickers/eth-ethereum')).toEqual(await of('/coins'));
  });

  it('is full once the whole lists were received, and a coin found by a list has the provenance of that list', async () => {
    const { sql } = world.database;
    const keep = (kind: DocumentKind, id: string, list: unknown, isTruncated = false) => {
      const text = JSON.stringify(list);
      return writeDocuments(sql, {
        kind,
        documents: [{ id, text, fingerprint: text }],
        at: TODAY + 5_000,
        isTruncated,
      });
    };
    const contract = { address: '0xABC', type: 'ERC20', id: 'btc-bitcoin', active: true };
    await keep('tag', 'one', { id: 'one', name: 'One' });
    await keep('platforms', '', ['eth-ethereum']);
    await keep('contracts', 'eth-ethereum', [contract]);
    await writeContracts(sql, 'eth-ethereum', { rows: [contract], at: TODAY, isWhole: true });
    const known = ['full', at(TODAY + 5_000)];
    for (const [path, name, given] of OF_THE_REST) {
      expect([path, ...(await nothingAt(path))]).toEqual([path, ...known]);
      expect([name, ...(await noneBy(name, given))]).toEqual([name, ...known]);
    }
    const { status, headers } = await serve(new Request('http://service/v1/contracts/eth-ethereum/0xabc'));
    expect([status, headers.get('location')]).toEqual([301, '/v1/tickers/btc-bitcoin']);
    expect([headers.get('x-chandler-coverage'), headers.get('x-chandler-as-of')]).toEqual(known);
    // There is no list of people.
    expect(await nothingAt(PERSON[0])).toEqual(['none', null]);
    // A list that was received with a limit may be longer.
    await keep('tag', 'one', { id: 'one', name: 'One' }, true);
    await keep('platforms', '', ['eth-ethereum'], true);
    await keep('contracts', 'eth-ethereum', [contract], true);
    for (const [path] of OF_THE_REST) expect([path, ...(await nothingAt(path))]).toEqual([path, 'none', null]);
  });

  it('is full for an id that the upstream no longer knows, as of that answer', async () => {
    const { sql } = world.database;
    const documents = [{ id: 'nobody', text: '{"id":"nobody","name":"No Body"}', fingerprint: '1' }];
    await writeDocuments(sql, { kind: 'person', documents, at: TODAY });
    expect(await of('/people/nobody')).toEqual(['full', at(TODAY)]);
    await markDocumentsGone(sql, { kind: 'person', ids: ['nobody'], at: TODAY + HOUR });
    expect(await nothingAt(PERSON[0])).toEqual(['full', at(TODAY + HOUR)]);
    expect(await noneBy(PERSON[1], PERSON[2])).toEqual(['full', at(TODAY + HOUR)]);
    // An MCP client gets it beside the text for its model.
    const { result } = await call(PERSON[1], PERSON[2], { Accept: 'application/json, text/event-stream' });
    expect(result).toMatchObject({
      isError: true,
      _meta: { 'chandler/coverage': 'full', 'chandler/as-of': at(TODAY + HOUR) },
    });
  });

  it('is none for everything in a warehouse that has sent no request', async () => {
    const database = await createTestDatabase();
    const empty = createService({
      data: createWarehouse({ sql: database.sql, clock: frozenClock(NOW) }),
      access: openAccess,
      clock: frozenClock(NOW),
      onError: (error) => {
        throw error;
      },
    });
    for (const [path] of [...OF_COINS, ...OF_EXCHANGES, ...OF_THE_REST, PERSON]) {
      expect([path, ...(await nothingAt(path, empty))]).toEqual([path, 'none', null]);
    }
    await database.drop();
  });
});
