import { afterEach, describe, expect, test } from 'vitest';
import {
  COINS_PATH,
  EXCHANGES_PATH,
  GLOBAL_PATH,
  SIMULATOR_HEADER,
  TICKERS_PATH,
} from '../../../src/contract/interface/paths.ts';
import { formatTime } from '../../../src/contract/time.ts';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import type { SnapshotName } from '../../../src/ingest/snapshot/snapshot-kinds.ts';
import { says } from '../../support/scripted.ts';
import { NOW } from '../../support/scripted-world.ts';
import { asColumns, aside, change, MINUTE, open, type Row, scripted, stored, tickersIn } from './snapshots.ts';

afterEach(() => scripted.world.close());

describe('a snapshot of the tickers', () => {
  test('is one request that feeds the newest tickers, their history, and rank and first data of the coins', async () => {
    const { world, upstream, sql, snapshots } = await open();
    await sql`update market.coin set first_data_at = null, rank = 77, rank_seen_at = 'epoch'`;
    await sql`truncate market.ticker, market.ticker_history`;
    const truth = await world.simulator.data.tickers({ quotes: ['USD'] });
    const outcome = stored(await snapshots.tickers());
    expect(outcome).toMatchObject({ requests: 1, rows: truth.length, stored: truth.length, quarantined: 0 });
    expect(upstream.log.map((asked) => asked.path)).toEqual(['/v1/tickers']);

    const [bitcoin] = await sql`select * from market.ticker where coin_id = 'btc-bitcoin'`;
    const told = truth.find((ticker) => ticker.id === 'btc-bitcoin')!;
    const { ath_date, ...usd } = told.quotes.USD!;
    expect(bitcoin).toMatchObject({
      ...asColumns(usd),
      rank: 1,
      maxSupply: 21_000_000,
      betaValue: told.beta_value,
      athAt: Date.parse(ath_date!),
      updatedAt: Date.parse(told.last_updated!),
    });
    const history = await sql`
      select h.coin_id from market.ticker_history h join market.ticker t
        on t.coin_id = h.coin_id and t.at = h.at and t.price is not distinct from h.price and t.rank = h.rank`;
    expect(history).toHaveLength(truth.length);
    const coins = await sql<{ id: string; rank: number; first: number }[]>`
      select id, rank, first_data_at as first from market.coin where first_data_at is not null order by rank`;
    expect(coins.map((c) => [c.id, c.rank, formatTime(c.first)])).toEqual(
      truth.map((ticker) => [ticker.id, ticker.rank, ticker.first_data_at]),
    );
    const [fetch] = await sql`select outcome, rows, stored, quarantined from ops.fetch order by id desc limit 1`;
    expect(fetch).toMatchObject({ outcome: 'stored', rows: truth.length, stored: truth.length, quarantined: 0 });
  });

  test('leaves the same tables whichever of two answers is stored first', async () => {
    const inOrder = async (ages: readonly number[]) => {
      const { world, sql, snapshots } = await open();
      await sql`truncate market.ticker, market.ticker_history`;
      await sql`update market.coin set rank = 0, first_data_at = null, rank_seen_at = 'epoch'`;
      const start = world.clock.now();
      // Both are requested in one minute, from caches of different ages.
      let turn = 0;
      change(
        TICKERS_PATH,
        (rows) =>
          rows.map((row, i) => {
            const older = ages[turn] !== 0;
            // The younger answer lacks the last coin, and has an older time for the first one.
            const lastUpdated = start - (i === 0 ? (older ? 5 : 6) : older ? 6 : 5) * MINUTE;
            const quotes = { USD: { ...row.quotes.USD, price: (older ? 100 : 200) + i } };
            const rank = older ? i + 10 : i + 20;
            return { ...row, rank, quotes, last_updated: formatTime(Math.floor(lastUpdated / 1000) * 1000) };
          }),
        () => ages[turn]!,
      );
      for (; turn < ages.length; turn++) stored(await snapshots.tickers());
      const tables = {
        tickers:
          await sql`select coin_id, price, rank, at = max(at) over () as youngest, seen_at = max(seen_at) over () as seen
          from market.ticker order by coin_id`,
        coins: await sql`select id, rank from market.coin order by id`,
        history: await sql`select coin_id, price, rank from market.ticker_history order by coin_id, price`,
      };
      await world.close();
      return JSON.parse(JSON.stringify(tables)) as { tickers: { coinId: string; price: number }[] };
    };
    const forth = await inOrder([120, 0]);
    const back = await inOrder([0, 120]);
    expect(back).toEqual(forth);
    const btc = forth.tickers.find((row) => row.coinId === 'btc-bitcoin');
    expect(btc).toMatchObject({ price: 100, youngest: false, seen: true });
    expect(forth.tickers.filter((row) => row.price >= 200).length).toBe(forth.tickers.length - 1);
    await open();
  });

  test('quarantines impossible rows and those of unknown coins, once however often they come, and keeps the rest', async () => {
    const { world, sql, snapshots, readCoins } = await open();
    const before = new Map((await tickersIn()).map((row) => [row.coinId, row.at]));
    const [good, negative, future, twice] = [...before.keys()] as [string, string, string, string];
    change(TICKERS_PATH, (rows) => [
      ...rows.map((row) => {
        if (row.id === negative) return { ...row, quotes: { USD: { ...row.quotes.USD, price: -1 } } };
        if (row.id === future) return { ...row, last_updated: formatTime(world.clock.now() + HOUR) };
        return row;
      }),
      { ...rows.find((row) => row.id === twice), rank: 4711 },
      { ...rows[0], id: 'new-newcomer' },
    ]);
    for (let i = 0; i < 2; i++) {
      world.clock.advanceTo(NOW + (i + 1) * HOUR);
      expect(stored(await snapshots.tickers()).quarantined).toBe(4);
    }
    expect(await aside()).toEqual(
      [
        { recordId: negative, reason: 'quotes.USD.price is negative' },
        { recordId: future, reason: 'last_updated lies in the future' },
        { recordId: twice, reason: 'two different rows for one coin' },
        { recordId: 'new-newcomer', reason: 'the list of coins does not hold it' },
      ]
        .map((row) => ({ endpoint: 'tickers', ...row, times: 2 }))
        .sort((a, b) => (a.recordId < b.recordId ? -1 : 1)),
    );
    const after = new Map((await tickersIn()).map((row) => [row.coinId, row.at]));
    for (const id of [negative, future, twice]) expect(after.get(id)).toBe(before.get(id));
    expect(after.get(good)).toBeGreaterThan(before.get(good)!);
    expect(after.has('new-newcomer')).toBe(false);

    // As soon as its coin is known, its ticker is no longer quarantined.
    change(COINS_PATH, (rows) => [...rows, { ...rows[0], id: 'new-newcomer', rank: 99 }]);
    expect(await readCoins()).toMatchObject({ kind: 'read' });
    expect(await sql`select id from market.coin order by first_seen_at desc limit 1`).toEqual([{ id: 'new-newcomer' }]);
    expect((await aside()).map((row) => row.recordId)).not.toContain('new-newcomer');
    expect(await sql`select from market.quarantine`).toHaveLength(3);
  });

  test('with mostly impossible rows, or that is no list, is not stored at all', async () => {
    const { sql, snapshots } = await open();
    const before = await tickersIn();
    for (const spoil of [
      (rows: Row[]) => rows.map((row) => ({ ...row, rank: '1' })),
      (rows: Row[]) => rows.map((row) => ({ ...row, quotes: { EUR: row.quotes.USD } })),
      (rows: Row[]) => rows.map((row) => ({ ...row, quotes: { USD: {} } })),
      () => [],
      () => ({ rows: [] }),
    ]) {
      change(TICKERS_PATH, spoil);
      await expect(snapshots.tickers()).rejects.toThrow(/^tickers: the answer cannot be used: /);
    }
    expect(await tickersIn()).toEqual(before);
    const bad = await sql`select outcome from ops.fetch where endpoint = 'tickers' and outcome = 'malformed'`;
    expect(bad).toHaveLength(5);
  });

  test('dated by a wrong clock is not stored', async () => {
    const { snapshots } = await open();
    change(
      TICKERS_PATH,
      (rows) => rows,
      () => (3 * DAY) / 1000,
    );
    await expect(snapshots.tickers()).rejects.toThrow('the answer says that a cache has kept it for a day or longer');
  });

  test('waits for the list of coins, and spends no request on waiting', async () => {
    const { upstream, snapshots, readCoins } = await open({ catalogue: false });
    expect(await snapshots.tickers()).toMatchObject({ kind: 'snoozed', reason: 'the list of coins is not there yet' });
    expect(upstream.log).toEqual([]);
    expect(await readCoins()).toMatchObject({ kind: 'read' });
    stored(await snapshots.tickers());
  });

  test('that is much shorter than the last is not believed; it is when the next one, which no cache repeats, is as short', async () => {
    const { world, snapshots, sql } = await open();
    change(TICKERS_PATH, (rows) => rows.slice(0, 2));
    const first = await snapshots.tickers();
    expect(first).toMatchObject({ kind: 'deferred', requests: 1, reason: '2 rows, of which 6 at least were expected' });
    // Any sooner, it may be the same answer from a cache.
    expect((await snapshots.tickers()).kind).toBe('deferred');
    world.clock.advanceTo(world.clock.now() + 2 * MINUTE);
    expect(stored(await snapshots.tickers())).toMatchObject({ rows: 2 });
    expect(stored(await snapshots.tickers())).toMatchObject({ rows: 2 });
    const outcomes = await sql<
      { outcome: string }[]
    >`select outcome from ops.fetch where endpoint = 'tickers' order by id`;
    expect(outcomes.map((row) => row.outcome)).toEqual(['stored', 'unconfirmed', 'unconfirmed', 'stored', 'stored']);
    // The other tickers are kept.
    expect((await tickersIn()).length).toBeGreaterThan(2);
  });
});

