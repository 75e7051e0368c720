/** How a backfill of the service ends: its state agrees with the exit code of the command. */
import { afterEach, expect, test } from 'vitest';
import { HOUR, MINUTE } from '../../../src/core/interval.ts';
import { createScripted, says } from '../../support/scripted.ts';
import { atBad, rewriting } from '../../system/impossible.ts';
import { become, closers, open, record, service, stateOf, until, world } from './backfill-runner.ts';

const COIN = 'btc-bitcoin';
const upstream = createScripted();

afterEach(async () => {
  upstream.script = null;
  upstream.forget();
  for (const close of closers.splice(0).reverse()) await close();
  await world?.close();
});

test('a backfill that needs second answers is queued until they are due, and then done', async () => {
  await open({ fetch: upstream.fetch });
  // The answer lacks the newest five days. That is an edge, so a second answer is needed.
  upstream.script = rewriting((rows) => rows.filter((row) => Date.parse(row.time_open) < Date.UTC(2026, 10, 13)));
  const id = await record([COIN]);
  // The run is shorter than the time between two heartbeats.
  const first = await service('a:1', { lookMs: 5 * MINUTE });
  await until(async () => expect(await stateOf(id)).toMatchObject({ state: 'queued', message: 'not final yet' }));
  // All that was planned is done.
  expect(await stateOf(id)).toMatchObject({ progress: 0.999, leftRequests: 0 });
  const { waitUntil, spent } = await stateOf(id);
  expect(waitUntil! - world.clock.now()).toBeGreaterThan(HOUR / 2);
  expect(waitUntil! - world.clock.now()).toBeLessThanOrEqual(HOUR);
  world.clock.advanceTo(waitUntil! + 1_000);
  const second = await service('a:2');
  await become(id, 'done');
  expect(await stateOf(id)).toMatchObject({ message: null, leftRequests: 0, spent: spent + 1 });
  await until(() =>
    expect([first, second].map(({ ends }) => ends.map(({ state }) => state))).toEqual([['queued'], ['done']]),
  );
  expect([...first.errors, ...second.errors]).toEqual([]);
});

test('a backfill of refused slots has failed, and says what is left', async () => {
  await open({ fetch: upstream.fetch });
  upstream.script = (request) => (request.url.includes(`${COIN}/ohlcv`) ? says(404, 'id not found') : null);
  const id = await record([COIN, 'eth-ethereum']);
  await service('a:1');
  await become(id, 'failed');
  expect((await stateOf(id)).message).toMatch(/^left: [\d,]+ slots unknown coin; \d chunks? refused, unknown coin: /);
});

test('a backfill with a row that stays invalid waits until the row is confirmed invalid, and then fails', async () => {
  await open({ fetch: upstream.fetch, speed: 20 });
  upstream.script = rewriting((rows) => rows.map((row) => (atBad(row) ? { ...row, high: 1, low: 2 } : row)));
  const id = await record([COIN]);
  const { ends } = await service('a:1');
  for (const waits of [1, 2]) {
    await until(() => expect(ends).toHaveLength(waits));
    expect(await stateOf(id)).toMatchObject({ state: 'queued', message: 'not final yet' });
    world.clock.advanceTo((await stateOf(id)).waitUntil! + 1_000);
  }
  await become(id, 'failed');
  // More requests would bring nothing.
  expect(await stateOf(id)).toMatchObject({ message: 'left: 1 slot malformed (failed)', leftRequests: 0 });
  await until(() => expect(ends.map(({ state }) => state)).toEqual(['queued', 'queued', 'failed']));
});

test('a service whose address is wrong leaves the backfills to others, and tries again after 1, 4, 16 … minutes', async () => {
  await open({ fetch: upstream.fetch });
  // The key tells which process asks.
  let isWrong = true;
  upstream.script = (request, simulated) => {
    if (request.headers.get('authorization') === null) return null;
    const isRefused = /\/(users\/me|key\/info)$/.test(request.url) || (isWrong && request.url.includes('/ohlcv'));
    if (!isRefused) return simulated(new Request(request.url));
    return Response.json({ message: 'no Route matched with those values' }, { status: 404 });
  };
  const ids = [await record([COIN]), await record(['eth-ethereum'])] as const;
  const wrong = await service('a:1', { apiKey: 'of-another-upstream' });
  const tried = async (times: number) => {
    await until(() => expect(wrong.ends).toHaveLength(times));
    expect(wrong.ends.at(-1)).toMatchObject({ id: ids[0], state: 'misconfigured' });
  };
  await tried(1);
  const message = expect.stringMatching(/^CHANDLER_BASE_URL does not answer like the market data API/);
  expect(await stateOf(ids[0])).toMatchObject({ state: 'queued', message, waitUntil: null });
  world.clock.advanceTo(world.clock.now() + MINUTE);
  await tried(2);
  const right = await service('b:2');
  for (const id of ids) await become(id, 'done');
  expect(right.begun).toEqual(ids);
  expect(wrong.begun).toEqual([ids[0], ids[0]]);
  // Its address is corrected, or the upstream is there now.
  await right.runner.stop();
  isWrong = false;
  const later = await record(['ltc-litecoin']);
  world.clock.advanceTo(world.clock.now() + 4 * MINUTE);
  await become(later, 'done');
  expect(wrong.errors).toEqual([]);
});
