/** Price histories of stored price series: the bytes of the upstream, and their provenance. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isCurrentOf } from '../../../src/contract/answer/revalidation.ts';
import type { Handler } from '../../../src/contract/interface/handler.ts';
import { DAY, HOUR, type PriceInterval } from '../../../src/core/interval.ts';
import { createService } from '../../../src/service/service.ts';
import { createMadeUpWorld } from '../../../src/simulator/made-up/made-up-world.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { recordRenames } from '../../../src/store/upkeep/rename.ts';
import { createWarehouse } from '../../../src/views/market/warehouse.ts';
import { frozenClock, openAccess } from '../../service/conformance.ts';
import { fill } from '../../support/fill.ts';
import { coinNamed } from '../../support/stored-answers.ts';
import { fillTickerHistory } from '../../support/ticker-history.ts';
import { createWorld, type World } from '../../support/world.ts';

const MINUTE = 60_000;
const NOW = Date.UTC(2026, 10, 18, 12, 3, 20);
const TODAY = Date.UTC(2026, 10, 18);
const MARKET = { seed: 7, coins: 30 };
const coins = createMadeUpWorld(MARKET).coins;
const BTC = 'btc-bitcoin';
const ETH = 'eth-ethereum';
/** Has slots without a price at every width below a day, and days without one. */
const gappy = coins.find(({ kind, end }) => kind === 'gappy' && end === Number.POSITIVE_INFINITY)!;
/** Began recently, in the middle of an hour. */
const young = coins.find(({ kind, start }) => kind === 'late' && start % HOUR !== 0)!;
const began = Math.floor(young.start / DAY) * DAY;

type Filled = readonly [coinId: string, quote: 'usd' | 'btc', interval: PriceInterval, from: number, to: number];
const FILLED: readonly Filled[] = [
  [BTC, 'usd', 'prices-1d', TODAY - 60 * DAY, TODAY - 40 * DAY],
  [BTC, 'usd', 'prices-1d', TODAY - 30 * DAY, TODAY - 2 * DAY],
  [gappy.id, 'usd', 'prices-1d', TODAY - 400 * DAY, TODAY - 2 * DAY],
  [gappy.id, 'usd', 'prices-1h', TODAY - 30 * DAY, TODAY - 2 * DAY],
  [gappy.id, 'btc', 'prices-1h', TODAY - 30 * DAY, TODAY - 2 * DAY],
  [gappy.id, 'usd', 'prices-5m', TODAY - 6 * DAY, TODAY - 2 * DAY],
  [gappy.id, 'btc', 'prices-5m', TODAY - 6 * DAY, TODAY - 2 * DAY],
  [young.id, 'usd', 'prices-1d', began - 10 * DAY, began + 20 * DAY],
  [young.id, 'btc', 'prices-1d', began - 10 * DAY, began + 20 * DAY],
  [young.id, 'btc', 'prices-1h', began - 2 * DAY, began + 2 * DAY],
];

let world: World;
let serve: Handler;
beforeAll(async () => {
  world = await createWorld({ startAt: NOW, simulator: MARKET });
  const chandler = await world.open();
  for (const [coinId, quote, interval, from, to] of FILLED)
    await fill(world, chandler, { coins: [coinId], quote, interval, from, to });
  const clock = frozenClock(NOW);
  serve = createService({
    data: createWarehouse({ sql: world.database.sql, clock }),
    access: openAccess,
    clock,
    onError: (error) => {
      throw error;
    },
  });
});
afterAll(() => world?.close());

type Row = { readonly timestamp: string; readonly price: number };
const pathOf = (coinId: string, query: string) => `/v1/tickers/${coinId}/historical?${query}`;
const between = (from: number, to: number, interval: string, more = '') =>
  `start=${from / 1000}&end=${to / 1000}&interval=${interval}&limit=5000${more}`;
const ask = async (coinId: string, query: string) => {
  const response = await serve(new Request(`http://service${pathOf(coinId, query)}`));
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const { headers } = response;
  return {
    text,
    rows: JSON.parse(text) as Row[],
    coverage: headers.get('x-chandler-coverage'),
    asOf: headers.get('x-chandler-as-of'),
    etag: headers.get('etag'),
  };
};
const upstreamText = async (coinId: string, query: string) =>
  (await world.simulator.fetch(new Request(`http://upstream.test${pathOf(coinId, query)}`))).text();