describe('the list of coins', () => {
  test('shows new coins, and active ones that are no longer listed', async () => {
    const { sql, world, readCoins } = await open();
    world.clock.advanceTo(NOW + HOUR);
    change(COINS_PATH, (rows) => rows.map((row) => (row.id === 'ltc-litecoin' ? { ...row, id: 'ltc-lite' } : row)));
    expect(await readCoins()).toMatchObject({ kind: 'read' });
    const at = NOW + HOUR;
    expect(await sql`select id from market.coin where first_seen_at = ${at}`).toEqual([{ id: 'ltc-lite' }]);
    const gone = await sql`select id from market.coin where is_active and last_seen_at < ${at}`;
    expect(gone).toEqual([{ id: 'ltc-litecoin' }]);
  });

  test('stores whatever text upstream sends', async () => {
    const { sql, readCoins } = await open();
    change(COINS_PATH, (rows) => rows.map((row, i) => (i === 0 ? { ...row, name: 'a\0b', rank: null } : row)));
    expect(await readCoins()).toMatchObject({ kind: 'read' });
    const [first] = await sql`select name, rank from market.coin where id = 'btc-bitcoin'`;
    expect(first).toEqual({ name: 'a\ufffdb', rank: 0 });
  });
});

describe('a snapshot of the market as a whole', () => {
  test('becomes a row of its history', async () => {
    const { world, sql, snapshots } = await open();
    const truth = await world.simulator.data.global();
    expect(stored(await snapshots.global())).toMatchObject({ requests: 1, rows: 1, stored: 1, quarantined: 0 });
    const rows = await sql`select market_cap, coins, bitcoin_dominance, updated_at from market.global_history`;
    expect([...rows]).toEqual([
      {
        marketCap: truth.market_cap_usd,
        coins: truth.cryptocurrencies_number,
        bitcoinDominance: truth.bitcoin_dominance_percentage,
        updatedAt: truth.last_updated! * 1000,
      },
    ]);
  });

  test.each([
    ['market_cap_usd', -5, 'market_cap_usd is negative or not finite'],
    ['market_cap_usd', '12', 'market_cap_usd: expected number'],
    ['last_updated', NOW, 'last_updated lies in the future'],
    ['last_updated', -1, 'last_updated lies before 1970'],
    ['bitcoin_dominance_percentage', 101, 'bitcoin_dominance_percentage is above 100'],
  ])('that is impossible (%s: %j) is quarantined', async (field, value, reason) => {
    const { sql, snapshots } = await open();
    change(GLOBAL_PATH, (row: unknown) => ({ ...(row as object), [field]: value }));
    expect(stored(await snapshots.global())).toMatchObject({ stored: 0, quarantined: 1 });
    expect(await aside()).toEqual([{ endpoint: 'global', recordId: '', reason, times: 1 }]);
    expect(await sql`select from market.global_history`).toHaveLength(0);
  });
});

