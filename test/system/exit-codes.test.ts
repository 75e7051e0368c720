/** What is left after a backfill, and its exit code, for real answers of the upstream. */
import { afterEach, expect, test } from 'vitest';
import { exitOf } from '../../src/cli/backfill/exit-of.ts';
import { DAY, settledUntil } from '../../src/core/interval.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { applyTracks } from '../../src/store/tracking/apply-track-rules.ts';
import { recordRenames } from '../../src/store/upkeep/rename.ts';
import { readRemaining } from '../../src/views/operations/remaining-slots.ts';
import { says } from '../support/scripted.ts';
import { TODAY } from '../support/scripted-world.ts';
import { until } from '../support/until.ts';
import { atBad, BAD, COIN, DAYS, make, rewriting, upstream, world } from './impossible.ts';

afterEach(() => world?.close());

const spoilt = rewriting((rows) => rows.map((row) => (atBad(row) ? { ...row, high: 1, low: 2 } : row)));
const stateOf = async (id: number) =>
  (await world.database.sql<{ state: string }[]>`select state from ops.backfill where id = ${id}`)[0]!.state;

test('a run requests a row again that is invalid once, and is complete', async () => {
  // In real time, so that a busy machine shows the wait of two seconds.
  await make({ speed: 1 });
  upstream.script = (...args) => (upstream.ohlcv().length < 2 ? spoilt(...args) : null);
  const shown: (string | undefined)[] = [];
  const chandler = await world.open();
  const run = await chandler.backfill({ ...DAYS, onProgress: ({ waiting }) => shown.push(waiting?.reason) });
  const [first, second, ...more] = upstream.ohlcv();
  expect(more).toEqual([]);
  expect(second!.at - first!.at).toBeGreaterThanOrEqual(2_000);
  expect(shown).toContain('invalid rows');
  expect([exitOf([run]), run.left, await stateOf(run.id)]).toEqual([0, [], 'done']);
});

test('a run requests a row that stays invalid twice more, leaves it to a later run, and says so with its exit code', async () => {
  // On a faster clock a stall of the machine between request and answer would be as long as the waits.
  await make({ speed: 4 });
  upstream.script = spoilt;
  const chandler = await world.open();
  const run = await chandler.backfill(DAYS);
  const asked = upstream.ohlcv().map(({ at }) => at);
  expect(asked).toHaveLength(3);
  expect(asked[1]! - asked[0]!).toBeGreaterThanOrEqual(2_000);
  expect(asked[2]! - asked[1]!).toBeGreaterThanOrEqual(5_000);
  expect(run.left).toEqual([
    { reason: 'malformed', fate: 'later', slots: 1, nextAskAt: expect.closeTo(asked[2]! + 2 * 60_000, -4) },
  ]);
  expect([exitOf([run]), await stateOf(run.id)]).toEqual([75, 'stopped']);
});

const NEW_COIN = { name: 'New', symbol: 'NEW', rank: 1, type: 'coin', is_new: false, is_active: true };

test('a run whose coin gets another id leaves the rest to a later run, and says so with its exit code', async () => {
  await make({ speed: 20 });
  const chandler = await world.open();
  const { sql } = world.database;
  let isRenamed = false;
  upstream.script = async (request, simulated) => {
    const answer = await simulated(request);
    if (isRenamed || upstream.ohlcv().length < 2) return answer;
    isRenamed = true;
    // What the service's freshness does meanwhile.
    const now = world.clock.now();
    await recordRenames(sql, [{ oldId: COIN, newId: 'new-coin', at: now }], 'changelog');
    await recordCoins(sql, [{ ...NEW_COIN, id: 'new-coin' }], now);
    expect(await applyTracks(sql, now)).toMatchObject({ moved: 1 });
    return answer;
  };
  const span = { from: TODAY - 300 * DAY, to: TODAY - 3 * DAY };
  const run = await chandler.backfill({ coins: [COIN], interval: '1h', ...span, concurrency: 1 });
  expect(run.left).toEqual([{ reason: 'not asked yet', fate: 'later', slots: expect.any(Number), nextAskAt: null }]);
  expect([exitOf([run]), await stateOf(run.id)]).toEqual([75, 'stopped']);
  const again = await chandler.backfill({ coins: ['new-coin'], interval: '1h', ...span });
  expect(again.planned).toBeGreaterThan(0);
});