/** Our answer, after a check that it equals the upstream's. */
const same = async (coinId: string, query: string) => {
  const ours = await ask(coinId, query);
  expect(ours.text).toBe(await upstreamText(coinId, query));
  return ours;
};
const iso = (at: number) => new Date(at).toISOString().replace('.000', '');

describe('a stored price series gives the bytes of the upstream', () => {
  it.each([
    ['1d', 'usd', 400],
    ['24h', 'usd', 400],
    ['1h', 'usd', 30],
    ['1h', 'btc', 30],
    ['5m', 'usd', 6],
    ['5m', 'btc', 6],
  ] as const)('%s in %s, with slots that have no price', async (interval, quote, days) => {
    const width = { '1d': DAY, '24h': DAY, '1h': HOUR, '5m': 5 * MINUTE }[interval];
    const { rows, coverage, asOf } = await same(
      gappy.id,
      between(TODAY - days * DAY, TODAY - 2 * DAY, interval, `&quote=${quote}`),
    );
    const slots = ((days - 2) * DAY) / width;
    expect(rows.length).toBeGreaterThan(slots / 2);
    expect(rows.length).toBeLessThan(slots);
    expect([coverage, typeof asOf]).toEqual(['full', 'string']);
  });

  it.each(['usd', 'btc'] as const)(
    'before the coin began, in %s: its history begins with its first day',
    async (quote) => {
      const query = between(began - 10 * DAY, began + 20 * DAY, '1d', `&quote=${quote}`);
      const { rows, coverage } = await same(young.id, query);
      expect(rows).toHaveLength(20);
      expect(rows[0]!.timestamp).toBe(iso(began));
      expect(coverage).toBe('full');
      const before = await same(young.id, between(began - 10 * DAY, began, '1d', `&quote=${quote}`));
      expect([before.text, before.coverage]).toEqual(['[]\n', 'full']);
    },
  );

  it('before the coin began, by the hour', async () => {
    const { rows } = await same(young.id, between(began - DAY, began + 2 * DAY, '1h', '&quote=btc'));
    expect(rows[0]!.timestamp).toBe(iso(Math.floor(young.start / HOUR) * HOUR));
  });

  it('for an end in the middle of a slot, which includes the slot, and for an end at its start, which does not', async () => {
    const day = TODAY - 10 * DAY;
    const middle = await same(BTC, between(day, day + 3 * DAY + HOUR, '1d'));
    expect(middle.rows.at(-1)!.timestamp).toBe(iso(day + 3 * DAY));
    expect(middle.coverage).toBe('full');
    const edge = await same(BTC, between(day, day + 3 * DAY, '1d'));
    expect(edge.rows.at(-1)!.timestamp).toBe(iso(day + 2 * DAY));
    await same(gappy.id, between(day + 7 * MINUTE, day + 9 * HOUR + 1_000, '1h', '&quote=btc'));
    await same(gappy.id, between(TODAY - 5 * DAY + 1_000, TODAY - 4 * DAY + 1_000, '5m'));
  });

  it('for a start in the middle of a slot, which begins with the next slot', async () => {
    const { rows } = await same(BTC, between(TODAY - 10 * DAY + 1_000, TODAY - 7 * DAY, '1d'));
    expect(rows.map(({ timestamp }) => timestamp)).toEqual([iso(TODAY - 9 * DAY), iso(TODAY - 8 * DAY)]);
  });

  it.each([1, 3, 17])('for a limit of %i', async (limit) => {
    const start = `start=${(TODAY - 20 * DAY) / 1000}&limit=${limit}`;
    for (const query of [`${start}&interval=1h`, `${start}&interval=1h&quote=btc&end=${(TODAY - 2 * DAY) / 1000}`]) {
      const { rows, coverage } = await same(gappy.id, query);
      expect(rows).toHaveLength(limit);
      expect(coverage).toBe('full');
    }
  });

  it('a history leaves out what was never requested, and says where that begins', async () => {
    const { rows, coverage } = await ask(BTC, between(TODAY - 60 * DAY, TODAY - 2 * DAY, '1d'));
    const theirs = JSON.parse(await upstreamText(BTC, between(TODAY - 60 * DAY, TODAY - 2 * DAY, '1d'))) as Row[];
    const isStored = ({ timestamp }: Row) => !(timestamp >= iso(TODAY - 40 * DAY) && timestamp < iso(TODAY - 30 * DAY));
    expect(rows).toEqual(theirs.filter(isStored));
    expect(coverage).toBe(`partial; first-missing=${iso(TODAY - 40 * DAY)}`);
    // On either side of the gap everything is known.
    expect((await same(BTC, between(TODAY - 60 * DAY, TODAY - 40 * DAY, '1d'))).coverage).toBe('full');
    // If the limit is reached before the gap, the gap is no part of the answer.
    expect((await same(BTC, `start=${iso(TODAY - 60 * DAY)}&interval=1d&limit=20`)).coverage).toBe('full');
  });

  it('a history has no prices of another width, quote or coin', async () => {
    for (const [coinId, query] of [
      [BTC, between(TODAY - 20 * DAY, TODAY - 10 * DAY, '12h')],
      [BTC, between(TODAY - 20 * DAY, TODAY - 10 * DAY, '7d')],
      [BTC, between(TODAY - 20 * DAY, TODAY - 10 * DAY, '1d', '&quote=btc')],
      [ETH, between(TODAY - 20 * DAY, TODAY - 10 * DAY, '1d')],
    ] as const) {
      const { text, coverage, asOf } = await ask(coinId, query);
      expect([query, text, coverage, asOf]).toEqual([query, '[]\n', 'none', null]);
    }
  });
});

