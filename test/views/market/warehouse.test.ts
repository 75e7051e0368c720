/** The warehouse behind the service: the same suite as over the simulator, and what only a warehouse can do wrong. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isFound, type NotFound } from '../../../src/contract/answer/not-found.ts';
import { provenanceOf } from '../../../src/contract/answer/provenance.ts';
import { isCurrentOf } from '../../../src/contract/answer/revalidation.ts';
import type { CoinDetails } from '../../../src/contract/record/catalogue.ts';
import type { MarketData } from '../../../src/contract/record/market-data.ts';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { CATALOGUE_KINDS, readCatalogueAges } from '../../../src/store/catalogue/catalogue-item.ts';
import { createClient } from '../../../src/store/connection/connect.ts';
import { createWarehouse } from '../../../src/views/market/warehouse.ts';
import { describeService, frozenClock, type Subject } from '../../service/conformance.ts';
import { describeHostile } from '../../service/hostile.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { runSchedules } from '../../support/scheduled.ts';
import { seedSeries } from '../../support/warehouse.ts';
import { createWorld } from '../../support/world.ts';

const NOW = Date.UTC(2024, 5, 1, 12, 3, 20);

/** A token with tags and tickers: what lists other than the list of coins say about it. */
async function findListed(upstream: MarketData, coins: readonly { id: string }[]): Promise<CoinDetails> {
  for (const coin of coins) {
    const details = (await upstream.coin(coin.id))!;
    const { id, name, symbol, rank, is_new, is_active, type, tags, contracts, first_data_at } = details;
    if (!is_active || !tags?.length || !contracts?.length) continue;
    return { id, name, symbol, rank, is_new, is_active, type, tags, contracts, first_data_at };
  }
  throw new Error('no coin has contracts and tags');
}

/** Everything that the schedules of a service fetch in a month; every coin but one is tracked. */
async function openWarehouse(): Promise<Subject> {
  const firstDay = Date.UTC(2024, 4, 1);
  const world = await createWorld({
    startAt: firstDay + HOUR,
    simulator: { seed: 1, coins: 30 },
    rpcUrl: 'http://upstream.test/rpc',
  });
  const chandler = await world.open();
  const { sql } = world.database;
  for (let n = 0; n < 20; n++) {
    world.clock.advanceTo(firstDay + n * DAY + HOUR);
    await runSchedules(world, chandler, ['tickers']);
  }
  world.clock.advanceTo(NOW);
  const coins = await sql<{ id: string }[]>`select id from market.coin`;
  const span = { from: firstDay, to: NOW };
  const listed = await findListed(world.simulator.data, coins);
  const coinIds = coins.map(({ id }) => id).filter((id) => id !== listed.id);
  await wantSeries(sql, { coinIds, quote: 'usd', interval: '24h', span, priority: 0 });
  await runSchedules(world, chandler, ['coins', 'tickers', 'global', 'exchanges', ...CATALOGUE_KINDS]);
  await chandler.backfill({ coins: ['btc-bitcoin'], from: firstDay, to: NOW });
  const state = await readCatalogueAges(sql);
  const left = state.filter(({ items, answered }) => items === 0 || answered < items);
  if (left.length > 0) throw new Error(`the schedules left something unasked: ${JSON.stringify(left)}`);
  return {
    data: createWarehouse({ sql, clock: world.clock }),
    clock: frozenClock(NOW),
    coinId: 'btc-bitcoin',
    firstDay,
    rates: 'coins',
    listed,
    close: () => world.close(),
  };
}

let opened: Promise<Subject> | undefined;
/** One warehouse for both suites: neither changes it. */
const shared = async () => {
  opened ??= openWarehouse();
  const { close: _, ...subject } = await opened;
  return subject;
};
afterAll(async () => (await opened)?.close?.());

describeService('the warehouse', shared);
describeHostile('the warehouse', shared);

