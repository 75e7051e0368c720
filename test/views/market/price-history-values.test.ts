/** Price histories of rows that were written by hand: every value as it is stored, also in slots that are not final. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isFound } from '../../../src/contract/answer/not-found.ts';
import { provenanceOf } from '../../../src/contract/answer/provenance.ts';
import { isCurrentOf } from '../../../src/contract/answer/revalidation.ts';
import { DAY, HOUR, type PriceInterval } from '../../../src/core/interval.ts';
import { createClient, type Sql } from '../../../src/store/connection/connect.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../../src/store/upkeep/partition.ts';
import { createWarehouse } from '../../../src/views/market/warehouse.ts';
import { frozenClock } from '../../service/conformance.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { coinNamed } from '../../support/stored-answers.ts';

const COIN = 'a-coin';
const NOW = Date.UTC(2026, 10, 18, 12, 3, 20);
const TODAY = Date.UTC(2026, 10, 18);
const ANSWERED = NOW - HOUR;
const day = (n: number) => TODAY + n * DAY;

/** The doubles that are most easily damaged. */
const ROWS: readonly (readonly [day: number, price: number | null, volume: number | null, cap: number | null])[] = [
  [-5, 0.1 + 0.2, 53_175_936_198.112_43, 2_176_151_326_372],
  [-4, 6.034_960_995_814_9e-7, 0, null],
  [-3, null, null, null],
  // Not final: no request was sent since they ended.
  [-1, Number.MIN_VALUE, 1e21, Number.MAX_SAFE_INTEGER],
  [0, 8589.68, 1.5, -1],
];

let database: TestDatabase;
async function seed(
  interval: PriceInterval,
  quote: 'usd' | 'btc',
  covered: readonly [number, number],
): Promise<number> {
  const [row] = await database.sql<{ id: number }[]>`
    insert into market.series (coin_id, quote, interval, wanted, covered, answered_at)
    values (${COIN}, ${quote}, ${interval}, '{}', ${[{ from: day(covered[0]), to: day(covered[1]) }]}::tstzmultirange, ${ANSWERED})
    returning id`;
  return row!.id;
}

beforeAll(async () => {
  database = await createTestDatabase();
  const { sql } = database;
  await recordCoins(sql, [coinNamed(COIN)], NOW);
  await ensurePartitionsOf(sql, TICKER_HISTORY, { from: day(-9), to: day(1) });
  const usd = await seed('prices-1d', 'usd', [-6, -2]);
  for (const [n, price, volume, cap] of ROWS)
    await sql`insert into market.price (series_id, time, price, volume_24h, market_cap) values (${usd}, ${day(n)}, ${price}, ${volume}, ${cap})`;
  const btc = await seed('prices-1d', 'btc', [-6, 0]);
  await sql`insert into market.price (series_id, time, price) values (${btc}, ${day(-2)}, 0.5)`;
  // Tickers in every slot, whether the series has a price there or not.
  for (let n = -6; n <= 0; n++)
    await sql`
      insert into market.ticker_history (coin_id, at, updated_at, price, volume_24h, market_cap, rank)
      values (${COIN}, ${day(n) + HOUR}, ${day(n) + HOUR}, 77, 7.4, 7.6, 1)`;
});
afterAll(() => database?.drop());

const ask = async (
  from: number,
  to: number,
  more: { limit?: number; quote?: 'usd' | 'btc' } = {},
  sql: Sql = database.sql,
) => {
  const data = createWarehouse({ sql, clock: frozenClock(NOW) });
  const query = { coinId: COIN, quote: 'usd', widthMs: DAY, limit: 1_000, from, to, ...more } as const;
  const ticks = await data.tickerHistory(query);
  if (!isFound(ticks)) throw new Error('not found');
  const rows = ticks.map((tick) => [
    (Date.parse(tick.timestamp) - TODAY) / DAY,
    tick.price,
    tick.volume_24h,
    tick.market_cap,
  ]);
  return { rows, provenance: provenanceOf(ticks) };
};
const OWN = (n: number) => [n, 77, 7, 8];

describe('a price history', () => {
  it('returns every double as it is stored, nulls too, and leaves out an empty covered slot', async () => {
    expect(await ask(day(-6), day(-2))).toEqual({
      rows: ROWS.slice(0, 3),
      provenance: { coverage: 'full', asOf: ANSWERED, firstMissing: null },
    });
  });

  it('returns stored prices that are not final, and the mean of the tickers for a slot that is neither covered nor stored', async () => {
    const { rows, provenance } = await ask(day(-5), NOW);
    expect(rows).toEqual([...ROWS.slice(0, 3), OWN(-2), ...ROWS.slice(3)]);
    // One ticker does not cover the whole day.
    expect(provenance).toEqual({ coverage: 'partial', asOf: ANSWERED, firstMissing: day(-2) });
  });

  it('made of tickers alone is as of the newest of them; covered slots are as of the series', async () => {
    expect(await ask(day(-2), day(-1))).toEqual({
      rows: [OWN(-2)],
      provenance: { coverage: 'partial', asOf: day(-2) + HOUR, firstMissing: day(-2) },
    });
    expect((await ask(day(-1), NOW)).provenance).toEqual({ coverage: 'full', asOf: ANSWERED, firstMissing: null });
  });

  it('counts stored prices and means towards its limit', async () => {
    const { rows } = await ask(day(-5), NOW, { limit: 4 });
    expect(rows).toEqual([...ROWS.slice(0, 3), OWN(-2)]);
    expect((await ask(day(-5), NOW, { limit: 3 })).provenance?.coverage).toBe('full');
  });

  it('ends before now, and is empty if its end is before its start', async () => {
    expect((await ask(day(0), day(9))).rows).toEqual(ROWS.slice(4));
    for (const [from, to] of [
      [day(1), day(9)],
      [day(-5) + 1, day(-4)],
      [day(-5), day(-5)],
    ] as const)
      expect(await ask(from, to)).toEqual({
        rows: [],
        provenance: { coverage: 'full', asOf: null, firstMissing: null },
      });
  });

  it('with a price that is not final is read again when its slot settles, even if nothing was stored since', async () => {
    let now = NOW;
    const clock = { now: () => now, sleep: async () => undefined };
    const data = createWarehouse({ sql: database.sql, clock });
    const query = { coinId: COIN, quote: 'usd', widthMs: DAY, limit: 1_000, from: day(-1), to: day(0) } as const;
    const read = async () => {
      const ticks = await data.tickerHistory(query);
      return { coverage: provenanceOf(ticks)?.coverage, isCurrent: isCurrentOf(ticks!)! };
    };
    const open = await read();
    now = day(1) - 1;
    expect([open.coverage, await open.isCurrent()]).toEqual(['full', true]);
    now = day(1);
    expect([(await read()).coverage, await open.isCurrent()]).toEqual(['partial', false]);
  });

  it('in another quote comes from another series', async () => {
    expect((await ask(day(-6), day(0), { quote: 'btc' })).rows).toEqual([[-2, 0.5, null, null]]);
  });

  it('is the same for the database role of the service', async () => {
    const served = createClient({ url: database.url, max: 1 });
    try {
      await served.unsafe('set role chandler_server');
      expect(await ask(day(-6), NOW, {}, served)).toEqual(await ask(day(-6), NOW));
    } finally {
      await served.end({ timeout: 5 });
    }
  });
});