describe('a snapshot of the exchanges', () => {
  test('keeps each exchange as last seen, and the ranks and volumes of every time; none is ever deleted', async () => {
    const { world, sql, snapshots } = await open();
    const truth = await world.simulator.data.exchanges({ quotes: ['USD'] });
    stored(await snapshots.exchanges());
    const [first] = await sql`select * from market.exchange where id = ${truth[0]!.id}`;
    expect(first).toMatchObject({
      name: truth[0]!.name,
      types: truth[0]!.type,
      links: truth[0]!.links,
      fiats: truth[0]!.fiats,
      isActive: true,
      adjustedRank: 1,
      ...asColumns(truth[0]!.quotes.USD!),
    });
    world.clock.advanceTo(NOW + HOUR);
    change(EXCHANGES_PATH, (rows) =>
      rows
        .slice(1)
        .map((row, i) =>
          i === 0
            ? { ...row, quotes: { USD: { ...row.quotes.USD, adjusted_volume_24h: -1 } } }
            : { ...row, name: 'New' },
        ),
    );
    expect(stored(await snapshots.exchanges())).toMatchObject({ rows: 11, stored: 10, quarantined: 1 });
    expect(await sql`select from market.exchange`).toHaveLength(12);
    expect(await sql`select from market.exchange where name = 'New' and last_seen_at > first_seen_at`).toHaveLength(10);
    expect(await sql`select from market.exchange_history`).toHaveLength(22);
    expect(await aside()).toMatchObject([{ reason: 'quotes.USD.adjusted_volume_24h is negative or not finite' }]);
  });
});

