/** The warehouse answers byte for byte as the upstream did. Rows have the shapes of real answers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Handler } from '../../src/contract/interface/handler.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { createSnapshots } from '../../src/ingest/snapshot/snapshots.ts';
import { createService } from '../../src/service/service.ts';
import { createWarehouse } from '../../src/views/market/warehouse.ts';
import { openAccess } from '../service/conformance.ts';
import { createWorld, type World } from '../support/world.ts';

const NOW = Date.UTC(2025, 8, 25, 16, 41, 20);
const day = (n: number) => new Date(Date.UTC(2025, 8, 25) + n * DAY).toISOString().slice(0, 10);

const COINS =
  '[{"id":"btc-bitcoin","name":"Bitcoin","symbol":"BTC","rank":1,"is_new":false,"is_active":true,"type":"coin"},' +
  '{"id":"usdt-tether","name":"Tether \\"₮\\"","symbol":"USDT","rank":4,"is_new":false,"is_active":true,"type":"token"},' +
  // Not in the order of ids, two with one rank, an undocumented key, a key in another place, a missing key.
  '{"id":"zzz-last","name":"Last","symbol":"ZZZ","rank":9,"is_new":true,"is_active":true,"type":"token","rev":1700000000},' +
  '{"id":"aaa-first","name":"First","symbol":"AAA","rank":9,"is_active":true,"is_new":false,"type":"token"},' +
  '{"id":"ccc-bare","name":"Bare","symbol":"CCC","rank":9,"is_active":true},' +
  '{"id":"old-gone","name":"Gone","symbol":"OLD","rank":0,"is_new":false,"is_active":false,"type":"coin"}]\n';

const TICKERS =
  // As the free plan gets it: without circulating_supply.
  '[{"id":"btc-bitcoin","name":"Bitcoin","symbol":"BTC","rank":1,"total_supply":19911111,"max_supply":21000000,' +
  '"beta_value":0.877001,"first_data_at":"2010-07-17T00:00:00Z","last_updated":"2025-09-25T16:40:12Z","quotes":{"USD":{' +
  '"price":109321.77412345678,"volume_24h":53175936198.11243,"volume_24h_change_24h":-44.15,"market_cap":2176151326372,' +
  '"market_cap_change_24h":1.74,"percent_change_15m":0.04,"percent_change_30m":0,"percent_change_1h":0.37,' +
  '"percent_change_6h":0.78,"percent_change_12h":0.92,"percent_change_24h":1.74,"percent_change_7d":2.27,' +
  '"percent_change_30d":-2.88,"percent_change_1y":73.78,"ath_price":123923.79452175781,"ath_date":"2025-08-14T00:32:03Z",' +
  '"percent_from_price_ath":-11.77}}},' +
  // With it; prices that Go and JavaScript write the same, the volume of a dead coin, no all-time high.
  '{"id":"usdt-tether","name":"Tether \\"₮\\"","symbol":"USDT","rank":4,"circulating_supply":174111222333,' +
  '"total_supply":0,"max_supply":0,"beta_value":0.0000011,"first_data_at":"2015-02-25T00:00:00Z",' +
  '"last_updated":"2025-09-25T16:41:00Z","quotes":{"USD":{"price":6.0349609958149e-7,"volume_24h":0.01090463,' +
  '"volume_24h_change_24h":1.46,"market_cap":0,"market_cap_change_24h":null,"percent_change_15m":0,"percent_change_30m":0,' +
  '"percent_change_1h":-0.02,"percent_change_6h":0,"percent_change_12h":4.79,"percent_change_24h":1.46,' +
  '"percent_change_7d":0,"percent_change_30d":26.47,"percent_change_1y":173.25,"ath_price":null,"ath_date":null,' +
  '"percent_from_price_ath":null}}},' +
  // As it was before 2020, and with undocumented fields.
  '{"id":"zzz-last","name":"Last","symbol":"ZZZ","rank":9,"total_supply":1,"max_supply":0,"beta_value":0,' +
  '"first_data_at":"2025-09-01T00:00:00Z","last_updated":"2025-09-25T16:40:00Z","quotes":{"USD":{"price":0.00000951111762014774,' +
  '"volume_24h":28560395272.43,"volume_24h_change_24h":-1.55,"market_cap":166943322845,"market_cap_change_24h":-0.16,' +
  '"percent_change_1h":0.08,"percent_change_12h":0.3,"percent_change_24h":-0.16,"percent_change_7d":-5.08,' +
  '"percent_change_30d":-5.38,"percent_change_1y":133.51,"ath_price":20089,"ath_date":"2017-12-17T12:19:00Z",' +
  '"percent_from_price_ath":-54.48}},"trust":{"score":[7,1.5],"note":null}},' +
  '{"id":"aaa-first","name":"First","symbol":"AAA","rank":9,"circulating_supply":null,"total_supply":"","max_supply":0,' +
  '"beta_value":0,"first_data_at":null,"last_updated":"2025-09-25T16:41:00.5Z","quotes":{"USD":{"price":1e+21}}},' +
  '{"id":"ccc-bare","name":"Bare","symbol":"CCC","rank":9,"quotes":{"USD":{"price":2}}}]\n';

const GLOBAL =
  '{"market_cap_usd":2559344984924,"volume_24h_usd":217605673763,"bitcoin_dominance_percentage":44.68,' +
  '"cryptocurrencies_number":5438,"market_cap_ath_value":2729904005915,"market_cap_ath_date":"2021-10-21T09:45:00Z",' +
  '"volume_24h_ath_value":33401557439370000,"volume_24h_ath_date":"2021-10-22T12:50:00Z","volume_24h_percent_from_ath":-99.35,' +
  '"volume_24h_percent_to_ath":9999.99,"market_cap_change_24h":-1.86,"volume_24h_change_24h":-18.21,"last_updated":1758818400}\n';

const EXCHANGES =
  '[{"id":"okx","name":"OKX","type":["cex","spot"],"active":true,"website_status":true,"api_status":true,"description":"","message":null,' +
  '"links":{"website":["https://okx.example/"],"twitter":[]},"markets_data_fetched":true,"adjusted_rank":2,"reported_rank":1,' +
  '"currencies":340,"markets":800,"fiats":[{"name":"US Dollars","symbol":"USD"}],"quotes":{"USD":{' +
  '"reported_volume_24h":1846000000.123,"adjusted_volume_24h":1806000000.5,"reported_volume_7d":13000000000,' +
  '"adjusted_volume_7d":12900000000,"reported_volume_30d":54000000000,"adjusted_volume_30d":53000000000}},' +
  '"last_updated":"2025-09-25T16:40:00Z","confidence_score":0.87,"sessions_per_month":25000000},' +
  '{"id":"binance","name":"Binance","type":[],"active":true,"website_status":true,"api_status":false,"description":null,' +
  '"message":null,"links":{"website":[]},"markets_data_fetched":false,"adjusted_rank":null,"reported_rank":null,' +
  '"currencies":1,"markets":2,"fiats":[],"quotes":{"USD":{"reported_volume_24h":1,"adjusted_volume_24h":null,' +
  '"reported_volume_7d":null,"adjusted_volume_7d":null,"reported_volume_30d":null,"adjusted_volume_30d":null}},' +
  '"last_updated":"2025-09-25T16:35:00Z"}]\n';

const candle = (open: string, close: string, values: string) =>
  `{"time_open":"${open}","time_close":"${close}",${values}}`;
const DAILY = [
  candle(
    `${day(-4)}T00:00:00Z`,
    `${day(-4)}T23:59:59Z`,
    '"open":3167.8487468375165,"high":3175.3029356248053,"low":3059.8966046627097,"close":3097.194511711747,' +
      '"volume":15131525568,"market_cap":369279876785',
  ),
  candle(
    `${day(-3)}T00:00:00Z`,
    `${day(-3)}T23:59:59Z`,
    '"open":0.00000951111762014774,"high":0.000096,"low":6.0349609958149e-7,"close":0.00000951111762014774,"volume":0,"market_cap":null',
  ),
  candle(
    `${day(-2)}T00:00:00Z`,
    `${day(-2)}T23:59:59Z`,
    '"open":1,"high":1,"low":1,"close":1,"volume":null,"market_cap":2200000000000',
  ),
  candle(
    `${day(-1)}T00:00:00Z`,
    `${day(-1)}T23:59:59Z`,
    '"open":113000.5,"high":113900,"low":111000.25,"close":112500.125,"volume":49900000000,"market_cap":2240000000000',
  ),
  // The open candle: until the minute of its data, rounded up.
  candle(
    `${day(0)}T00:00:00Z`,
    `${day(0)}T16:42:00Z`,
    '"open":112500.5,"high":113100,"low":109000,"close":109321.7741,"volume":49912345678,"market_cap":2176000000000',
  ),
];
const HOURLY = Array.from({ length: 24 }, (_, i) => {
  const hour = String(i).padStart(2, '0');
  return candle(
    `${day(-1)}T${hour}:00:00Z`,
    `${day(-1)}T${hour}:59:59Z`,
    `"open":${i + 1.5},"high":${i + 4},"low":${i + 1},"close":${i + 2.25},"volume":${1000 + i},"market_cap":${77_000 + i}`,
  );
});

let world: World;
let serve: Handler;
const get = async (path: string) => serve(new Request(`http://service/v1${path}`));
const text = async (path: string) => (await get(path)).text();

beforeAll(async () => {
  const bodies = (path: string, query: URLSearchParams): string => {
    if (path.endsWith('/historical')) return `[${(query.get('interval') === '1h' ? HOURLY : DAILY).join(',')}]`;
    return { '/v1/coins': COINS, '/v1/tickers': TICKERS, '/v1/global': GLOBAL, '/v1/exchanges': EXCHANGES }[path] ?? '';
  };
  world = await createWorld({
    startAt: NOW,
    fetch: (_, clock) => async (request) => {
      const { pathname, searchParams } = new URL(request.url);
      return new Response(bodies(pathname, searchParams), {
        headers: { 'Content-Type': 'application/json', Date: new Date(clock.now()).toUTCString() },
      });
    },
  });
  const chandler = await world.open();
  const { sql } = world.database;
  const { sendRequest, accountId } = chandler.session;
  const snapshots = createSnapshots({ sql, sendRequest, clock: world.clock, accountId });
  for (const snapshot of [snapshots.global, snapshots.exchanges])
    expect(await snapshot()).toMatchObject({ kind: 'stored', quarantined: 0 });
  const today = Date.UTC(2025, 8, 25);
  await chandler.backfill({ coins: ['btc-bitcoin'], from: today - 4 * DAY, to: NOW });
  await chandler.backfill({ coins: ['btc-bitcoin'], interval: '1h', from: today - DAY, to: today });
  const data = createWarehouse({ sql, clock: world.clock });
  serve = createService({
    data,
    access: openAccess,
    clock: world.clock,
    onError: (error) => {
      throw error;
    },
  });
});
afterAll(() => world?.close());

describe('the warehouse returns the bytes of the upstream for', () => {
  it.each([
    ['/coins', COINS],
    ['/tickers', TICKERS],
    ['/global', GLOBAL],
    ['/exchanges', EXCHANGES],
  ])('%s', async (path, body) => {
    expect(await text(path)).toBe(body);
    // And from the cache.
    expect(await text(path)).toBe(body);
  });

  it('/tickers/{id}', async () => {
    for (const row of JSON.parse(TICKERS) as { id: string }[])
      expect(await text(`/tickers/${row.id}`)).toBe(`${JSON.stringify(row)}\n`);
  });

  it('/coins/{id}/ohlcv/historical, also with its open candle', async () => {
    const daily = `/coins/btc-bitcoin/ohlcv/historical?start=${day(-4)}&end=${day(1)}`;
    expect(await text(daily)).toBe(`[${DAILY.join(',')}]`);
    expect(await text('/coins/btc-bitcoin/ohlcv/today')).toBe(`[${DAILY[4]}]`);
    expect(await text('/coins/btc-bitcoin/ohlcv/latest')).toBe(`[${DAILY[3]}]`);
    const hourly = `/coins/btc-bitcoin/ohlcv/historical?start=${day(-1)}&limit=24&interval=1h`;
    expect(await text(hourly)).toBe(`[${HOURLY.join(',')}]`);
  });
});

describe('what the warehouse never received', () => {
  it('is made of finer candles where all of them are final: first, highest, lowest, last, sum', async () => {
    const path = `/coins/btc-bitcoin/ohlcv/historical?start=${day(-1)}&limit=10&interval=6h`;
    const row = (i: number) =>
      candle(
        `${day(-1)}T${String(i).padStart(2, '0')}:00:00Z`,
        `${day(-1)}T${String(i + 5).padStart(2, '0')}:59:59Z`,
        `"open":${i + 1.5},"high":${i + 9},"low":${i + 1},"close":${i + 7.25},"volume":${6 * (1000 + i) + 15},"market_cap":${77_005 + i}`,
      );
    expect(await text(path)).toBe(`[${[0, 6, 12, 18].map(row).join(',')}]`);
    // A stored candle takes precedence over one that could be made.
    const daily = `/coins/btc-bitcoin/ohlcv/historical?start=${day(-1)}&limit=1`;
    expect(await text(daily)).toBe(`[${DAILY[3]}]`);
  });

  it('is not made of finer candles if one of them is missing', async () => {
    const { sql } = world.database;
    const second = new Date(Date.UTC(2025, 8, 24) + 7 * HOUR).toISOString();
    await sql`update market.series set covered = covered - tstzmultirange(tstzrange(${second}::timestamptz, ${second}::timestamptz + interval '1 hour'))
      where interval = '1h'`;
    const path = `/coins/btc-bitcoin/ohlcv/historical?start=${day(-1)}&limit=10&interval=6h`;
    const opens = (JSON.parse(await text(path)) as { time_open: string }[]).map((row) => row.time_open.slice(11, 13));
    expect(opens).toEqual(['00', '12', '18']);
  });

  it('is null in a currency without a rate', async () => {
    const { quotes } = (await (await get('/tickers/usdt-tether?quotes=EUR')).json()) as {
      quotes: Record<string, Record<string, unknown>>;
    };
    expect(Object.keys(quotes)).toEqual(['EUR']);
    expect(new Set(Object.values(quotes.EUR!))).toEqual(new Set([null]));
  });

  it('is divided by the ticker of the same snapshot in currencies that have one', async () => {
    const usd = (JSON.parse(TICKERS) as { quotes: { USD: Record<string, number> } }[]).map((row) => row.quotes.USD);
    const { quotes } = (await (await get('/tickers/usdt-tether?quotes=BTC,USD')).json()) as {
      quotes: Record<string, Record<string, number | null>>;
    };
    expect(quotes.USD).toEqual(usd[1]);
    expect(quotes.BTC).toMatchObject({
      price: usd[1]!.price! / usd[0]!.price!,
      volume_24h: usd[1]!.volume_24h! / usd[0]!.price!,
      percent_change_24h: Math.round((1.0146 / 1.0174 - 1) * 10_000) / 100,
      ath_price: null,
    });
    const bitcoin = (await (await get('/tickers/btc-bitcoin?quotes=BTC')).json()) as {
      quotes: Record<string, Record<string, number | null>>;
    };
    expect(bitcoin.quotes.BTC).toMatchObject({ price: 1, percent_change_7d: 0 });
  });
});