describe('where the series has no answer, tickers', () => {
  // In the gap of the daily series (days -40 to -30), and after it.
  const seenAt = (n: number) => Array.from({ length: 24 }, (_, i) => TODAY + n * DAY + i * HOUR + MINUTE);
  const newest = TODAY - 29 * DAY + 23 * HOUR + MINUTE;
  beforeAll(() => fillTickerHistory(world.database.sql, world.simulator.data, [...seenAt(-35), ...seenAt(-29)]));

  it('give their mean in place of the missing price; a stored price is not changed', async () => {
    const query = between(TODAY - 42 * DAY, TODAY - 27 * DAY, '1d');
    const { rows, coverage, asOf } = await ask(BTC, query);
    const theirs = JSON.parse(await upstreamText(BTC, query)) as Row[];
    const priceAt = (list: Row[], n: number) => list.find(({ timestamp }) => timestamp === iso(TODAY + n * DAY))?.price;
    expect(rows.map(({ timestamp }) => timestamp)).toEqual(
      [-42, -41, -35, -30, -29, -28].map((n) => iso(TODAY + n * DAY)),
    );
    const [ticker] = await world.database.sql<{ price: number }[]>`
      select price from market.ticker_history where coin_id = 'btc-bitcoin' and at = ${newest}`;
    expect(priceAt(rows, -35)).toBeCloseTo(ticker!.price, 6);
    for (const n of [-42, -41, -30, -29, -28]) expect(priceAt(rows, n)).toBe(priceAt(theirs, n));
    expect(coverage).toBe(`partial; first-missing=${iso(TODAY - 40 * DAY)}`);
    const [series] = await world.database.sql<{ at: number }[]>`
      select answered_at as at from market.series where coin_id = 'btc-bitcoin' and interval = 'prices-1d'`;
    expect(asOf).toBe(iso(Math.floor(series!.at / 1000) * 1000));
  });

  it('count for the coverage together with the series', async () => {
    const around = await ask(BTC, between(TODAY - 35 * DAY, TODAY - 34 * DAY, '1d'));
    expect([around.rows.length, around.coverage, around.asOf]).toEqual([
      1,
      'full',
      iso(TODAY - 35 * DAY + 23 * HOUR + MINUTE),
    ]);
    const tail = await ask(BTC, between(TODAY - 36 * DAY, TODAY - 34 * DAY, '1d'));
    expect([tail.rows.length, tail.coverage]).toEqual([1, `partial; first-missing=${iso(TODAY - 36 * DAY)}`]);
    const { coverage, rows } = await ask(
      BTC,
      between(TODAY - 42 * DAY, TODAY - 27 * DAY, '1d', '').replace('limit=5000', 'limit=3'),
    );
    expect([rows.at(-1)!.timestamp, coverage]).toEqual([
      iso(TODAY - 35 * DAY),
      `partial; first-missing=${iso(TODAY - 40 * DAY)}`,
    ]);
  });

  it('do not fill a slot that is known to have no price', async () => {
    const { sql } = world.database;
    const query = between(TODAY - 30 * DAY, TODAY - 2 * DAY, '1h');
    const { rows } = await same(gappy.id, query);
    const has = new Set(rows.map(({ timestamp }) => timestamp));
    const empty = Array.from({ length: 28 * 24 }, (_, i) => TODAY - 30 * DAY + i * HOUR).find(
      (at) => !has.has(iso(at)),
    )!;
    await fillTickerHistory(sql, world.simulator.data, [empty + MINUTE]);
    const [seen] = await sql`select from market.ticker_history where coin_id = ${gappy.id} and at = ${empty + MINUTE}`;
    expect(seen).toBeDefined();
    expect((await same(gappy.id, query)).coverage).toBe('full');
  });
});

