import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { fill, nextDue } from '../support/fill.ts';
import { NOW, TODAY } from '../support/scripted-world.ts';
import {
  atBad,
  BAD,
  COIN,
  DAYS,
  make,
  quarantined,
  type Row,
  rewriting,
  stored,
  truth,
  upstream,
  world,
} from './impossible.ts';

afterEach(() => world?.close());

describe('impossible rows', () => {
  test('are quarantined with their reason while the rest is stored, and the truth comes in the end, however many answers have them', async () => {
    const faults = parseFaultSpec('impossible:0.35,conflict:0.35,seed=8');
    if (!faults.ok) throw new Error(faults.problem);
    await make({ speed: 100, faults: () => faults.spec });
    const coins = (await world.simulator.data.coins()).map((coin) => coin.id);
    const work = { coins, from: TODAY - 403 * DAY, to: TODAY - 3 * DAY };
    const chandler = await world.open({ candlesPerRequest: 50 });
    const first = await chandler.backfill(work);
    expect(first.end).toEqual({ kind: 'done' });
    // After the first run, the valid rows of each spoilt answer are stored already.
    const slots = await world.database.sql<{ reason: string; slots: number }[]>`
      select reason, sum(slots)::int as slots from market.gaps group by reason`;
    const missing = slots.reduce((sum, row) => sum + row.slots, 0);
    expect(missing).toBeGreaterThan(10);
    expect(missing).toBeLessThan(150);

    await fill(world, chandler, work);
    const { faults: told } = world.simulator.counters();
    expect(told.impossible).toBeGreaterThan(10);
    expect(told.conflict).toBeGreaterThan(10);
    expect((await world.database.sql`select from market.gaps`).length).toBe(0);
    for (const coin of coins) {
      const mine = (await stored()).filter((row) => row.coinId === coin).map(({ coinId: _, ...row }) => row);
      expect(mine, coin).toEqual(await truth(coin, work.from, work.to));
    }
    for await (const proof of verifySeries(world.database.sql, {}, world.clock.now()))
      expect(proof.differences).toEqual([]);
    const aside = await quarantined();
    expect(aside.length).toBeGreaterThan(told.impossible! + told.conflict!);
    for (const { reason, row, fetchId } of aside) {
      expect(reason).not.toBe('');
      expect(row).toHaveProperty('time_open');
      expect(fetchId).toBeGreaterThan(0);
    }
    const reasons = new Set(aside.map((row) => row.reason));
    expect(reasons.size).toBeGreaterThanOrEqual(5);
    expect([...reasons].join()).toMatch(/high is below low/);
    expect([...reasons].join()).toMatch(/two different rows for one open time/);
  });

  test.each<[string, Record<string, unknown>, RegExp]>([
    ['high below low', { high: 1, low: 2, open: 1.5, close: 1.5 }, /high is below low/],
    ['a negative volume', { volume: -5 }, /volume/],
    ['text for a number', { close: '12' }, /close/],
    ['another coin', { coin_id: 'eth-ethereum' }, /is of coin eth-ethereum/],
    ['characters that a database cannot hold', { coin_id: 'x\u0000y\ud800' }, /is of coin x/],
  ])('with %s are quarantined, and all other rows of the answer are stored', async (_, change, reason) => {
    await make({ speed: 20 });
    upstream.script = rewriting((rows) => rows.map((row) => (atBad(row) ? { ...row, ...change } : row)));
    const run = await (await world.open()).backfill(DAYS);
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.failed).toEqual([]);
    expect((await stored()).map((row) => row.at)).toEqual(
      (await truth(COIN, DAYS.from, DAYS.to)).map((row) => row.at).filter((at) => at !== BAD),
    );
    // The same run requests it twice more.
    const [aside, ...more] = await quarantined();
    expect(more.map(({ at, row }) => ({ at, row }))).toEqual([1, 2].map(() => ({ at: aside!.at, row: aside!.row })));
    expect(aside!.reason).toMatch(reason);
    expect(aside!.row.time_open).toBe(new Date(BAD).toISOString().replace('.000', ''));
  });

  test.each<[string, (row: Row) => Row, RegExp]>([
    [
      'off the grid',
      (row) => ({ ...row, time_open: row.time_open.replace('T00:00', 'T00:01') }),
      /not on the 24h grid/,
    ],
    ['from the future', (row) => ({ ...row, time_open: '2031-01-01T00:00:00Z' }), /future/],
    [
      'outside the requested span',
      (row) => ({ ...row, time_open: '2020-01-01T00:00:00Z' }),
      /outside the requested span/,
    ],
  ])('%s are quarantined too, and make no other slot empty', async (_, change, reason) => {
    await make({ speed: 20 });
    upstream.script = rewriting((rows) => rows.map((row) => (atBad(row) ? change(row) : row)));
    const chandler = await world.open();
    await chandler.backfill(DAYS);
    expect((await quarantined()).map((row) => row.reason)).toEqual([1, 2, 3].map(() => expect.stringMatching(reason)));
    expect(await stored()).toHaveLength(29);
    const gaps = await world.database.sql`select reason, slots::int from market.gaps`;
    expect(gaps).toMatchObject([{ reason: 'unconfirmed', slots: 1 }]);
    // A later valid answer brings it.
    upstream.script = null;
    await fill(world, chandler, DAYS);
    expect(await stored()).toHaveLength(30);
  });
});

