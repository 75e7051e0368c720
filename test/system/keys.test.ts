import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { ConfigurationError } from '../../src/ingest/outcome.ts';
import { says } from '../support/scripted.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { World, WorldOptions } from '../support/world.ts';

const WORK = { coins: ['btc-bitcoin', 'eth-ethereum'], from: TODAY - 3_000 * DAY, to: TODAY - 3 * DAY, concurrency: 4 };

let world: World;
let upstream: ScriptedWorld['upstream'];
afterEach(() => world?.close());

async function make(options: WorldOptions): Promise<void> {
  ({ world, upstream } = await createScriptedWorld(options));
}
const sent = () => upstream.log.map((asked) => asked.authorization);

describe('a wrong key', () => {
  test('ends everything after two requests, first as Bearer and then bare', async () => {
    await make({ apiKey: 'wrong', simulator: { seed: 3, unlimited: true, limits: { keys: { right: 'pro' } } } });
    await expect(world.open({ plan: null })).rejects.toThrow(ConfigurationError);
    expect(sent()).toEqual(['Bearer wrong', 'wrong']);
    // Also when the plan is given. A later attempt soon after gets the stored refusal.
    const refused =
      /refused the key \(upstream.test answered 403: .*\), sent as Bearer and bare; set CHANDLER_API_KEY to a key that is valid/;
    await expect(world.open({ plan: 'pro' })).rejects.toThrow(refused);
    await expect(world.open({ plan: 'pro' })).rejects.toThrow(
      /the answer of .*Z; the key is not tried again before .*Z/,
    );
    expect(sent()).toHaveLength(2);
    // A minute later, then four.
    for (const [minutes, requests] of [
      [1.1, 4],
      [1.1, 4],
      [3, 6],
    ] as const) {
      world.clock.advanceTo(world.clock.now() + minutes * 60_000);
      await expect(world.open({ plan: 'pro' })).rejects.toThrow(refused);
      expect(sent()).toHaveLength(requests);
    }
  });

  test('is sent again at once under another auth scheme, and the refusal is forgotten when the key is accepted', async () => {
    await make({
      apiKey: 'right',
      simulator: { seed: 3, unlimited: true, limits: { keys: { right: 'pro' }, scheme: 'bare' } },
    });
    await expect(world.open({ plan: null, authScheme: 'bearer' })).rejects.toThrow(ConfigurationError);
    await expect(world.open({ plan: null, authScheme: 'bearer' })).rejects.toThrow(/is not tried again before/);
    expect(sent()).toEqual(['Bearer right']);
    await world.open({ plan: null, authScheme: 'bare' });
    const [row] = await world.database.sql`select refused_at, refusals, refusal, plan from ops.account`;
    expect(row).toEqual({ refusedAt: null, refusals: 0, refusal: null, plan: 'pro' });
  });

  test('with one auth scheme only is sent once', async () => {
    await make({ apiKey: 'wrong', simulator: { seed: 3, unlimited: true, limits: { keys: {} } } });
    await expect(world.open({ plan: null, authScheme: 'bare' })).rejects.toThrow(
      /refused the key \(.*\), sent as CHANDLER_AUTH_SCHEME says; .*, set CHANDLER_AUTH_SCHEME to auto/,
    );
    expect(sent()).toEqual(['wrong']);
  });

  test('that is refused in the middle of a backfill ends it after few requests', async () => {
    await make({ apiKey: 'right', simulator: { seed: 3, unlimited: true, limits: { keys: { right: 'enterprise' } } } });
    const chandler = await world.open({ plan: null });
    upstream.script = (request) => (request.url.includes('ohlcv') ? says(403, 'invalid api key') : null);
    upstream.forget();
    const run = await chandler.backfill(WORK);
    expect(run.end).toMatchObject({ kind: 'configurationError', message: expect.stringContaining('CHANDLER_API_KEY') });
    expect(upstream.ohlcv().length).toBeLessThanOrEqual(4);
    const [row] = await world.database.sql<{ n: number }[]>`select count(*)::int as n from market.refusal`;
    expect(row!.n).toBe(0);
  });
});

test('a missing key, where the upstream wants one, is not called a wrong key', async () => {
  await make({});
  upstream.script = () => says(403, 'api key is required');
  await expect(world.open()).rejects.toThrow(
    /^the upstream answers only with a key \(.*api key is required\); set CHANDLER_API_KEY, or leave CHANDLER_BASE_URL out/,
  );
  expect(sent()).toEqual([null]);
});

