import { beforeAll, describe, expect, it } from 'vitest';
import {
  coinDetailsSchema,
  coinEventsSchema,
  coinExchangesSchema,
  coinMarketsSchema,
  contractsSchema,
  exchangeMarketsSchema,
  ID_PROVIDERS,
  idChangesSchema,
  personSchema,
  SEARCH_CATEGORIES,
  tagsSchema,
} from '../../../src/contract/record/catalogue.ts';
import type { MarketData } from '../../../src/contract/record/market-data.ts';
import {
  type CoinSummary,
  exchangesSchema,
  type ParsedRecord,
  readRecord,
} from '../../../src/contract/record/records.ts';
import { parseTime } from '../../../src/contract/time.ts';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { createMadeUpMarket } from '../../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../../src/simulator/made-up/made-up-world.ts';
import { createRecordedMarket } from '../../../src/simulator/recorded/recorded.ts';
import { frozenClock } from '../../service/conformance.ts';

const noon = Date.UTC(2024, 5, 1, 12, 3, 20);
const world = createMadeUpWorld({ seed: 1, coins: 200 });
const marketAt = (now: number) => createMadeUpMarket({ world, clock: frozenClock(now) });
const USD = { quotes: ['USD'] };

describe('the catalogue of the made-up market', () => {
  const market = marketAt(noon);
  let coins: readonly CoinSummary[];
  beforeAll(async () => {
    coins = await market.coins();
  });

  it('has the shapes of the contract everywhere', async () => {
    const reads: ParsedRecord<unknown>[] = [
      readRecord(tagsSchema, await market.tags()),
      readRecord(idChangesSchema, await market.idChanges({ page: 1 })),
      readRecord(exchangesSchema, await market.exchanges(USD)),
      readRecord(exchangeMarketsSchema, await market.exchangeMarkets({ exchangeId: 'binance', ...USD })),
      readRecord(contractsSchema, await market.contracts('eth-ethereum')),
    ];
    for (const { id } of coins) {
      reads.push(
        readRecord(coinDetailsSchema, await market.coin(id)),
        readRecord(coinEventsSchema, await market.coinEvents(id)),
        readRecord(coinExchangesSchema, await market.coinExchanges(id)),
        readRecord(coinMarketsSchema, await market.coinMarkets({ coinId: id, ...USD })),
      );
    }
    expect(reads.filter((read) => !read.ok)).toEqual([]);
  });

  it('has null for unknown people, unknown items and what does not exist yet', async () => {
    const early = marketAt(Date.UTC(2013, 0, 1));
    for (const [data, id] of [
      [market, 'nono-nowhere'],
      [early, 'btc-bitcoin'],
    ] as const) {
      const answers = [
        data.coin(id),
        data.coinEvents(id),
        data.coinExchanges(id),
        data.coinMarkets({ coinId: id, ...USD }),
        data.tickerHistory({ coinId: id, quote: 'usd', from: 0, to: noon, widthMs: DAY, limit: 5 }),
        data.contracts(id),
        data.tag('nothing'),
        data.person('nobody-nowhere'),
        data.person('ada'),
        data.exchange({ exchangeId: 'nowhere', ...USD }),
        data.exchangeMarkets({ exchangeId: 'nowhere', ...USD }),
        data.coinOfContract({ platformId: 'eth-ethereum', address: '0x00' }),
        data.convert({ baseId: id, quoteId: 'usd-us-dollars', amount: 1 }),
        data.convert({ baseId: 'usd-us-dollars', quoteId: id, amount: 1 }),
      ];
      expect(await Promise.all(answers)).toEqual(answers.map(() => null));
    }
    expect(await early.platforms()).toEqual([]);
    expect(await early.idChanges({ page: 1 })).toEqual([]);
  });

  it('has people whose positions are the teams of coins, and teams of people who exist', async () => {
    const seats = new Map<string, string[]>();
    for (const coin of coins) {
      for (const { id, position } of (await market.coin(coin.id))!.team!) {
        seats.set(id, [...(seats.get(id) ?? []), `${coin.id} ${position}`]);
      }
    }
    expect(seats.size).toBeGreaterThan(100);
    for (const [id, positions] of seats) {
      const person = readRecord(personSchema, await market.person(id));
      if (!person.ok) throw new Error(person.problem);
      expect(person.value.positions!.map(({ coin_id, position }) => `${coin_id} ${position}`)).toEqual(positions);
      expect(person.value.teams_count).toBe(positions.length);
    }
    expect([...seats.values()].some((positions) => positions.length > 1)).toBe(true);
  });

  it('has contracts that are in the details of their coins, and lead back to them in upper and lower case', async () => {
    const platforms = await market.platforms();
    expect(platforms).toContain('eth-ethereum');
    const listed: string[] = [];
    for (const platform of platforms) {
      expect(coins.map(({ id }) => id)).toContain(platform);
      for (const { id, address, type } of (await market.contracts(platform))!) {
        listed.push(`${id} ${platform} ${address} ${type}`);
        expect(address).toMatch(/^0x[0-9a-f]{40}$/);
        for (const written of [address, address.toUpperCase().replace('0X', '0x')]) {
          expect(await market.coinOfContract({ platformId: platform, address: written })).toEqual({ coinId: id });
        }
      }
    }
    const told: string[] = [];
    for (const { id } of coins) {
      const { contracts, contract, platform, parent, type } = (await market.coin(id))!;
      for (const one of contracts ?? []) told.push(`${id} ${one.platform} ${one.contract} ${one.type}`);
      if (contracts) expect([contract, platform, parent?.id]).toEqual([contracts[0]!.contract, platform, platform]);
      if (type === 'coin') expect([contracts, contract, parent]).toEqual([undefined, undefined, undefined]);
    }
    expect(listed.length).toBeGreaterThan(50);
    expect(new Set(listed).size).toBe(listed.length);
    expect(told.sort()).toEqual(listed.sort());
  });

  it('has the same markets by coin and by exchange, as many as the exchange states, with the same total volume', async () => {
    const exchanges = await market.exchanges(USD);
    const byCoin = new Map<string, string[]>();
    for (const coin of coins) {
      const rows = (await market.coinMarkets({ coinId: coin.id, ...USD }))!;
      const places = (await market.coinExchanges(coin.id))!;
      expect([...new Set(rows.map((row) => row.exchange_id))]).toEqual(places.map(({ id }) => id));
      for (const { exchange_id, pair, quotes, base_currency_id } of rows) {
        expect(base_currency_id).toBe(coin.id);
        byCoin.set(exchange_id, [
          ...(byCoin.get(exchange_id) ?? []),
          `${coin.id} ${pair} ${quotes!.USD!.price} ${quotes!.USD!.volume_24h}`,
        ]);
      }
    }
    for (const exchange of exchanges) {
      expect(await market.exchange({ exchangeId: exchange.id, ...USD })).toEqual(exchange);
      const rows = (await market.exchangeMarkets({ exchangeId: exchange.id, ...USD }))!;
      expect(rows).toHaveLength(exchange.markets!);
      const told = rows.map(
        ({ base_currency_id, pair, quotes }) =>
          `${base_currency_id} ${pair} ${quotes!.USD!.price} ${quotes!.USD!.volume_24h}`,
      );
      expect(told).toEqual(byCoin.get(exchange.id));
      const currencies = rows.flatMap((row) => [row.base_currency_id, row.quote_currency_id]);
      expect(new Set(currencies.filter((id) => id !== 'usd-us-dollars')).size).toBe(exchange.currencies);
      const volume = rows.reduce((sum, { quotes }) => sum + Number(quotes!.USD!.volume_24h), 0);
      expect(exchange.quotes.USD!.reported_volume_24h).toBe(Math.floor(volume));
      const shares = rows.reduce((sum, row) => sum + Number(row.reported_volume_24h_share), 0);
      expect(shares).toBeCloseTo(100, 2);
    }
    expect(exchanges.some(({ type }) => type.includes('dex'))).toBe(true);
  });

  it('has tags whose counters are the lengths of their lists, with the coins that name the tag', async () => {
    const tags = await market.tags();
    const byTag = new Map<string, string[]>(tags.map(({ id }) => [id, []]));
    for (const coin of coins) {
      for (const { id, coin_counter } of (await market.coin(coin.id))!.tags!) {
        byTag.get(id)!.push(coin.id);
        expect(coin_counter).toBe(tags.find((tag) => tag.id === id)!.coin_counter);
      }
    }
    for (const tag of tags) {
      expect([tag.coins, tag.coin_counter]).toEqual([byTag.get(tag.id), byTag.get(tag.id)!.length]);
      expect(tag.ico_counter).toBe(tag.icos!.length);
      expect(await market.tag(tag.id)).toEqual(tag);
    }
    expect(tags.flatMap(({ icos }) => icos).length).toBeGreaterThan(0);
  });

  it('announces events at most a month ahead, and keeps all past ones', async () => {
    let later = 0;
    for (const { id } of coins) {
      const now = (await market.coinEvents(id))!;
      const dates = now.map(({ date }) => parseTime(date));
      expect(Math.max(...dates, 0)).toBeLessThanOrEqual(noon + 30 * DAY);
      expect(dates).toEqual([...dates].sort((a, b) => b - a));
      const after = (await marketAt(noon + 120 * DAY).coinEvents(id))!;
      expect(after.slice(after.length - now.length)).toEqual(now);
      later += after.length - now.length;
    }
    expect(later).toBeGreaterThan(20);
  });

  it('publishes changes of ids, the newest first, a hundred to a page, none twice', async () => {
    const large = createMadeUpMarket({ world: createMadeUpWorld({ seed: 2, coins: 8_000 }), clock: frozenClock(noon) });
    const ids = new Set((await large.coins()).map(({ id }) => id));
    const pages = await Promise.all([1, 2, 3, 4].map((page) => large.idChanges({ page })));
    expect(pages.map((page) => page.length)).toEqual([100, expect.any(Number), 0, 0]);
    const all = pages.flat();
    expect(new Set(all.map(({ old_id }) => old_id)).size).toBe(all.length);
    for (const { currency_id, new_id, old_id } of all) {
      expect([ids.has(new_id), ids.has(old_id), currency_id]).toEqual([true, false, new_id]);
    }
    const times = all.map(({ changed_at }) => parseTime(changed_at));
    expect(times).toEqual([...times].sort((a, b) => b - a));
  });
});