describe('a row that stays impossible', () => {
  test('is requested again at growing intervals, is malformed after five answers, and is then never requested again', async () => {
    await make({ speed: 20 });
    upstream.script = rewriting((rows) => rows.map((row) => (atBad(row) ? { ...row, high: 1, low: 2 } : row)));
    const chandler = await world.open();
    const askedAt: number[] = [];
    for (let i = 0; i < 10; i++) {
      const before = upstream.ohlcv().length;
      await chandler.backfill(DAYS);
      for (const asked of upstream.ohlcv().slice(before)) askedAt.push(asked.at);
      const due = await nextDue(world);
      if (due === null) break;
      // Too early: no request is sent at all.
      world.clock.advanceTo(due - 60_000);
      expect((await chandler.backfill(DAYS)).planned).toBe(0);
      world.clock.advanceTo(due + 1_000);
    }
    const waits = askedAt.slice(1).map((at, i) => at - askedAt[i]!);
    const least = [2_000, 5_000, 2 * 60_000, 20 * 60_000];
    expect(waits).toHaveLength(least.length);
    for (const [i, ms] of waits.entries()) expect(ms).toBeGreaterThanOrEqual(least[i]!);
    expect(Math.max(...waits.slice(0, 2))).toBeLessThan(60_000);
    const gaps = await world.database.sql`select reason, slots::int, gap_from as at from market.gaps`;
    expect(gaps.map((row) => ({ ...row }))).toEqual([{ reason: 'malformed', slots: 1, at: BAD }]);
    expect((await quarantined()).map((row) => row.at)).toEqual([BAD, BAD, BAD, BAD, BAD]);
    expect(await stored()).toHaveLength(29);

    world.clock.advanceTo(NOW + 400 * DAY);
    const wider = { ...DAYS, from: DAYS.from - 100 * DAY };
    expect((await chandler.backfill(DAYS)).planned).toBe(0);
    await fill(world, await world.open(), wider);
    expect(upstream.ohlcv().slice(5).length).toBeGreaterThan(0);
    expect(await world.database.sql`select reason from market.gaps`).toMatchObject([{ reason: 'malformed' }]);
    expect(await quarantined()).toHaveLength(5);
  });
});

describe('a row that cannot be read', () => {
  const unreadable = rewriting((rows) => rows.map((row) => (atBad(row) ? { ...row, close: '12' } : row)));

  test('is requested five times and then taken as the final answer of the upstream, like an impossible one', async () => {
    await make({ speed: 20 });
    upstream.script = unreadable;
    const chandler = await world.open();
    await fill(world, chandler, DAYS);
    expect(await world.database.sql`select slots::int, reason from market.gaps`).toEqual([
      { slots: 1, reason: 'malformed' },
    ]);
    const again = await chandler.backfill(DAYS);
    expect([again.end, again.failed]).toEqual([{ kind: 'done' }, []]);
    expect((await world.database.sql`select from ops.fetch where endpoint = 'ohlcv'`).length).toBe(5);
  });
});

test('no candle is lost when the upstream silently returns fewer rows than requested', async () => {
  await make();
  upstream.script = rewriting((rows) => rows.slice(0, 100));
  const work = { coins: [COIN], from: TODAY - 369 * DAY, to: TODAY - 3 * DAY };
  await fill(world, await world.open(), work);
  expect((await stored()).map(({ coinId: _, ...row }) => row)).toEqual(await truth(COIN, work.from, work.to));
  expect(await world.database.sql`select from market.gaps`).toEqual([]);
});

test('rows that stay invalid do not keep an implausible answer about the candles between them in request for ever', async () => {
  await make({ speed: 300 });
  const chandler = await world.open();
  const bad = [BAD, BAD + 15 * DAY];
  let told = 0;
  // From the second answer on, the final candles between the two rows have another market cap, as after a recomputation. It ends in any case.
  upstream.script = rewriting((rows) => {
    if (++told > 30) return rows;
    return rows.map((row) => {
      if (bad.includes(Date.parse(row.time_open))) return { ...row, high: 0 };
      return told > 1 ? { ...row, market_cap: Number(row.market_cap) + 1 } : row;
    });
  });
  await chandler.backfill(DAYS);
  expect(told).toBeLessThan(10);
  const [{ revised }] = (await world.database.sql`select count(*)::int as revised from market.revision`) as [
    { revised: number },
  ];
  expect(revised).toBe(14);
});
