/** Several backfills want the same slots: one of them requests each slot, the slot counts once, and cancelled slots are not wanted. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { startBackfill } from '../../../src/store/backfill/backfill.ts';
import { changeBackfill } from '../../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import {
  answerAll,
  become,
  COINS,
  closers,
  holdingAfter,
  NOW,
  open,
  record,
  SPAN,
  service,
  stateOf,
  until,
  world,
} from './backfill-runner.ts';
import { audits, chandler, track } from './slot-owner.ts';

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await world?.close();
});

/** Missing slots of the span of these backfills. */
async function missing(): Promise<number> {
  const [row] = await world.database.sql<{ slots: number }[]>`
    select coalesce(sum(extract(epoch from least(gap_to, ${SPAN.to}) - gap_from) / 86400), 0)::int as slots
    from market.gaps where gap_from < ${SPAN.to}`;
  return row!.slots;
}

/** Slots that a request asked for although an earlier request had brought them. */
async function askedTwice(): Promise<number> {
  const [row] = await world.database.sql<{ n: number }[]>`
    select count(*)::int as n from ops.fetch a join ops.fetch b on a.series_id = b.series_id and a.id < b.id and a.span && b.span`;
  return row!.n;
}

test('the audit leaves out what an open or paused backfill of a person wants; once cancelled, it is not wanted any more', async () => {
  const audit = audits(await open(holdingAfter(2)));
  const id = await record(COINS);
  await track(COINS, SPAN.to);
  expect(await audit()).toEqual([]);
  const { ends } = await service('a:1');
  await until(async () => expect((await stateOf(id)).spent).toBeGreaterThan(1));
  expect(await audit()).toEqual([]);
  await chandler('backfills', 'pause', String(id));
  expect(await audit()).toEqual([]);
  const stored = await world.database.sql`select from market.candle`;
  expect(await chandler('backfills', 'cancel', String(id))).toMatch(/^Backfill 1 is cancelled\.\n/);
  expect(await audit()).toEqual([]);
  // Requests under way are counted when their answers come.
  answerAll();
  await until(() => expect(ends).toHaveLength(1));
  const asked = () => world.simulator.counters().requests.ohlcv;
  const { spent } = await stateOf(id);
  await world.clock.sleep(300);
  expect(await stateOf(id)).toMatchObject({ state: 'cancelled', spent });
  expect(asked()).toBe(spent);
  // The rules want what came since then. Nothing before that is a gap, and no candle is lost.
  expect(await missing()).toBe(0);
  expect((await world.database.sql`select from market.candle`).length).toBeGreaterThanOrEqual(stored.length);
  const [covered] = await world.database.sql<{ n: number }[]>`select sum(slots_covered)::int as n from market.coverage`;
  expect(covered!.n).toBeGreaterThan(0);
});

test('what a rule wants of a cancelled backfill becomes a backfill of its own at once, and the answer says so', async () => {
  const audit = audits(await open());
  const id = await record(COINS);
  await track(['btc-bitcoin'], SPAN.to - 800 * DAY);
  expect(await audit()).toEqual([]);
  const said = await chandler('backfills', 'cancel', String(id));
  expect(said).toMatch(
    /^Backfill 1 is cancelled\.\nThe rules of chandler track still want 43\d slots: backfill 2 will request them \(2 requests, priority -10\)\.\nTo stop that as well: chandler backfills cancel 2\n$/,
  );
  expect(await audit()).toEqual([]);
  expect(await stateOf(2)).toMatchObject({ state: 'queued', coins: 1, requestedBy: 'the audit of gaps' });
  // Nothing is wanted of the other two coins, and of this one only what the rule wants.
  expect(await missing()).toBe(800);
  const again = await chandler('backfills', 'cancel', '2');
  expect(again).toMatch(
    /^Backfill 2 is cancelled\.\nThe rules of chandler track still want \d+ slots of it\. Nothing requests/,
  );
  expect(await audit()).toEqual([]);
});

test('the answer names only slots of the cancelled backfill; the next audit finds what else the rules want', async () => {
  const audit = audits(await open());
  const id = await record(['btc-bitcoin']);
  await track(['btc-bitcoin', 'eth-ethereum'], SPAN.to - 800 * DAY);
  const said = await chandler('backfills', 'cancel', String(id));
  expect(said).toMatch(
    /^Backfill 1 is cancelled\.\nThe rules of chandler track still want 43\d slots: backfill 2 will request them \(2 requests, priority -10\)\.\nTo stop that as well: chandler backfills cancel 2\n$/,
  );
  expect(await audit()).toEqual([3]);
  expect(await world.database.sql`select coin_ids from ops.backfill where id > 1 order by id`).toEqual([
    { coinIds: ['btc-bitcoin'] },
    { coinIds: ['eth-ethereum'] },
  ]);
});