/** All of this span is stored. */
const settled = between(TODAY - 20 * DAY, TODAY - 10 * DAY, '1d');

describe('a cached answer', () => {
  const withMissing = between(TODAY - 42 * DAY, TODAY - 38 * DAY, '1d');

  it('is read again when the price series changes, and gets another ETag', async () => {
    const { sql } = world.database;
    const before = await ask(BTC, settled);
    expect((await ask(BTC, settled)).etag).toBe(before.etag);
    const change = (factor: number) =>
      sql.begin(async (tx) => {
        await tx`update market.price set price = price * ${factor}
          where time = ${TODAY - 15 * DAY} and series_id in (
            select id from market.series where coin_id = 'btc-bitcoin' and interval = 'prices-1d' and quote = 'usd')`;
        await tx`update market.series set coin_id = coin_id where coin_id = 'btc-bitcoin' and interval = 'prices-1d'`;
      });
    await change(2);
    const after = await ask(BTC, settled);
    expect(after.rows[5]!.price).toBe(before.rows[5]!.price * 2);
    expect(after.etag).not.toBe(before.etag);
    const conditional = await serve(
      new Request(`http://service${pathOf(BTC, settled)}`, { headers: { 'If-None-Match': after.etag! } }),
    );
    expect(conditional.status).toBe(304);
    await change(0.5);
    expect((await ask(BTC, settled)).text).toBe(before.text);
  });

  it('is read again after a new ticker only if tickers are part of it', async () => {
    const { sql } = world.database;
    const data = createWarehouse({ sql, clock: frozenClock(NOW) });
    const question = (from: number, to: number) =>
      ({ coinId: BTC, quote: 'usd', from, to, widthMs: DAY, limit: 100 }) as const;
    const stored = await data.tickerHistory(question(TODAY - 20 * DAY, TODAY - 10 * DAY));
    const mixed = await data.tickerHistory(question(TODAY - 42 * DAY, TODAY - 38 * DAY));
    const current = async () => [await isCurrentOf(stored)!(), await isCurrentOf(mixed)!()];
    expect(await current()).toEqual([true, true]);
    await sql`update market.ticker set rank = rank where coin_id = 'btc-bitcoin'`;
    expect(await current()).toEqual([true, false]);
    await sql`update market.series set coin_id = coin_id where coin_id = 'btc-bitcoin' and interval = 'prices-1d'`;
    expect(await current()).toEqual([false, false]);
    expect((await ask(BTC, withMissing)).coverage).toBe(`partial; first-missing=${iso(TODAY - 40 * DAY)}`);
  });
});

describe('the id of a coin', () => {
  it('gives 404 if it is unknown', async () => {
    const response = await serve(new Request(`http://service${pathOf('no-nowhere', settled)}`));
    expect([response.status, await response.json()]).toEqual([404, { error: 'id not found' }]);
  });

  it('that is new gives the prices that were stored under the former id', async () => {
    const { sql } = world.database;
    const before = await ask(BTC, settled);
    // After the list that still had the old id. The clock runs, so that list may be younger than NOW.
    const at = world.clock.now();
    await recordCoins(sql, [coinNamed('btc-bitcoin-new')], at);
    await recordRenames(sql, [{ oldId: BTC, newId: 'btc-bitcoin-new', at }], 'changelog');
    await applyTracks(sql, at);
    expect((await ask('btc-bitcoin-new', settled)).text).toBe(before.text);
  });
});