describe('CHANDLER_AUTH_SCHEME=auto', () => {
  test('finds out that the upstream wants the bare key, remembers it, and never tries Bearer again', async () => {
    await make({
      apiKey: 'right',
      simulator: { seed: 3, unlimited: true, limits: { keys: { right: 'pro' }, scheme: 'bare' } },
    });
    const chandler = await world.open({ plan: null });
    expect(chandler.session.plan.name).toBe('pro');
    expect(sent().slice(0, 2)).toEqual(['Bearer right', 'right']);
    expect(
      sent()
        .slice(2)
        .every((how) => how === 'right'),
    ).toBe(true);
    const [saved] = await world.database.sql`select auth_scheme, plan, account_path from ops.account`;
    expect(saved).toEqual({ authScheme: 'bare', plan: 'pro', accountPath: '/users/me' });
    upstream.forget();
    await (await world.open({ plan: null })).backfill({ ...WORK, from: TODAY - 60 * DAY });
    expect(upstream.log.length).toBeGreaterThan(0);
    expect(new Set(sent())).toEqual(new Set(['right']));
    expect(JSON.stringify(await world.database.sql`select * from ops.account`)).not.toContain('right');
  });

  test('keeps Bearer where that works', async () => {
    await make({
      apiKey: 'right',
      simulator: { seed: 3, unlimited: true, limits: { keys: { right: 'pro' }, scheme: 'bearer' } },
    });
    await world.open({ plan: null });
    expect(new Set(sent())).toEqual(new Set(['Bearer right']));
    const [saved] = await world.database.sql`select auth_scheme from ops.account`;
    expect(saved).toEqual({ authScheme: 'bearer' });
  });

  test.each(['bearer', 'bare'] as const)(
    'tries the other scheme once when the remembered one is refused: %s is right',
    async (wanted) => {
      await make({
        apiKey: 'right',
        simulator: { seed: 3, unlimited: true, limits: { keys: { right: 'pro' }, scheme: wanted } },
      });
      await world.open({ plan: null });
      const remembered = wanted === 'bare' ? 'bearer' : 'bare';
      await world.database.sql`update ops.account set auth_scheme = ${remembered}, checked_at = null`;
      await world.database.sql`delete from market.coin`;
      upstream.forget();
      await world.open({ plan: null });
      const ways = { bearer: 'Bearer right', bare: 'right' };
      expect(sent()).toEqual([ways[remembered], ways[wanted], ways[wanted], ways[wanted]]);
      expect(await world.database.sql`select auth_scheme from ops.account`).toEqual([{ authScheme: wanted }]);
    },
  );

  test('sends two requests, not more, when both schemes are refused, and keeps the remembered scheme', async () => {
    await make({
      apiKey: 'right',
      simulator: { seed: 3, unlimited: true, limits: { keys: { right: 'pro' }, scheme: 'bare' } },
    });
    await world.open({ plan: null });
    upstream.forget();
    upstream.script = () => says(403, 'invalid api key');
    const run = await (await world.open({ plan: 'pro' })).backfill({ ...WORK, concurrency: 1, from: TODAY - 60 * DAY });
    expect(run.end).toMatchObject({
      kind: 'configurationError',
      message: expect.stringContaining('as Bearer and bare'),
    });
    expect(sent()).toEqual(['right', 'Bearer right']);
    expect(await world.database.sql`select auth_scheme from ops.account`).toEqual([{ authScheme: 'bare' }]);
  });

  test('does not try the other scheme when a single series is forbidden after the key has worked', async () => {
    await make({
      apiKey: 'right',
      simulator: { seed: 3, unlimited: true, limits: { keys: { right: 'pro' }, scheme: 'bare' } },
    });
    const chandler = await world.open({ plan: null });
    upstream.script = (request) => (request.url.includes('eth-ethereum/') ? says(403, 'not today') : null);
    upstream.forget();
    await chandler.backfill({ ...WORK, coins: ['btc-bitcoin'], from: TODAY - 60 * DAY });
    await chandler.backfill({ ...WORK, from: TODAY - 60 * DAY });
    expect(sent().length).toBeGreaterThan(1);
    expect(new Set(sent())).toEqual(new Set(['right']));
  });
});
