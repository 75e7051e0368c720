import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SIMULATOR_HEADER } from '../../src/contract/interface/paths.ts';
import { DAY } from '../../src/core/interval.ts';
import { refreshCatalogue } from '../../src/ingest/snapshot/coin-list.ts';
import { createSimulator, type SimulatorOptions } from '../../src/simulate.ts';
import { claimOrigin } from '../../src/store/work/installation.ts';
import type { Script } from '../support/scripted.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { World } from '../support/world.ts';

const COINS = ['btc-bitcoin', 'eth-ethereum'];
const FIRST = { coins: COINS, from: TODAY - 33 * DAY, to: TODAY - 3 * DAY };
const WIDER = { ...FIRST, from: TODAY - 63 * DAY };

let world: World;
let upstream: ScriptedWorld['upstream'];
beforeEach(async () => {
  ({ world, upstream } = await createScriptedWorld({ catalogue: false }));
});
afterEach(() => world.close());

/** The real upstream does not say that it is a simulator. */
const real: Script = async (request, simulated) => {
  const response = await simulated(request);
  response.headers.delete(SIMULATOR_HEADER);
  return response;
};
const another = (options: Partial<SimulatorOptions>): Script => {
  const { clock } = world;
  const simulator = createSimulator({
    market: 'made-up',
    seed: 3,
    coins: 6,
    unlimited: true,
    clock,
    onError: (error) => {
      throw error;
    },
    ...options,
  });
  return (request) => simulator.fetch(request);
};

async function open() {
  const chandler = await world.open();
  const { sql } = world.database;
  const readCoins = () => refreshCatalogue({ sendRequest: chandler.session.sendRequest, sql, clock: world.clock }, 0);
  return { ...chandler, readCoins };
}
async function counts() {
  const [row] = await world.database.sql<{ candles: number; changes: number }[]>`
    select (select count(*)::int from market.candle) as candles, (select count(*)::int from market.coin_change) as changes`;
  return row;
}

describe('a warehouse holds the data of one market only', () => {
  test.each<[string, Script | null, () => Script | null, RegExp]>([
    [
      'simulated',
      null,
      () => real,
      /holds data of a simulated market \(made-up, seed 3\), .* answers with the real market/,
    ],
    ['real', real, () => null, /holds data of the real market, .* answers with a simulated market \(made-up, seed 3\)/],
    ['simulated', null, () => another({ seed: 4 }), /seed 3\), .* a simulated market \(made-up, seed 4\)/],
    ['simulated', null, () => another({ market: 'recorded' }), /seed 3\), .* a simulated market \(recorded\)/],
  ])(
    'after %s ones, answers from another market are refused in one sentence, and nothing of them is stored',
    async (_, one, other, message) => {
      upstream.script = one;
      const first = await open();
      await first.readCoins();
      await first.backfill(FIRST);
      const before = await counts();
      expect(before!.candles).toBeGreaterThan(50);

      upstream.script = other();
      const second = await open();
      const run = await second.backfill(WIDER);
      expect(run.end).toEqual({
        kind: 'configurationError',
        message: expect.stringMatching(message),
        about: 'process',
      });
      if (run.end.kind === 'configurationError') expect(run.end.message).toMatch(/DATABASE_URL or CHANDLER_HOME/);
      await expect(second.readCoins()).rejects.toThrow(message);
      expect(await counts()).toEqual(before);
      const [told] = await world.database
        .sql`select count(*)::int as n from ops.fetch where message ~ 'this warehouse holds'`;
      expect(told!.n).toBeGreaterThanOrEqual(2);

      // The first market continues from where it was.
      upstream.script = one;
      expect((await (await open()).backfill(WIDER)).end).toEqual({ kind: 'done' });
    },
  );

  test('the same simulated market with other faults, limits and number of coins is accepted as the same', async () => {
    const first = await open();
    await first.readCoins();
    await first.backfill(FIRST);
    upstream.script = another({ coins: 20, unlimited: false, limits: { plan: 'enterprise' } });
    const second = await open();
    await second.readCoins();
    expect((await second.backfill(WIDER)).end).toEqual({ kind: 'done' });
  });

  test('when several runs begin at once, one of them fixes the market for all', async () => {
    const { sql } = world.database;
    const claims = Array.from({ length: 8 }, (_, i) => claimOrigin(sql, i % 2 ? null : 'made-up, seed 3'));
    expect(new Set(await Promise.all(claims)).size).toBe(1);
  });
});
