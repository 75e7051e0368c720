/** What the list of coins costs, request by request. */
import { afterEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import type { OutageRetry } from '../../../src/ingest/request/outage-retry.ts';
import { refreshCatalogue } from '../../../src/ingest/snapshot/coin-list.ts';
import { createSnapshots } from '../../../src/ingest/snapshot/snapshots.ts';
import { says } from '../../support/scripted.ts';
import { createScriptedWorld, TODAY } from '../../support/scripted-world.ts';
import type { World } from '../../support/world.ts';

let world: World | undefined;
afterEach(async () => {
  await world?.close();
});

async function open() {
  const scripted = await createScriptedWorld({ catalogue: false, speed: 50 });
  world = scripted.world;
  const { clock, database } = scripted.world;
  const { sql } = database;
  const { session } = await scripted.world.open();
  const deps = { sendRequest: session.sendRequest, sql, clock };
  const snapshots = createSnapshots({ ...deps, accountId: session.accountId });
  const paths = () => scripted.upstream.log.map(({ path }) => path.replace('/v1', ''));
  return { ...scripted, clock, sql, deps, snapshots, paths, quota: session.quota };
}

test('the list costs one request where the tickers were read recently, and two where they were not', async () => {
  const { deps, snapshots, clock, paths, upstream } = await open();
  expect(await refreshCatalogue(deps, 0, HOUR)).toMatchObject({ kind: 'read', requests: 2 });
  clock.advanceTo(TODAY + DAY);
  await snapshots.tickers();
  upstream.forget();
  clock.advanceTo(TODAY + DAY + HOUR / 2);
  expect(await refreshCatalogue(deps, 0, HOUR)).toMatchObject({ kind: 'read', requests: 1 });
  expect(paths()).toEqual(['/coins']);
  // The list was read, so it need not be read again.
  expect(await refreshCatalogue(deps, HOUR)).toEqual({ kind: 'fresh' });
  clock.advanceTo(TODAY + DAY + 2 * HOUR);
  expect(await refreshCatalogue(deps, 0, HOUR)).toMatchObject({ kind: 'read', requests: 2 });
});

test('a list that was committed before the connection was cut is not requested again, and is the same when it is stored twice', async () => {
  const { deps, sql, paths } = await open();
  expect(await refreshCatalogue(deps, 0)).toMatchObject({ kind: 'read' });
  const facts = () => sql`select id, name, rank, is_active, first_seen_at, first_data_at from market.coin order by id`;
  const before = await facts();
  const logged = paths().length;
  // Each attempt is committed, and its connection is cut before the answer of Postgres arrives.
  const retry: OutageRetry = async (work) => [await work(false), await work(true)][1]!;
  expect(await refreshCatalogue({ ...deps, retry }, 0)).toMatchObject({ kind: 'read', requests: 2 });
  expect(paths()).toHaveLength(logged + 2);
  expect(await sql`select endpoint, count(*) as fetches from ops.fetch group by 1 order by 1`).toEqual([
    { endpoint: 'coins', fetches: 2 },
    { endpoint: 'tickers', fetches: 2 },
  ]);
  expect(await facts()).toEqual(before);
});

test('the list is read after the probe of another process, however often this process looks meanwhile', async () => {
  const { deps, sql, clock, upstream, quota } = await open();
  for (let i = 0; i < 4; i++) await quota.unavailable({ sentAt: clock.now(), retryAfterMs: null, message: 'down' });
  // The probe of another process.
  clock.advanceTo(clock.now() + 1_000);
  expect(await quota.take({ class: 'scheduled', name: 'tickers' })).toMatchObject({ kind: 'granted' });
  const reading = refreshCatalogue(deps);
  const answered = clock.sleep(10_000).then(() => quota.answered({ sentAt: clock.now() }));
  expect(await reading).toMatchObject({ kind: 'read', requests: 2 });
  await answered;
  const attempts = await sql<{ attempt: number }[]>`select distinct attempt from ops.fetch`;
  expect(attempts.map(({ attempt }) => attempt)).toEqual([1]);
  expect(upstream.log).toHaveLength(2);
});

test('a stray 402 is followed by another request when no cache repeats it', async () => {
  const { deps, upstream, paths } = await open();
  let strays = 0;
  upstream.script = () =>
    strays++ === 0 ? says(402, 'Getting minute historical data is not allowed in this plan') : null;
  expect(await refreshCatalogue(deps)).toMatchObject({ kind: 'read', requests: 3 });
  expect(paths()).toEqual(['/tickers', '/tickers', '/coins']);
  const [first, second] = upstream.log;
  expect(second!.at - first!.at).toBeGreaterThanOrEqual(70_000);
});

test('a 402 whose text is unknown, with requests left, is requested less and less often', async () => {
  const { deps, upstream, clock } = await open();
  upstream.script = () => says(402, 'payment required');
  const end = clock.now() + 30 * DAY;
  while (clock.now() < end && upstream.log.length < 100) {
    const outcome = await refreshCatalogue(deps);
    if (outcome.kind !== 'held') throw new Error(`not held, but ${outcome.kind}`);
    clock.advanceTo(Math.max(outcome.until, clock.now() + 1_000));
  }
  expect(upstream.log.length).toBeGreaterThanOrEqual(30);
  expect(upstream.log.length).toBeLessThan(40);
  upstream.script = null;
  expect(await refreshCatalogue(deps)).toMatchObject({ kind: 'read' });
});

test('a 402 that says that the quota is used up holds the list until the day ends', async () => {
  const { deps, upstream, clock } = await open();
  upstream.script = () => says(402, 'you have reached maximum request limit');
  const dayEnd = (Math.floor(clock.now() / DAY) + 1) * DAY;
  const outcome = await refreshCatalogue(deps);
  if (outcome.kind !== 'held') throw new Error(`not held, but ${outcome.kind}`);
  expect(outcome.until).toBeGreaterThanOrEqual(dayEnd);
  expect(outcome.until).toBeLessThan(dayEnd + HOUR);
  expect(upstream.log).toHaveLength(1);
});

test('a list that is a tenth shorter is believed when the next answer is as short, and only then', async () => {
  const { deps, sql, upstream, clock, paths } = await open();
  expect(await refreshCatalogue(deps, 0)).toMatchObject({ kind: 'read' });
  let isShort = true;
  upstream.script = async (request, simulated) => {
    const answer = await simulated(request);
    if (!/\/coins$/.test(new URL(request.url).pathname) || !isShort) return answer;
    isShort = clock.now() > TODAY + 2 * DAY;
    const headers = new Headers(answer.headers);
    headers.delete('content-length');
    return new Response(JSON.stringify(((await answer.json()) as object[]).slice(0, 4)), { headers });
  };
  const claims = () => sql`select from ops.second_opinion where claim = 'short list'`;
  const read = async (at: number) => {
    clock.advanceTo(at);
    upstream.forget();
    expect(await refreshCatalogue(deps, 0)).toMatchObject({ kind: 'read' });
    return paths();
  };
  // The second answer is whole again: the short one was an accident.
  expect(await read(TODAY + DAY)).toEqual(['/tickers', '/coins', '/coins']);
  expect(await claims()).toHaveLength(0);
  isShort = true;
  expect(await read(TODAY + 3 * DAY)).toEqual(['/tickers', '/coins', '/coins']);
  // The short list is now a fact, so later ones are not implausible.
  expect(await read(TODAY + 4 * DAY)).toEqual(['/tickers', '/coins']);
  expect(await claims()).toHaveLength(0);
});
