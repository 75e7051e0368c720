/** Plans under which no daily candle becomes final within the history limit. The last full day comes from `/ohlcv/latest`. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { createScriptedWorld, type ScriptedWorld } from '../support/scripted-world.ts';

const MINUTE = 60_000;
const TODAY = Math.floor(Date.now() / DAY) * DAY - 30 * DAY;

let made: ScriptedWorld;
afterEach(() => made.world.close());

async function open(startAt: number, { latestTurnsAfterMs = 0, speed = 1 } = {}) {
  made = await createScriptedWorld({
    startAt,
    speed,
    plan: 'free',
    simulator: { seed: 3, coins: 8, unlimited: false, latestTurnsAfterMs },
  });
  const chandler = await made.world.open();
  made.upstream.forget();
  const coins = (await made.world.simulator.data.coins()).filter((coin) => coin.is_active).map((coin) => coin.id);
  return { chandler, coins: coins.slice(0, 4) };
}

const asked = () => made.upstream.ohlcv().map(({ path }) => /\/ohlcv\/(\w+)/.exec(path)![1]!);
const finals = () => made.world.database.sql<{ coinId: string; days: number[] }[]>`
  select coin_id, array_agg(open_time order by open_time) as days from market.candles where is_final group by 1 order by 1`;
async function differences(): Promise<string[]> {
  const found: string[] = [];
  for await (const proof of verifySeries(made.world.database.sql, {}, made.world.clock.now()))
    found.push(...proof.differences);
  return found;
}

test('one request a coin brings one final candle, and the days before are refused once', async () => {
  const { chandler, coins } = await open(TODAY + 12 * 60 * MINUTE);
  const span = { coins, from: TODAY - 365 * DAY, to: TODAY + DAY };
  const first = await chandler.backfill(span);
  expect(first).toMatchObject({ end: { kind: 'done' }, failed: [], planned: coins.length + 1 });
  expect(asked().sort()).toEqual(['historical', ...coins.map(() => 'latest')]);
  expect((await finals()).map(({ days }) => days)).toEqual(coins.map(() => [TODAY - DAY]));
  // It is the same candle as under a plan that shows more.
  for (const { coinId } of await finals()) {
    const question = { coinId, quote: 'usd', interval: '24h', from: TODAY - DAY, to: TODAY - DAY, limit: 1 } as const;
    const [truth] = (await made.world.simulator.data.ohlcv(question))!;
    const [stored] = await made.world.database
      .sql`select open, close from market.candles where coin_id = ${coinId} and is_final`;
    expect(stored).toEqual({ open: truth!.open, close: truth!.close });
  }
  made.upstream.forget();
  expect(await chandler.backfill(span)).toMatchObject({ end: { kind: 'done' }, planned: 0 });
  expect(asked()).toEqual([]);
  made.world.clock.advanceTo(TODAY + DAY + 30 * MINUTE);
  expect(await chandler.backfill({ ...span, to: TODAY + 2 * DAY })).toMatchObject({ end: { kind: 'done' } });
  expect((await finals()).map(({ days }) => days)).toEqual(coins.map(() => [TODAY - DAY, TODAY]));
  expect(await differences()).toEqual([]);
});

test('while the upstream is late with the last day, no request is sent about the other coins', async () => {
  const { chandler, coins } = await open(TODAY + 5 * MINUTE, { latestTurnsAfterMs: 40 * MINUTE });
  const span = { coins, from: TODAY - DAY, to: TODAY + DAY, concurrency: 1, maxWaitMs: 1_000 };
  const waiting = await chandler.backfill(span);
  expect(waiting.end).toMatchObject({ kind: 'stopped', reason: 'day is late' });
  expect(asked().filter((name) => name === 'latest')).toHaveLength(1);
  // The row of the day before is final, too.
  expect((await finals()).map(({ days }) => days)).toEqual([[TODAY - 2 * DAY]]);
  const late = () => made.world.database.sql`select from ops.second_opinion where claim = 'day is late'`;
  expect(await late()).toHaveLength(1);
  made.world.clock.advanceTo(TODAY + 41 * MINUTE);
  expect(await chandler.backfill(span)).toMatchObject({ end: { kind: 'done' } });
  // No wait for a late day is recorded any more.
  expect(await late()).toHaveLength(0);
  expect((await finals()).map(({ days }) => days.at(-1))).toEqual(coins.map(() => TODAY - DAY));
  expect(await differences()).toEqual([]);
});

test('a last full day whose row says that it has not closed is believed when a second answer agrees', async () => {
  // The second request follows 75 seconds after the first answer.
  const { chandler, coins } = await open(TODAY + 12 * 60 * MINUTE, { speed: 100 });
  const closesAt = new Date(TODAY - 9 * 60 * MINUTE).toISOString().replace('.000Z', 'Z');
  const latest = (path: string) => path.includes(coins[0]!) && path.includes('/latest');
  let told = 0;
  made.upstream.script = async (request, simulated) => {
    const answer = await simulated(request);
    if (!latest(new URL(request.url).pathname)) return answer;
    told++;
    const rows = (await answer.json()) as object[];
    const headers = new Headers(answer.headers);
    headers.delete('content-length');
    return Response.json(
      rows.map((row) => ({ ...row, time_close: closesAt })),
      { headers },
    );
  };
  expect(await chandler.backfill({ coins, from: TODAY - DAY, to: TODAY })).toMatchObject({ end: { kind: 'done' } });
  expect(told).toBe(2);
  const { sql } = made.world.database;
  expect(await sql`select message from ops.fetch where outcome = 'implausible'`).toEqual([
    { message: `the last full day says that it closes at ${new Date(closesAt).toISOString()}` },
  ]);
  expect((await finals()).map(({ days }) => days)).toEqual(coins.map(() => [TODAY - DAY]));
});

test('a backfill is complete although the open day is missing', async () => {
  // The views use the clock of the database.
  const now = Date.now();
  const today = Math.floor(now / DAY) * DAY;
  const { chandler, coins } = await open(now);
  const { end, left } = await chandler.backfill({ coins, from: today - DAY, to: today + DAY });
  expect(end).toEqual({ kind: 'done' });
  expect(left).toEqual([{ reason: 'not asked yet', fate: 'too young', slots: coins.length, nextAskAt: null }]);
});

test('the open day is not requested, whether the history limit was met or is only documented', async () => {
  const { chandler, coins } = await open(TODAY + 12 * 60 * MINUTE);
  const today = { coins, from: TODAY, to: TODAY + DAY };
  expect(await chandler.backfill(today)).toMatchObject({ end: { kind: 'done' }, planned: 0 });
  expect(asked()).toEqual([]);
  // The limit is met. Then the last day is stored and the open one is not.
  await chandler.backfill({ ...today, from: TODAY - 10 * DAY });
  made.upstream.forget();
  expect(await chandler.backfill(today)).toMatchObject({ end: { kind: 'done' }, planned: 0 });
  expect(asked()).toEqual([]);
});

test.each([1, 4])('a span of the last full day needs no probe, with %i requests at once', async (concurrency) => {
  const { chandler, coins } = await open(TODAY + 22 * 60 * MINUTE);
  const run = await chandler.backfill({ coins, from: TODAY - DAY, to: TODAY + DAY, concurrency });
  expect(run).toMatchObject({ end: { kind: 'done' }, planned: coins.length });
  expect(asked()).toEqual(coins.map(() => 'latest'));
  expect((await finals()).map(({ days }) => days)).toEqual(coins.map(() => [TODAY - DAY]));
});

test('the probe requests older missing days when the last day is missing too', async () => {
  const { chandler, coins } = await open(TODAY - DAY + 12 * 60 * MINUTE);
  await chandler.backfill({ coins: coins.slice(0, 1), from: TODAY - 2 * DAY, to: TODAY - DAY });
  made.world.clock.advanceTo(TODAY + 12 * 60 * MINUTE);
  made.upstream.forget();
  const span = { coins: coins.slice(0, 1), from: TODAY - 5 * DAY, to: TODAY + DAY };
  expect(await chandler.backfill(span)).toMatchObject({ end: { kind: 'done' }, planned: 2 });
  expect(asked()).toEqual(['historical', 'latest']);
});

const gapsOfDay = (day: number) => made.world.database.sql<
  { reason: string; detail: string | null; nextAskAt: number }[]
>`
  select reason, detail, next_ask_at from market.gaps where gap_from <= ${day} and gap_to > ${day} order by coin_id`;

test('the last full day is no gap beyond the history limit; while it is late, its gap says so and when it is requested', async () => {
  // The views use the clock of the database.
  const now = Date.now();
  const today = Math.floor(now / DAY) * DAY;
  const { chandler, coins } = await open(now, { latestTurnsAfterMs: DAY });
  const { sql } = made.world.database;
  const older = await chandler.backfill({ coins, from: today - 5 * DAY, to: today - 2 * DAY });
  expect(older.left).toMatchObject([{ reason: 'history limit', slots: 3 * coins.length }]);
  const span = { from: today - 5 * DAY, to: today + DAY };
  await wantSeries(sql, { coinIds: coins, interval: '24h', quote: 'usd', span, priority: 0 });
  expect(await gapsOfDay(today - DAY)).toEqual(
    coins.map(() => ({ reason: 'not asked yet', detail: null, nextAskAt: null })),
  );
  expect(new Set((await gapsOfDay(today - 2 * DAY)).map(({ reason }) => reason))).toEqual(new Set(['history limit']));

  const { end, left } = await chandler.backfill({ coins, ...span, concurrency: 1, maxWaitMs: 1_000 });
  expect(end).toMatchObject({ kind: 'stopped', reason: 'day is late' });
  const until = end.kind === 'stopped' ? end.until : 0;
  const detail = 'the upstream has not yet gone on to the day that ended last';
  expect(await gapsOfDay(today - DAY)).toEqual(
    coins.map(() => ({ reason: 'not asked yet', detail, nextAskAt: expect.closeTo(until, -4) })),
  );
  // It is not too young: it is final as soon as it arrives.
  expect(left).toContainEqual(expect.objectContaining({ reason: 'not asked yet', fate: 'later', slots: coins.length }));
  expect(left).toContainEqual(expect.objectContaining({ fate: 'too young', slots: coins.length }));
});
