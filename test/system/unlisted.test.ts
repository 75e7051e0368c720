import { afterEach, beforeEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import type { Script } from '../support/scripted.ts';
import { createScriptedWorld, NOW, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { Chandler } from '../support/world.ts';

/** The id of a coin before the upstream gave it another one. The upstream answers it with 200 and no rows, like any unknown id. */
const RENAMED = 'old-renamed';
const DAYS = { coins: [RENAMED], from: TODAY - 100 * DAY, to: TODAY - 3 * DAY };

let made: ScriptedWorld;
let chandler: Chandler;
beforeEach(async () => {
  made = await createScriptedWorld({ speed: 100 });
  const coin = {
    id: RENAMED,
    name: 'Old',
    symbol: 'OLD',
    rank: 5,
    type: 'coin',
    is_new: false,
    is_active: true,
  } as const;
  await recordCoins(made.world.database.sql, [coin], NOW - 30 * DAY);
  chandler = await made.world.open();
  made.upstream.forget();
});
afterEach(() => made.world.close());

const gaps = () => made.world.database.sql`select reason, slots::int, detail from market.gaps`;
const lists = () => made.upstream.log.filter((asked) => asked.path === '/v1/coins').length;
const wait = (ms: number) => made.world.clock.advanceTo(made.world.clock.now() + ms);

test('slots of a coin that is no longer listed never become empty, and cost one request a day', async () => {
  for (const asked of [1, 2, 2, 2, 3, 4]) {
    expect(await chandler.backfill(DAYS)).toMatchObject({ end: { kind: 'done' }, failed: [] });
    expect(made.upstream.ohlcv()).toHaveLength(asked);
    wait(asked < 2 ? 2 * HOUR : asked === 2 ? 10 * HOUR : DAY + HOUR);
  }
  expect(await gaps()).toEqual([
    { reason: 'unconfirmed', slots: 97, detail: expect.stringMatching(/list of coins does not have this one/) },
  ]);
  expect(await made.world.database.sql`select from market.series where covered <> '{}'`).toHaveLength(0);
});

/** The simulator's answers, with other rows in those to one path. */
const saying =
  (path: RegExp, change: (rows: object[]) => unknown[]): Script =>
  async (request, simulated) => {
    const answer = await simulated(request);
    if (!path.test(new URL(request.url).pathname)) return answer;
    const headers = new Headers(answer.headers);
    headers.delete('content-length');
    return new Response(JSON.stringify(change((await answer.json()) as object[])), { headers });
  };
const LISTED = { ...DAYS, coins: ['btc-bitcoin'] };

test('slots of a coin become empty after two empty answers once the list has it again', async () => {
  await chandler.backfill(DAYS);
  wait(2 * HOUR);
  made.upstream.script = saying(/\/coins$/, (coins) => [...coins, { ...coins[0], id: RENAMED }]);
  await chandler.backfill(DAYS);
  expect(lists()).toBe(1);
  expect(await gaps()).toEqual([]);
  expect(made.upstream.ohlcv()).toHaveLength(2);
});

test('the list of coins is read again only where a due second answer needs it', async () => {
  made.upstream.script = saying(/\/ohlcv/, () => []);
  await chandler.backfill(LISTED);
  await chandler.backfill(LISTED);
  expect(lists()).toBe(0);
  wait(2 * HOUR);
  await chandler.backfill(LISTED);
  expect(lists()).toBe(1);
  expect(await gaps()).toEqual([]);
  await chandler.backfill(LISTED);
  expect(lists()).toBe(1);
  expect(made.upstream.ohlcv()).toHaveLength(2);
});

test('a list of coins that cannot be read leaves the gap unconfirmed, and the run goes on', async () => {
  made.upstream.script = saying(/\/(ohlcv.*|coins)$/, () => []);
  await chandler.backfill(LISTED);
  wait(2 * HOUR);
  expect(await chandler.backfill(LISTED)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  expect(lists()).toBeGreaterThan(1);
  expect(await gaps()).toEqual([{ reason: 'unconfirmed', slots: 97, detail: null }]);
});