test('a run does not request an invalid row again before the cache that repeats it forgets it', async () => {
  await make({ speed: 20 });
  upstream.script = async (...args) => {
    const response = await spoilt(...args)!;
    response.headers.set('age', '60');
    return response;
  };
  const run = await (await world.open()).backfill(DAYS);
  expect(upstream.ohlcv()).toHaveLength(1);
  expect(exitOf([run])).toBe(75);
  expect(run.left![0]!.nextAskAt! - upstream.ohlcv()[0]!.at).toBeGreaterThanOrEqual(9 * 60_000);
});

test('a row that is invalid in the last allowed answer is a failure, and no later run requests it', async () => {
  await make({ speed: 20 });
  upstream.script = spoilt;
  const chandler = await world.open();
  await chandler.backfill(DAYS);
  for (const minutes of [3, 21]) {
    world.clock.advanceTo(world.clock.now() + minutes * 60_000);
    await chandler.backfill(DAYS);
  }
  const last = await chandler.backfill(DAYS);
  expect(last.planned).toBe(0);
  expect(last.left).toEqual([{ reason: 'malformed', fate: 'failed', slots: 1, nextAskAt: null }]);
  expect([exitOf([last]), await stateOf(last.id)]).toEqual([1, 'failed']);
  // Without that row, the rest of the same series is complete.
  const beside = { coinIds: [COIN], quote: 'usd', interval: '24h', span: { from: BAD + DAY, to: DAYS.to } } as const;
  expect(
    await readRemaining(world.database.sql, {
      ...beside,
      settledUntil: settledUntil(TODAY, '24h'),
      openFrom: null,
      failed: [],
    }),
  ).toEqual([]);
});

test('slots that were too young when the run began do not count as work left', async () => {
  await make();
  const run = await (await world.open()).backfill({ ...DAYS, to: TODAY });
  expect(run.left).toMatchObject([{ reason: 'provisional', fate: 'too young' }]);
  expect([exitOf([run]), await stateOf(run.id)]).toEqual([0, 'done']);
});

test('a chunk whose every attempt failed is a failure, even if it was too young as well', async () => {
  // One request waits for another. None may time out meanwhile on a busy machine.
  await make({ speed: 10 });
  // The other two are answered between the failures of the third. Only so does the run know that this is no outage.
  let done = 0;
  let failed = 0;
  let others = 0;
  upstream.script = async (request, simulated) => {
    const url = request.url;
    if (!url.includes('/ohlcv')) return simulated(request);
    const isBroken = url.includes('eth-ethereum');
    const turn = Math.min(3, isBroken ? failed + 1 : others++);
    await until(() => (isBroken ? done : failed) >= turn);
    if (isBroken) failed++;
    return isBroken ? says(500, 'broken') : simulated(request);
  };
  const chandler = await world.open({ candlesPerRequest: 10 });
  const coins = [COIN, 'eth-ethereum', 'ltc-litecoin'];
  const onProgress = ({ chunksDone }: { chunksDone: number }) => {
    done = chunksDone;
  };
  const run = await chandler.backfill({ ...DAYS, coins, to: TODAY, onProgress });
  expect(run.left).toContainEqual({ reason: 'not asked yet', fate: 'failed', slots: 33, nextAskAt: null });
  expect(run.left!.map(({ fate }) => fate).sort()).toEqual(['failed', 'too young']);
  expect(exitOf([run])).toBe(1);
});

test('a span that the upstream refuses is reported as refused', async () => {
  await make();
  upstream.script = (request) => (request.url.includes('/ohlcv') ? says(404, 'id not found') : null);
  const run = await (await world.open()).backfill(DAYS);
  expect(run.left).toMatchObject([{ fate: 'refused', slots: 30 }]);
  expect([exitOf([run]), await stateOf(run.id)]).toEqual([1, 'failed']);
});
