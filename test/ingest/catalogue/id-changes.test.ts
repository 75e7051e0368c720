/** Renames from the changelog: what they cost, and that one history stays one. */
import { afterEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { readIdChanges } from '../../../src/ingest/catalogue/id-changes.ts';
import { withoutRetry } from '../../../src/ingest/request/outage-retry.ts';
import {
  changeBackfill,
  claimBackfill,
  type QueuedBackfill,
  queueBackfill,
} from '../../../src/store/backfill/backfill-queue.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { type Script, says } from '../../support/scripted.ts';
import { createScriptedWorld, NOW } from '../../support/scripted-world.ts';
import { seedSeries } from '../../support/warehouse.ts';
import type { World, WorldOptions } from '../../support/world.ts';

let world: World | undefined;
afterEach(async () => {
  await world?.close();
});

const at = (ms: number) => new Date(ms).toISOString().replace('.000', '');
const change = (n: number, changedAt: number) => ({
  currency_id: `new-${n}`,
  old_id: `old-${n}`,
  new_id: `new-${n}`,
  changed_at: at(changedAt),
});

/** Marked as from the simulator: one warehouse holds the data of one market only. */
const told: (body: (request: Request) => unknown) => Script = (body) => async (request, simulated) =>
  Response.json(body(request), { headers: (await simulated(request)).headers });

async function open(options: WorldOptions = {}) {
  const scripted = await createScriptedWorld(options);
  world = scripted.world;
  const { sql } = world.database;
  const { session } = await world.open();
  scripted.upstream.forget();
  // As if it had been tracked for a year.
  await sql`update market.coin set first_seen_at = ${NOW - 365 * DAY}`;
  const { signal } = new AbortController();
  const read = (retry = withoutRetry) =>
    readIdChanges({
      sendRequest: session.sendRequest,
      accountId: session.accountId,
      sql,
      clock: world!.clock,
      signal,
      retry,
    });
  const renames = () =>
    sql<{ id: string }[]>`select old_id || ' ' || new_id as id from market.coin_rename order by renamed_at`;
  return { ...scripted, sql, read, renames };
}

test('a series under an old id moves to the new id, for one request', async () => {
  const { sql, read, upstream } = await open();
  await seedSeries(sql, { coinId: 'btc-bitcoin-duplicate-1', interval: '1h', wanted: [], covered: [], candles: [] });
  const row = { ...change(1, NOW - DAY), old_id: 'btc-bitcoin-duplicate-1', new_id: 'btc-bitcoin' };
  upstream.script = told(() => [row]);
  expect(await read()).toEqual({ kind: 'done' });
  expect(upstream.log).toHaveLength(1);
  await applyTracks(sql, NOW);
  expect(await sql`select coin_id from market.series`).toEqual([{ coinId: 'btc-bitcoin' }]);
});

test('an answer that was committed before the connection was cut is not stored again', async () => {
  const { sql, read, renames, upstream } = await open();
  upstream.script = told(() => [change(1, NOW - DAY)]);
  // Each attempt is committed, and its connection is cut before the answer of Postgres arrives.
  expect(await read(async (work) => [await work(false), await work(true)][1]!)).toEqual({ kind: 'done' });
  expect(upstream.log).toHaveLength(1);
  expect(await sql`select outcome from ops.fetch where endpoint = 'changelog'`).toHaveLength(1);
  expect(await renames()).toEqual([{ id: 'old-1 new-1' }]);
});

test('backfills move along with the series, whatever their state; a running one is planned anew', async () => {
  const { sql, read, upstream } = await open();
  const [old, other] = ['btc-bitcoin-duplicate-1', 'eth-ethereum'];
  await seedSeries(sql, { coinId: old, interval: '1h', wanted: [], covered: [], candles: [] });
  const span = { from: NOW - 9 * DAY, to: NOW - 5 * DAY };
  const queue = (coinIds: readonly string[], more: Partial<QueuedBackfill> = {}) =>
    queueBackfill(sql, {
      ...{ coinIds, interval: '1h', quote: 'usd', span, requestedAt: NOW, spec: {}, plannedRequests: 1, priority: 0 },
      ...more,
    });
  await queue([other, old]);
  await queue([old, 'btc-bitcoin']);
  await queue([old], { interval: '24h' });
  await queue([other]);
  await queue([old], { priority: 5 });
  await claimBackfill(sql, { owner: 'a:1', now: NOW });
  await changeBackfill(sql, 2, 'cancel', NOW);
  upstream.script = told(() => [{ ...change(1, NOW - DAY), old_id: old, new_id: 'btc-bitcoin' }]);
  await read();
  await applyTracks(sql, NOW);
  expect(await sql`select coin_ids, state from ops.backfill order by id`).toEqual([
    { coinIds: [other, 'btc-bitcoin'], state: 'queued' },
    { coinIds: ['btc-bitcoin'], state: 'cancelled' },
    // It has no series of this interval, so nothing has moved.
    { coinIds: [old], state: 'queued' },
    { coinIds: [other], state: 'queued' },
    { coinIds: ['btc-bitcoin'], state: 'queued' },
  ]);
});

test('a series of the new id that has only evidence left is not removed in favour of the old one', async () => {
  const { sql, read, upstream } = await open();
  const span = [{ from: NOW - 9 * DAY, to: NOW - 5 * DAY }];
  const series = { interval: '24h' as const, wanted: span, covered: span, candles: [] };
  await seedSeries(sql, { ...series, coinId: 'btc-bitcoin-duplicate-1' });
  const kept = await seedSeries(sql, { ...series, coinId: 'btc-bitcoin' });
  await sql`select ops.uncover(${kept})`;
  upstream.script = told(() => [{ ...change(1, NOW - DAY), old_id: 'btc-bitcoin-duplicate-1', new_id: 'btc-bitcoin' }]);
  await read();
  await applyTracks(sql, NOW);
  const evidence = await sql`select kind from market.evidence where series_id = ${kept} order by number`;
  expect(evidence).toEqual([{ kind: 'adopted' }, { kind: 'mended' }]);
});

test('only the pages with new changes are requested, and either all of them count or none', async () => {
  const { read, renames, upstream, sql } = await open();
  // One change a day, the newest first: three and a half pages for the year.
  const log = Array.from({ length: 350 }, (_, n) => change(n, NOW - (n + 1) * DAY));
  const pageOf = (request: Request) => Number(new URL(request.url).searchParams.get('page'));
  const pages = told((request) => log.slice((pageOf(request) - 1) * 100, pageOf(request) * 100));
  upstream.script = (request, ...rest) => (pageOf(request) === 2 ? says(503, 'down') : pages(request, ...rest));
  await expect(read()).rejects.toThrow(/answered 503/);
  expect(await renames()).toHaveLength(0);
  upstream.script = pages;
  upstream.forget();
  await read();
  expect(upstream.log).toHaveLength(4);
  expect(await renames()).toHaveLength(350);
  upstream.forget();
  log.unshift(change(1_000, NOW));
  await read();
  expect(upstream.log).toHaveLength(1);
  expect((await renames()).at(-1)).toEqual({ id: 'old-1000 new-1000' });
  const [counted] = await sql`select month_spent::int as n from ops.quota_spent where name = 'renames'`;
  expect(counted).toEqual({ n: 7 });
});

test('an impossible row is quarantined, and holds up no other', async () => {
  const { read, renames, upstream, sql } = await open();
  const rows = [change(1, NOW + 9 * DAY), { ...change(2, NOW), changed_at: 'soon' }, change(3, NOW - DAY)];
  upstream.script = told(() => rows);
  await read();
  expect(await renames()).toEqual([{ id: 'old-3 new-3' }]);
  expect(await sql`select record_id, reason from market.quarantine order by id`).toEqual([
    { recordId: 'old-1', reason: 'changed in the future' },
    { recordId: 'old-2', reason: 'changed_at is not a time' },
  ]);
});

test('when the plan has no changelog, one request is sent, and the next one waits a day', async () => {
  const { read, upstream } = await open();
  upstream.script = () => says(403, 'not in this plan');
  expect(await read()).toMatchObject({ kind: 'held', until: expect.any(Number) });
  // The next tick may come earlier.
  expect(await read()).toMatchObject({ kind: 'held', reason: expect.stringContaining('was refused recently') });
  expect(upstream.log).toHaveLength(1);
  world!.clock.advanceTo(NOW + DAY + HOUR);
  upstream.script = told(() => [{ old_id: 'a' }]);
  await expect(read()).rejects.toThrow(/changelog\/ids: .*expected/);
});

test('the simulator has no changelog for the free plan, and says so as a history limit', async () => {
  const { read, sql, upstream } = await open({ simulator: { seed: 3, coins: 6, unlimited: false }, plan: 'free' });
  expect(await read()).toMatchObject({ kind: 'held', reason: expect.stringContaining('not allowed in this plan') });
  expect(upstream.log).toHaveLength(1);
  const [fetched] = await sql`select outcome, status from ops.fetch where endpoint = 'changelog'`;
  expect(fetched).toEqual({ outcome: 'history limit', status: 402 });
});

test('the simulator has a changelog', async () => {
  const { read, sql } = await open();
  expect(await read()).toEqual({ kind: 'done' });
  const [fetched] = await sql`select outcome, status from ops.fetch where endpoint = 'changelog'`;
  expect(fetched).toEqual({ outcome: 'stored', status: 200 });
});

test('the changes of a page are served, also older ones, and those of coins that nobody tracks', async () => {
  const { sql, read, upstream } = await open();
  const older = change(7, NOW - 900 * DAY);
  upstream.script = told(() => [change(1, NOW - DAY), older]);
  await read();
  const { createWarehouse } = await import('../../../src/views/market/warehouse.ts');
  const served = await createWarehouse({ sql, clock: world!.clock }).idChanges({ page: 1 });
  expect(served).toEqual([change(1, NOW - DAY), older]);
});