test('a cancelled backfill that is resumed is wanted again', async () => {
  await open();
  const id = await record(COINS);
  const before = await missing();
  expect(await chandler('backfills', 'cancel', String(id))).toBe(
    'Backfill 1 is cancelled.\nNone of its missing slots is wanted any more.\n',
  );
  expect(await missing()).toBe(0);
  await chandler('backfills', 'resume', String(id));
  expect(await missing()).toBe(before);
  await service('a:1');
  await become(id, 'done');
});

test('slots that two backfills want count for the first, and pass to the second when the first is cancelled', async () => {
  await open();
  const [first, second] = [await record(COINS), await record(COINS)];
  // As a command that records or changes a backfill does.
  await chandler('backfills', 'priority', String(second), '0');
  expect(await stateOf(second)).toMatchObject({ leftRequests: 0, message: 'another backfill' });
  expect(await chandler('backfills', 'list')).toContain('its missing slots belong to backfills before it');
  await chandler('backfills', 'priority', String(second), '5');
  expect(await stateOf(first)).toMatchObject({ leftRequests: 0, message: 'another backfill' });
  expect(await stateOf(second)).toMatchObject({ leftRequests: 9, message: null });
  expect(await chandler('backfills', 'cancel', String(second))).toBe(
    'Backfill 2 is cancelled.\nBackfill 1 wants some of the same slots, and will request them.\n',
  );
  expect(await stateOf(first)).toMatchObject({ leftRequests: 9, message: null });
  await service('a:1');
  await become(first, 'done');
  expect(await stateOf(first)).toMatchObject({ spent: 9 });
});

test('two services never request a slot twice for two backfills; the second is done when the first is', async () => {
  await open({ simulator: { seed: 5, coins: 12, latencyMs: 60 } });
  const { sql } = world.database;
  const first = await record(COINS);
  // Another span: its chunks would have other bounds, so the queue would treat them as other chunks.
  const span = { from: SPAN.from + 100 * DAY, to: SPAN.to - 50 * DAY };
  await sql`insert into ops.backfill (requested_at, state, spec, span, interval, quote, planned_requests, is_detached, coin_ids)
    select requested_at, state, spec, tstzrange(${span.from}, ${span.to}), interval, quote, 3, is_detached, coin_ids
    from ops.backfill where id = ${first}`;
  const services = [await service('a:1'), await service('b:2')];
  await become(first, 'done');
  await become(2, 'done');
  expect(await stateOf(first)).toMatchObject({ spent: 9 });
  expect(await stateOf(2)).toMatchObject({ spent: 0 });
  expect(await askedTwice()).toBe(0);
  expect(services.flatMap(({ errors }) => errors)).toEqual([]);
});

test('a running command owns what it was told to fetch: the audit and the backfills of the service leave that to it', async () => {
  const audit = audits(await open());
  const { sql } = world.database;
  const target = { coinIds: COINS, interval: '24h', quote: 'usd', span: SPAN } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  await startBackfill(sql, {
    ...target,
    requestedAt: NOW,
    startedAt: world.clock.now(),
    spec: {},
    plannedRequests: 9,
    owner: 'host:1',
  });
  await track(COINS, SPAN.from);
  expect(await audit()).toEqual([]);
  const id = await record(COINS);
  const { ends } = await service('a:1');
  await until(() => expect(ends).toMatchObject([{ id, state: 'queued', message: 'another backfill' }]));
  expect(await stateOf(id)).toMatchObject({ spent: 0, leftRequests: 0, progress: 0 });
  // Its process dies. Whichever process clears up wakes the backfills that waited for it.
  await sql`update ops.backfill set heartbeat_at = heartbeat_at - interval '1 hour' where not is_detached`;
  await sql`update ops.backfill set wait_until = null where id = ${id}`;
  await become(id, 'done');
  expect(await stateOf(id)).toMatchObject({ spent: 9 });
});

test('two backfills of the same slots that are cancelled at the same moment leave no wanted slots', async () => {
  await open(holdingAfter(0));
  const ids = [await record(COINS), await record(COINS)];
  const { sql } = world.database;
  expect(await missing()).toBeGreaterThan(0);
  let second: Promise<unknown> | undefined;
  await sql.begin(async (tx) => {
    await changeBackfill(tx, ids[0]!, 'cancel', NOW);
    second = changeBackfill(sql, ids[1]!, 'cancel', NOW);
    await until(async () => {
      const waiting =
        await sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      expect(waiting).toHaveLength(1);
    });
  });
  await second;
  expect(await missing()).toBe(0);
});