describe('search in the made-up market', () => {
  const market = marketAt(noon);
  const ask = (q: string, categories = SEARCH_CATEGORIES as readonly (typeof SEARCH_CATEGORIES)[number][]) =>
    market.search({ q, categories, symbolOnly: false, limit: 6 });

  it('finds exact names first, then names that begin with the text, and keeps to the categories and the limit', async () => {
    const { currencies, ...rest } = await ask('btc', ['currencies']);
    expect([currencies![0]!.id, rest]).toEqual(['btc-bitcoin', {}]);
    expect(Object.keys(await ask('o'))).toEqual(['currencies', 'icos', 'exchanges', 'people', 'tags']);
    for (const found of Object.values(await ask('a'))) expect(found!.length).toBeLessThanOrEqual(6);
    expect((await ask('BINANCE')).exchanges).toEqual([{ id: 'binance', name: 'Binance', rank: 1 }]);
    expect((await ask('smart con')).tags!.map(({ id }) => id)).toEqual(['smart-contracts']);
  });

  it('finds everybody by name, with the number of their teams', async () => {
    const [member] = (await market.coin('btc-bitcoin'))!.team!;
    const { people } = await ask(member!.name);
    const { teams_count } = (await market.person(member!.id))!;
    expect(people![0]).toEqual({ id: member!.id, name: member!.name, teams_count });
  });

  it('finds by symbol alone when the request says so', async () => {
    const { symbol } = world.coins[20]!;
    const found = await market.search({
      q: symbol.toLowerCase(),
      categories: ['currencies'],
      symbolOnly: true,
      limit: 250,
    });
    const expected = world.coins.filter((coin) => coin.symbol === symbol).map(({ id }) => id);
    expect(found.currencies!.map(({ id }) => id).sort()).toEqual(expected.sort());
  });
});