describe('a cached answer', () => {
  let database: TestDatabase;
  let data: MarketData<NotFound>;
  const clock = frozenClock(Date.UTC(2024, 0, 20, 12));
  const first = Date.UTC(2024, 0, 1);
  const query = { coinId: 'a-a', quote: 'usd', interval: '24h', from: first, to: first + 9 * DAY, limit: 366 } as const;
  const candles = async () => {
    const found = await data.ohlcv(query);
    return isFound(found) ? found : [];
  };
  /** Whether the answer itself says that its bytes may be sent again. */
  const isCurrent = (answer: object) => isCurrentOf(answer)!();
  beforeAll(async () => {
    database = await createTestDatabase();
    data = createWarehouse({ sql: database.sql, clock });
    await seedSeries(database.sql, {
      coinId: 'a-a',
      interval: '24h',
      wanted: [{ from: first, to: first + 10 * DAY }],
      covered: [{ from: first, to: first + 5 * DAY }],
      candles: [0, 1, 2, 3, 4].map((n) => first + n * DAY),
    });
  });
  afterAll(() => database?.drop());

  it('is current while nothing has changed, and has its provenance', async () => {
    const found = await candles();
    expect(found).toHaveLength(5);
    expect([await isCurrent(found), await candles()]).toEqual([true, found]);
    expect(provenanceOf(found)?.firstMissing).toBe(first + 5 * DAY);
  });

  it('is read again after every commit that changes it, by any process, and not before the commit', async () => {
    const { sql } = database;
    const before = await candles();
    await sql.begin(async (tx) => {
      await tx`update market.candle set close = 42 where interval = '24h' and open_time = ${first}`;
      await tx`update market.series set priority = priority`;
      expect([await isCurrent(before), await candles()]).toEqual([true, before]);
    });
    expect(await isCurrent(before)).toBe(false);
    expect((await candles())[0]).toMatchObject({ close: 42 });
    const coins = await data.coins();
    expect(await data.coins()).toBe(coins);
    await sql`update market.coin set name = 'other'`;
    expect((await data.coins())[0]).toMatchObject({ name: 'other' });
  });

  it('in other currencies is computed from the list in dollars, and only as far as needed', async () => {
    await database.sql`
      insert into market.ticker (coin_id, updated_at, at, seen_at, rank, position, price)
      select id, now(), now(), now(), rank, rank, 10 from market.coin where is_active`;
    const all = await data.tickers({ quotes: ['USD'] });
    expect(all.length).toBeGreaterThan(0);
    await database.sql`alter table market.ticker rename to ticker_gone`;
    try {
      for (const quotes of [['EUR'], ['EUR', 'USD'], ['PLN', 'USD', 'EUR']]) {
        const list = await data.tickers({ quotes, most: 1 });
        expect(list.map(({ id, quotes: told }) => [id, Object.keys(told)])).toEqual([[all[0]!.id, quotes]]);
        expect(await data.tickers({ quotes, most: 1 })).toBe(list);
      }
      // A currency without any rate has no values.
      expect(provenanceOf(await data.tickers({ quotes: ['EUR'], most: 1 }))?.coverage).toBe('partial');
    } finally {
      await database.sql`alter table market.ticker_gone rename to ticker`;
    }
  });

  it('in another currency is as old as the rate it is divided by', async () => {
    const { sql } = database;
    const [row] = await sql<{ at: number; coinId: string }[]>`select at, coin_id from market.ticker limit 1`;
    const { at, coinId } = row!;
    const asOf = async (quote: string) => [
      provenanceOf((await data.ticker({ coinId, quotes: [quote] })) as object)?.asOf,
      provenanceOf(await data.tickers({ quotes: [quote] }))?.asOf,
    ];
    expect(await asOf('USD')).toEqual([at, at]);
    await sql`insert into market.rate (currency, at, updated_at, price) values ('CHF', ${at - DAY}, ${at - DAY}, 1.1)`;
    expect(await asOf('CHF')).toEqual([at - DAY, at - DAY]);
    // A rate from just after the snapshot does not make the ticker younger.
    await sql`insert into market.rate (currency, at, updated_at, price) values ('CHF', ${at + 60_000}, ${at + 60_000}, 1.1)`;
    expect(await asOf('CHF')).toEqual([at, at]);
  });

  it('is read again after connections were lost', async () => {
    const { sql } = database;
    const before = await candles();
    await sql`update market.candle set close = 43 where interval = '24h' and open_time = ${first}`;
    await sql`update market.series set priority = priority`;
    const other = createClient({ url: database.url, max: 1 });
    await other`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
    await other.end();
    const read = async () => (await candles().catch(() => []))[0]?.close;
    await expect.poll(read).toBe(43);
    expect(await isCurrent(before)).toBe(false);
  });

  it('is read by one statement for all simultaneous requests', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => data.coins()));
    expect(new Set(answers).size).toBe(1);
  });

  it('is "not found" for ids that Postgres cannot store as text', async () => {
    const answers = [
      await data.ohlcv({ ...query, coinId: 'a\0a' }),
      await data.ticker({ coinId: '\ud800', quotes: ['USD'] }),
      await data.coin('{"\\}'),
    ];
    expect(answers.map((answer) => isFound<object>(answer))).toEqual([false, false, false]);
  });
});