describe('every snapshot', () => {
  test.each(['tickers', 'global', 'exchanges'] as const)('of %s is requested once for a tick', async (name) => {
    const { world, upstream, snapshots } = await open();
    world.clock.advanceTo(NOW + HOUR);
    const tick = world.clock.now();
    expect(stored(await snapshots[name]({ since: tick })).requests).toBe(1);
    expect(stored(await snapshots[name]({ since: tick })).requests).toBe(0);
    expect(upstream.log).toHaveLength(1);
  });

  test('is taken from the quota as scheduled work, in its own name', async () => {
    const { sql, snapshots } = await open();
    for (const name of ['tickers', 'global', 'exchanges'] as const) await snapshots[name]();
    const spent = await sql`
      select name, month_spent from ops.quota_spent where class = 'scheduled' and name <> 'catalogue' order by name`;
    expect([...spent]).toEqual(['exchanges', 'global', 'tickers'].map((name) => ({ name, monthSpent: 1 })));
  });

  test.each([
    [403, 'forbidden'],
    [402, 'payment required'],
  ])(
    'that is refused (%i: %s) is not requested for longer and longer, and uses no quota meanwhile',
    async (status, text) => {
      const { world, upstream, snapshots } = await open();
      stored(await snapshots.exchanges());
      upstream.forget();
      upstream.script = (request) => (request.url.endsWith(EXCHANGES_PATH) ? says(status, text) : null);
      const end = world.clock.now() + 30 * DAY;
      while (world.clock.now() < end) {
        const outcome = await snapshots.exchanges();
        if (outcome.kind !== 'refused') throw new Error(`not refused, but ${outcome.kind}`);
        expect(outcome.until).toBeGreaterThan(world.clock.now());
        // A process that asks earlier gets the refusal without a request.
        expect(await snapshots.exchanges()).toMatchObject({ kind: 'refused', requests: 0 });
        world.clock.advanceTo(outcome.until);
      }
      expect(upstream.log.length).toBeGreaterThanOrEqual(30);
      expect(upstream.log.length).toBeLessThan(40);
      upstream.script = null;
      stored(await snapshots.exchanges());
    },
  );

  test('whose key was never accepted ends with a configuration error', async () => {
    const { upstream, snapshots } = await open({ catalogue: false });
    upstream.script = () => says(403, 'forbidden');
    await expect(snapshots.exchanges()).rejects.toThrow('the upstream answers only with a key');
  });

  test('that fails is an exception, and recorded', async () => {
    const { sql, upstream, snapshots } = await open();
    upstream.script = () => says(503, 'later');
    await expect(snapshots.global()).rejects.toThrow(/^global: .*503/);
    const [fetch] = await sql`select endpoint, outcome from ops.fetch order by id desc limit 1`;
    expect(fetch).toEqual({ endpoint: 'global', outcome: 'unavailable' });
  });

  test('is not stored into a warehouse of another market', async () => {
    const { upstream, snapshots, readCoins } = await open();
    upstream.script = async (request, simulated) => {
      const answer = await simulated(request);
      answer.headers.set(SIMULATOR_HEADER, 'another');
      return answer;
    };
    for (const name of ['tickers', 'global', 'exchanges'] satisfies SnapshotName[])
      await expect(snapshots[name]()).rejects.toThrow('this warehouse holds data of');
    await expect(readCoins()).rejects.toThrow('this warehouse holds data of');
  });
});
