/** Processes that would request the same chunk differently work on the same warehouse at the same time. */
import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { recordHistoryLimit } from '../../src/store/candle/refusal.ts';
import { createScriptedWorld, NOW, TODAY } from '../support/scripted-world.ts';
import type { Chandler, World } from '../support/world.ts';

const SPAN = { from: TODAY - 300 * DAY, to: TODAY };
const [KEY_A, KEY_B] = ['key-of-a', 'key-of-b'];

let world: World;
afterEach(() => world?.close());

async function create() {
  const keys = { [KEY_A]: 'enterprise', [KEY_B]: 'enterprise' } as const;
  const made = await createScriptedWorld({
    limits: { perSecond: 40 },
    simulator: { seed: 3, coins: 6, unlimited: true, limits: { keys } },
  });
  world = made.world;
  return { ...made, coins: (await world.simulator.data.coins()).map(({ id }) => id) };
}

/** Requests by run and by the ledger from which they were taken. */
const ledger = () =>
  world.database.sql<{ account: string; name: string; spent: number }[]>`
    select split_part(account_id, '@', 1) as account, name, sum(month_spent)::int as spent
    from ops.quota_spent where class = 'backfill' group by 1, 2 order by 2, 1`;

describe('two runs at once', () => {
  test('of plans with different history limits: the run behind its limit drops no chunks of the other', async () => {
    const { coins } = await create();
    const message = 'Getting historical OHLCV data before x is not allowed in this plan';
    await recordHistoryLimit(world.database.sql, {
      plan: 'free',
      interval: '24h',
      depthMs: 2 * DAY,
      message,
      refusedAt: NOW,
      fetchId: null,
    });
    const deep = await world.open({ plan: 'enterprise', candlesPerRequest: 10 });
    const shallow = await world.open({ plan: 'free', candlesPerRequest: 10 });
    const [one, two] = await Promise.all([
      deep.backfill({ ...SPAN, coins: coins.slice(0, 2) }),
      shallow.backfill({ coins: coins.slice(1, 4), interval: '1h', from: TODAY - 10 * DAY, to: TODAY }),
    ]);
    for (const { end, failed } of [one, two]) expect([end, failed]).toEqual([{ kind: 'done' }, []]);
    expect(one.totals!.requests).toBe(one.planned);
    // Neither plan's limit at this interval was met, so the run went on after its probe to the end: 24 chunks a coin.
    expect(two.totals!.requests).toBe(3 * 24);
  });

  test('of two keys: each sends its own key and spends its own quota', async () => {
    const { coins } = await create();
    const open = (apiKey: string) => world.open({ apiKey, candlesPerRequest: 10 });
    const [a, b] = [await open(KEY_A), await open(KEY_B)];
    const run = (chandler: Chandler, mine: readonly string[]) => chandler.backfill({ ...SPAN, coins: mine });
    const [one, two] = await Promise.all([run(a, coins.slice(0, 2)), run(b, coins.slice(2, 4))]);
    expect([one.end, two.end]).toEqual([{ kind: 'done' }, { kind: 'done' }]);
    const spent = (await ledger()).map(({ name, spent }) => [name, spent]);
    expect(spent).toHaveLength(2);
    expect(Object.fromEntries(spent)).toEqual({
      [`backfill ${one.id}`]: one.planned,
      [`backfill ${two.id}`]: two.planned,
    });
    expect(new Set((await ledger()).map(({ account }) => account)).size).toBe(2);
  });

  test('of different request sizes: each keeps its own size', async () => {
    const { coins } = await create();
    const [small, large] = [await world.open({ candlesPerRequest: 10 }), await world.open({ candlesPerRequest: 100 })];
    const [one, two] = await Promise.all([
      small.backfill({ ...SPAN, coins: coins.slice(0, 1) }),
      large.backfill({ ...SPAN, coins: coins.slice(1, 6) }),
    ]);
    expect([one.totals!.requests, two.totals!.requests]).toEqual([one.planned, two.planned]);
    expect([one.end, two.end]).toEqual([{ kind: 'done' }, { kind: 'done' }]);
  });
});

test('a wipe removes only chunks in its own queue', async () => {
  await create();
  const [mine, other] = [await world.open({ plan: 'free' }), await world.open({ plan: 'starter' })];
  const job = {
    kind: 'backfill',
    backfillId: 1,
    seriesId: 1,
    coinId: 'btc-bitcoin',
    quote: 'usd',
    interval: '24h',
    from: SPAN.from,
    to: SPAN.to,
    askedSince: NOW,
  } as const;
  await mine.queue.add([job]);
  await other.queue.add([job]);
  await mine.queue.wipe();
  expect([await mine.queue.size(), await other.queue.size()]).toEqual([0, 1]);
});
