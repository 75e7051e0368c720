/**
 * Holes are reported once, and confirmed with quota that is left over: false holes are found, true holes are reported twice, and no other
 * spender lacks a request.
 */
import { afterEach, describe, expect, test } from 'vitest';
import { readHoleAllowance } from '../../src/budget.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { withoutRetry } from '../../src/ingest/request/outage-retry.ts';
import { createConfirmHoles } from '../../src/ingest/tracking/confirm-holes.ts';
import type { Reserved } from '../../src/quota/quota.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { createScriptedWorld, NOW, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { Chandler, WorldOptions } from '../support/world.ts';
import { readHoles, without } from './confirm-holes.ts';

const COINS = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'];
const FROM = TODAY - 703 * DAY;
const TARGET = { coins: COINS, from: FROM, to: TODAY - 3 * DAY };
const dayOf = (at: number) => Math.round((at - FROM) / DAY);
/** Some in a row, and some alone. */
const isTrueHole = (at: number) => [50, 51, 52, 300, 600].includes(dayOf(at));
const isLie = (at: number) => [53, 100, 101, 400, 650].includes(dayOf(at));

let made: ScriptedWorld;
afterEach(() => made?.world.close());

/** A world whose backfill has met true and false holes. From then on the upstream tells the truth. */
async function open(options: WorldOptions = {}, target = TARGET): Promise<Chandler> {
  made = await createScriptedWorld(options);
  const { world, upstream } = made;
  let lies = true;
  upstream.script = async (request, simulated) => {
    const answer = await simulated(request);
    if (!request.url.includes('/ohlcv')) return answer;
    return without(answer, (at) => isTrueHole(at) || (lies && isLie(at)));
  };
  const chandler = await world.open();
  expect(await chandler.backfill(target)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  lies = false;
  upstream.forget();
  return chandler;
}

function scheduleOf({ session }: Chandler, reserved: Reserved = { day: 0, month: 0 }) {
  const { clock, database } = made.world;
  const { sql } = database;
  const { plan, historyLimits, ingestChunk, quota } = session;
  const allowance = () => readHoleAllowance(sql, { quota, reserved: () => reserved });
  const run = createConfirmHoles({ sql, clock, plan, historyLimits, ingestChunk, allowance });
  const { signal } = new AbortController();
  return { allowance, run: () => run({ tick: clock.now(), attempt: 1, signal, retry: withoutRetry }) };
}
const holes = () => readHoles(made.world.database.sql);
const spent = async ({ session }: Chandler) =>
  (await session.quota.spenders()).find(({ name }) => name === 'confirm_holes')?.month ?? 0;
async function expectSound(): Promise<void> {
  for await (const proof of verifySeries(made.world.database.sql, {}, made.world.clock.now()))
    expect(proof.differences).toEqual([]);
}

describe('the schedule confirm_holes', () => {
  test('reopens and stores false holes with a revision and evidence; true ones are confirmed and never requested again', async () => {
    const chandler = await open();
    const { clock, database, simulator } = made.world;
    const { sql } = database;
    expect(await holes()).toEqual({ once: 30, twice: 0 });
    const { run } = scheduleOf(chandler);

    // Too early: a cache may still repeat the first answer.
    expect(await run()).toEqual({ kind: 'done' });
    expect(made.upstream.ohlcv()).toHaveLength(0);

    clock.advanceTo(NOW + 2 * HOUR);
    const before = simulator.counters().requests.ohlcv;
    expect(await run()).toEqual({ kind: 'done' });
    expect(await holes()).toEqual({ once: 0, twice: 15 });
    // The holes of a series lie within 602 days, which takes two requests for each series.
    expect(made.upstream.ohlcv()).toHaveLength(6);
    expect(simulator.counters().requests.ohlcv - before).toBe(6);
    expect(await spent(chandler)).toBe(6);

    const revisions = await sql<{ coin: string; at: number; reason: string; wasEmpty: boolean; kind: string }[]>`
      select s.coin_id as coin, r.open_time as at, r.reason, r.was_empty, e.kind
      from market.revision r join market.series s on s.id = r.series_id
      join market.evidence_steps e on e.series_id = r.series_id and e.number = r.step and e.slots @> r.open_time
      order by 1, 2`;
    expect(revisions.map((row) => ({ ...row }))).toEqual(
      COINS.flatMap((coin) =>
        [53, 100, 101, 400, 650].map((n) => ({
          coin,
          at: FROM + n * DAY,
          reason: 'late answer',
          wasEmpty: true,
          kind: 'answer',
        })),
      ),
    );
    await expectSound();

    made.upstream.forget();
    clock.advanceTo(NOW + 60 * DAY);
    expect(await run()).toEqual({ kind: 'done' });
    expect(made.upstream.ohlcv()).toHaveLength(0);
  });

  test('never sends more than a twentieth of the month, and goes on in the next one', async () => {
    const chandler = await open({ limits: { perMonth: 240 } });
    const { clock } = made.world;
    const { session } = chandler;
    // With so few candles a request, the holes take six requests for each coin.
    const { run, allowance } = scheduleOf({
      ...chandler,
      session: { ...session, plan: { ...session.plan, candlesPerRequest: 7 } },
    });
    clock.advanceTo(NOW + 2 * HOUR);
    await run();
    // 17.6 of the month's 30 days are over.
    expect(made.upstream.ohlcv()).toHaveLength(7);
    expect(await allowance()).toMatchObject({ share: 12, spent: 7, allowed: 0, waitsFor: 'share' });
    await run();
    expect(made.upstream.ohlcv()).toHaveLength(7);
    clock.advanceTo(Date.UTC(2026, 10, 30, 23));
    await run();
    expect(made.upstream.ohlcv()).toHaveLength(11);
    expect(await spent(chandler)).toBe(11);
    expect((await holes()).once).toBeGreaterThan(0);
    clock.advanceTo(Date.UTC(2026, 11, 1, 1));
    await run();
    expect(made.upstream.ohlcv()).toHaveLength(11);
    clock.advanceTo(Date.UTC(2026, 11, 30));
    await run();
    expect(await holes()).toEqual({ once: 0, twice: 15 });
    expect(await spent(chandler)).toBe(7);
  });

  test('sends nothing when the schedules need the rest, when the month is used up, and while a backfill is open', async () => {
    const chandler = await open({ limits: { perMonth: 400 } });
    const { clock, database } = made.world;
    clock.advanceTo(NOW + 2 * HOUR);
    const short = scheduleOf(chandler, { day: 0, month: 360 });
    await short.run();
    expect(await short.allowance()).toMatchObject({ allowed: 0, waitsFor: 'quota' });
    const { run, allowance } = scheduleOf(chandler);
    const target = {
      coinIds: COINS,
      interval: '24h',
      quote: 'usd',
      span: { from: TARGET.from, to: TARGET.to },
    } as const;
    const id = await queueBackfill(database.sql, {
      ...target,
      requestedAt: NOW,
      spec: {},
      plannedRequests: 5,
      priority: 0,
    });
    await run();
    expect(await allowance()).toMatchObject({ allowed: 0, waitsFor: 'backfills' });
    // A backfill of a command counts as open as long as its process lives.
    await database.sql`
      update ops.backfill set state = 'running', is_detached = false, owner = 'host:1', started_at = ${NOW}, heartbeat_at = ${clock.now()}
      where id = ${id}`;
    expect(await allowance()).toMatchObject({ waitsFor: 'backfills' });
    await database.sql`update ops.backfill set heartbeat_at = ${clock.now() - HOUR}`;
    expect(await allowance()).toMatchObject({ waitsFor: null });
    await database.sql`update ops.backfill set state = 'done'`;
    await database.sql`update ops.quota set month_spent = 400`;
    await run();
    expect(await allowance()).toMatchObject({ allowed: 0, waitsFor: 'quota' });
    expect(made.upstream.ohlcv()).toHaveLength(0);
    expect(await holes()).toEqual({ once: 30, twice: 0 });
  });

  test('does not request holes that the plan does not show any more', async () => {
    const chandler = await open();
    const { clock } = made.world;
    clock.advanceTo(NOW + 2 * HOUR);
    // Only days 600 and 650 lie within. The candle before day 600 is the last slot that counts.
    const depthMs = clock.now() - (FROM + 599 * DAY) + HOUR;
    await chandler.session.historyLimits.learn('24h', { depthMs, skewMs: 0, message: 'no further', fetchId: null });
    await scheduleOf(chandler).run();
    expect(made.upstream.ohlcv()).toHaveLength(3);
    expect(await holes()).toEqual({ once: 24, twice: 3 });
  });

  test.each([503, 200])(
    'goes on with the other coins when one always fails (%i), and requests that coin again a day later',
    async (status) => {
      const chandler = await open();
      const { clock } = made.world;
      const { session } = chandler;
      // With so few candles a request, the holes take six requests for each coin.
      const { run } = scheduleOf({
        ...chandler,
        session: { ...session, plan: { ...session.plan, candlesPerRequest: 7 } },
      });
      const truthful = made.upstream.script!;
      made.upstream.script = (request, ...rest) =>
        request.url.includes(COINS[0]!) ? Response.json({ error: 'broken' }, { status }) : truthful(request, ...rest);
      const broken = () => made.upstream.ohlcv().filter(({ coin }) => coin === COINS[0]).length;
      clock.advanceTo(NOW + 2 * HOUR);
      expect(await run()).toEqual({ kind: 'done' });
      expect(broken()).toBe(2);
      expect(await holes()).toEqual({ once: 10, twice: 10 });
      clock.advanceTo(NOW + 20 * HOUR);
      expect(await run()).toEqual({ kind: 'done' });
      expect(broken()).toBe(2);

      made.upstream.script = truthful;
      clock.advanceTo(NOW + 9 * DAY);
      await run();
      expect(await holes()).toEqual({ once: 0, twice: 15 });
      await expectSound();
    },
  );

  test('fails when several coins fail in a row: the upstream is down', async () => {
    const chandler = await open();
    const { clock } = made.world;
    made.upstream.script = async () => Response.json({ error: 'down' }, { status: 503 });
    clock.advanceTo(NOW + 2 * HOUR);
    await expect(scheduleOf(chandler).run()).rejects.toThrow('down');
    expect(made.upstream.ohlcv()).toHaveLength(3);
    expect(await holes()).toEqual({ once: 30, twice: 0 });
  });

  test('retries after a week when an answer decides nothing; an implausible answer changes nothing', async () => {
    const chandler = await open({}, { ...TARGET, coins: [COINS[0]!] });
    const { clock, database } = made.world;
    const truth = await database.sql`select * from market.candle order by open_time`;
    const truthful = made.upstream.script;
    made.upstream.script = async (request, simulated) => {
      const answer = await simulated(request);
      if (!request.url.includes('/ohlcv')) return answer;
      const rows = (await answer.json()) as Record<string, unknown>[];
      const headers = new Headers(answer.headers);
      headers.delete('content-length');
      return Response.json(
        rows.map((row) => ({ ...row, open: 0, high: 0, low: 0, close: 0 })),
        { headers },
      );
    };
    const { run } = scheduleOf(chandler);
    clock.advanceTo(NOW + 2 * HOUR);
    await run();
    expect(made.upstream.ohlcv()).toHaveLength(2);
    expect(await database.sql`select * from market.candle order by open_time`).toEqual(truth);
    expect(await holes()).toEqual({ once: 10, twice: 0 });
    await expectSound();
    made.upstream.script = truthful;
    clock.advanceTo(NOW + 6 * DAY);
    await run();
    expect(made.upstream.ohlcv()).toHaveLength(2);
    clock.advanceTo(NOW + 8 * DAY);
    await run();
    expect(made.upstream.ohlcv()).toHaveLength(4);
    expect(await holes()).toEqual({ once: 0, twice: 5 });
    expect(await database.sql`select from ops.second_opinion where series_id is not null`).toHaveLength(0);
  });
});

test('confirms holes all over one answer with the next answer that agrees', async () => {
  // The oldest stretch has a candle only every second day. The newer ones have no hole.
  const thin = (at: number) => dayOf(at) < 200 && dayOf(at) % 2 === 1;
  made = await createScriptedWorld({ speed: 300 });
  const { world, upstream } = made;
  upstream.script = async (request, simulated) => {
    const answer = await simulated(request);
    return request.url.includes('/ohlcv') ? without(answer, thin) : answer;
  };
  const chandler = await world.open();
  const target = { ...TARGET, coins: ['btc-bitcoin'] };
  expect(await chandler.backfill(target)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  expect((await holes()).once).toBe(100);
  const { run } = scheduleOf(chandler);
  upstream.forget();
  world.clock.advanceTo(world.clock.now() + DAY);
  await run();
  expect(await holes()).toEqual({ once: 0, twice: 100 });
  expect(upstream.ohlcv()).toHaveLength(1);
  await expectSound();
});