describe.each<[string, () => MarketData, string, number]>([
  ['made-up', () => marketAt(noon), 'eth-ethereum', Date.UTC(2024, 3, 1)],
  ['recorded', () => createRecordedMarket({ clock: frozenClock(noon) }), 'eth-ethereum', Date.UTC(2019, 9, 1)],
])('the ticker history of the %s market', (_, open, coinId, from) => {
  const market = open();

  it('is the mean of each day’s candle, excluding the end of the day', async () => {
    const query = { coinId, quote: 'usd', from, to: from + 5 * DAY } as const;
    const ticks = (await market.tickerHistory({ ...query, widthMs: DAY, limit: 100 }))!;
    const candles = (await market.ohlcv({ ...query, interval: '24h', limit: 100 }))!.slice(0, 5);
    expect(ticks.map(({ timestamp }) => parseTime(timestamp))).toEqual(candles.map(({ openTime }) => openTime));
    for (const [i, { open, high, low, close, volume, marketCap }] of candles.entries()) {
      expect(ticks[i]!.price).toBeCloseTo((open! + high! + low! + close!) / 4, 6);
      expect([ticks[i]!.volume_24h, ticks[i]!.market_cap]).toEqual([volume, marketCap]);
    }
  });

  it('has no more rows than requested, the earliest ones', async () => {
    const query = { coinId, quote: 'usd', from, to: from + 30 * DAY, widthMs: 7 * DAY } as const;
    const all = (await market.tickerHistory({ ...query, limit: 100 }))!;
    expect(all.length).toBeGreaterThanOrEqual(4);
    expect(await market.tickerHistory({ ...query, limit: 2 })).toEqual(all.slice(0, 2));
  });
});

