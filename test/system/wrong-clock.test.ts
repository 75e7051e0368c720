import { afterEach, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { fill } from '../support/fill.ts';
import type { Script } from '../support/scripted.ts';
import { createScriptedWorld, NOW, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { WorldOptions } from '../support/world.ts';

const MINUTE = 60_000;
const COIN = 'btc-bitcoin';

let made: ScriptedWorld;
afterEach(async () => {
  for await (const proof of verifySeries(made.world.database.sql, {}, made.world.clock.now()))
    expect(proof.differences).toEqual([]);
  await made.world.close();
});

/** The simulator's answers like those of an upstream whose clock differs from ours, or of a cache. `rows` is what they contain. */
function answering(headers: (now: number) => Record<string, string>, rows: 'all' | 'none' = 'all'): Script {
  return async (request, simulated, clock) => {
    const answer = await simulated(request);
    const all = new Headers(answer.headers);
    all.delete('content-length');
    for (const [name, value] of Object.entries(headers(clock.now()))) all.set(name, value);
    const isOhlcv = request.url.includes('/ohlcv');
    const body = isOhlcv && rows === 'none' ? '[]' : await answer.text();
    return new Response(body, { status: answer.status, headers: all });
  };
}
const behindUs = (minutes: number) => (now: number) => ({ date: new Date(now - minutes * MINUTE).toUTCString() });

async function open(options: WorldOptions, script: Script) {
  made = await createScriptedWorld(options);
  made.upstream.script = script;
  return made.world.open({ candlesPerRequest: 40 });
}

const gaps = () =>
  made.world.database.sql`select reason, sum(slots)::int as slots from market.gaps group by 1 order by 1`;

describe.each([
  ['ahead of', 90],
  ['behind', -90],
])('with our clock 90 minutes %s the upstream’s', (_, minutes) => {
  const DAYS = { coins: [COIN], from: TODAY - 100 * DAY, to: TODAY - 3 * DAY };

  test('empty answers cost one request a chunk and run, and the second run confirms them', async () => {
    const chandler = await open({}, answering(behindUs(minutes), 'none'));
    const first = await chandler.backfill(DAYS);
    expect(first).toMatchObject({ end: { kind: 'done' }, failed: [], planned: 3 });
    expect(made.upstream.ohlcv()).toHaveLength(3);
    expect(await gaps()).toMatchObject([{ reason: 'unconfirmed', slots: 97 }]);
    expect(await chandler.backfill(DAYS)).toMatchObject({ planned: 0 });

    made.world.clock.advanceTo(made.world.clock.now() + HOUR + MINUTE);
    expect(await chandler.backfill(DAYS)).toMatchObject({ end: { kind: 'done' }, failed: [], planned: 3 });
    expect(made.upstream.ohlcv()).toHaveLength(6);
    expect(await gaps()).toEqual([]);
  });

  test('slots that have not settled are requested once a run, and become complete', async () => {
    const now = { coins: [COIN], interval: '1h', from: NOW - 30 * HOUR, to: NOW } as const;
    const chandler = await open({}, answering(behindUs(minutes)));
    expect(await chandler.backfill(now)).toMatchObject({ end: { kind: 'done' }, failed: [] });
    expect(made.upstream.ohlcv()).toHaveLength(1);
    expect(await gaps()).toMatchObject([{ reason: 'provisional' }]);
    expect(await fill(made.world, chandler, now)).toBeLessThanOrEqual(5);
    expect(await gaps()).toEqual([]);
  });

  test('an impossible row is requested five times in all, three of them by the first run', async () => {
    const chandler = await open({ speed: 20 }, async (request, simulated, clock) => {
      const answer = await answering(behindUs(minutes))(request, simulated, clock);
      if (!request.url.includes('/ohlcv')) return answer!;
      const rows = (await answer!.json()) as { time_open: string; high: number; low: number }[];
      const [bad] = rows.filter((row) => Date.parse(row.time_open) === TODAY - 50 * DAY);
      if (bad) Object.assign(bad, { high: 1, low: 2 });
      return Response.json(rows, { headers: answer!.headers });
    });
    const { planned } = await chandler.backfill(DAYS);
    expect(made.upstream.ohlcv()).toHaveLength(planned + 2);
    await fill(made.world, chandler, DAYS);
    expect(made.upstream.ohlcv()).toHaveLength(planned + 4);
    expect(await gaps()).toMatchObject([{ reason: 'malformed', slots: 1 }]);
  });
});

test('answers ten minutes old, just after midnight, cost one request a run, and the day is complete soon after', async () => {
  const days = { coins: [COIN], from: TODAY - 30 * DAY, to: TODAY };
  // By our clock, five minutes after the day before yesterday has settled.
  const chandler = await open(
    { startAt: TODAY + 5 * MINUTE },
    answering(() => ({ age: '600' })),
  );
  expect(await chandler.backfill(days)).toMatchObject({ end: { kind: 'done' }, failed: [], planned: 1 });
  expect(made.upstream.ohlcv()).toHaveLength(1);
  expect(await gaps()).toMatchObject([{ reason: 'provisional', slots: 2 }]);
  // The cache would repeat the same answer.
  expect(await chandler.backfill(days)).toMatchObject({ planned: 0 });
  made.world.clock.advanceTo(TODAY + 11 * MINUTE);
  expect(await chandler.backfill(days)).toMatchObject({ planned: 1 });
  expect(await gaps()).toMatchObject([{ reason: 'provisional', slots: 1 }]);
  made.world.clock.advanceTo(TODAY + DAY + 11 * MINUTE);
  expect(await chandler.backfill(days)).toMatchObject({ planned: 1 });
  expect(made.upstream.ohlcv()).toHaveLength(3);
  expect(await gaps()).toEqual([]);
});