it('computes the volume of the day up to the end of a row, at every width', async () => {
  const from = Date.UTC(2024, 3, 1, 12);
  const query = { coinId: 'btc-bitcoin', quote: 'usd', from, to: from + HOUR } as const;
  const hours = await marketAt(noon).ohlcv({
    ...query,
    from: from - 23 * HOUR,
    to: from,
    interval: '1h',
    limit: 24,
  });
  const sum = hours!.reduce((total, { volume }) => total + volume!, 0);
  const [tick] = (await marketAt(noon).tickerHistory({ ...query, widthMs: HOUR, limit: 1 }))!;
  expect(tick!.volume_24h).toBe(sum);
  const ticks = await marketAt(noon).tickerHistory({ ...query, widthMs: HOUR / 4, limit: 10 });
  expect(ticks!.at(-1)!.volume_24h).toBe(sum);
});

it('has ids of coins on other sites: no two coins share one, each leads back, small coins lack some', async () => {
  const market = createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 3_000 }), clock: frozenClock(noon) });
  const ids = (await market.coins()).map(({ id }) => id);
  const all = await Promise.all(ids.map((id) => market.mapping({ provider: 'coinpaprika', id })));
  for (const provider of ID_PROVIDERS) {
    const given = all.map((one) => one![provider] as string).filter((id) => id !== '');
    expect([provider, new Set(given).size]).toEqual([provider, given.length]);
    expect([provider, given.length < ids.length]).toEqual([provider, provider !== 'coinpaprika']);
    expect(await market.mapping({ provider, id: given.at(-1)! })).toMatchObject({ [provider]: given.at(-1) });
  }
  expect(all[0]).toMatchObject({ coinpaprika: 'btc-bitcoin', coinmarketcap: '1', coingecko: 'bitcoin' });
  const withIsin = all.filter((one) => one!.isin !== '');
  for (const one of withIsin) {
    expect(one!.dti).toMatch(/^[0-9B-DF-HJ-NP-TV-XZ]{9}$/);
    expect(one!.isin).toMatch(new RegExp(`^XT${one!.dti}[0-9]$`));
  }
  const late = await marketAt(Date.UTC(2013, 5, 1)).mapping({ provider: 'coingecko', id: 'ethereum' });
  expect(late).toBeNull();
});

it.each([
  ['made-up', () => marketAt(noon)],
  ['recorded', () => createRecordedMarket({ clock: frozenClock(noon) })],
])('converts coins and money into each other in the %s market', async (_, open) => {
  const market = open();
  const bitcoin = (await market.ticker({ coinId: 'btc-bitcoin', quotes: ['USD'] }))!.quotes.USD!.price!;
  const there = await market.convert({ baseId: 'btc-bitcoin', quoteId: 'usd-us-dollars', amount: 2 });
  expect(there).toMatchObject({ base_currency_name: 'Bitcoin', quote_currency_name: 'US Dollars', amount: 2 });
  expect(there!.price).toBeCloseTo(2 * bitcoin, 6);
  const back = await market.convert({ baseId: 'usd-us-dollars', quoteId: 'btc-bitcoin', amount: bitcoin });
  expect(back!.price).toBeCloseTo(1, 9);
  const money = await market.convert({ baseId: 'eur-euro', quoteId: 'pln-polish-zloty', amount: 1 });
  expect(money!.price! / (1.08 / 0.25)).toBeCloseTo(1, 0);
  expect(await market.convert({ baseId: 'xau-gold', quoteId: 'eur-euro', amount: 1 })).toBeNull();
});

it('keeps the recorded market’s three coins, one exchange and three markets together', async () => {
  const market = createRecordedMarket({ clock: frozenClock(noon) });
  const rows = (await market.exchangeMarkets({ exchangeId: 'bitstamp', ...USD }))!;
  expect(rows.map(({ pair }) => pair)).toEqual(['BTC/USD', 'ETH/USD', 'LTC/USD']);
  expect((await market.exchange({ exchangeId: 'bitstamp', ...USD }))!.markets).toBe(rows.length);
  for (const { base_currency_id } of rows) {
    const [market1] = (await market.coinMarkets({ coinId: base_currency_id, ...USD }))!;
    expect([market1!.exchange_id, market1!.base_currency_id]).toEqual(['bitstamp', base_currency_id]);
    expect(readRecord(coinDetailsSchema, await market.coin(base_currency_id))).toMatchObject({ ok: true });
  }
});
