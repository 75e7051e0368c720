/** Two runs that want the same: one process has begun the chunk, and the other waits for it. */
import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { exitOf } from '../../src/cli/backfill/exit-of.ts';
import { DAY } from '../../src/core/interval.ts';
import type { BackfillProgress } from '../../src/ingest/backfill/progress.ts';
import type { QueueEngine } from '../../src/ingest/queue/queue-engine.ts';
import { testRedisUrl } from '../support/database.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { Chandler, World } from '../support/world.ts';

const COIN = 'btc-bitcoin';
const SPAN = { coins: [COIN], from: TODAY - 33 * DAY, to: TODAY - 3 * DAY };

let world: World;
let upstream: ScriptedWorld['upstream'];
/** Lets the upstream answer the held requests. */
let answer: () => void;
afterEach(async () => {
  answer?.();
  await world?.close();
});

const engines: [string, QueueEngine | undefined][] = [['Postgres', undefined]];
const redisUrl = testRedisUrl();
if (redisUrl !== null) engines.push(['Redis', { kind: 'redis', url: redisUrl }]);

describe.each(engines)('of two runs that want the same, on %s,', (_, engine) => {
  /** The first run has sent its only request, and the upstream has not answered it yet. */
  async function firstHolds(): Promise<{
    readonly second: Chandler;
    readonly first: ReturnType<Chandler['backfill']>;
  }> {
    ({ world, upstream } = await createScriptedWorld({
      speed: 10,
      queueName: randomUUID(),
      ...(engine === undefined ? {} : { engine }),
    }));
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    upstream.script = (request, simulated) =>
      request.url.includes('/ohlcv') ? held.then(() => simulated(request)) : null;
    const [first, second] = [await world.open(), await world.open()];
    const run = first.backfill(SPAN);
    await vi.waitFor(() => expect(upstream.ohlcv()).toHaveLength(1), { timeout: 60_000 });
    return { second, first: run };
  }

  test('the second waits for the first, says so, and is complete with the answer of the first', async () => {
    const { second, first } = await firstHolds();
    const shown: BackfillProgress[] = [];
    const run = second.backfill({
      ...SPAN,
      maxWaitMs: 10 * 60_000,
      onProgress: (progress) => {
        shown.push(progress);
        if (progress.waiting?.reason === 'another process') answer();
      },
    });
    const [one, two] = await Promise.all([first, run]);
    expect(upstream.ohlcv()).toHaveLength(1);
    expect(shown.some(({ waiting }) => waiting?.reason === 'another process')).toBe(true);
    expect(shown.at(-1)!.waiting).toBeNull();
    for (const { end, left } of [one, two]) expect({ end, left }).toEqual({ end: { kind: 'done' }, left: [] });
    expect([one.totals!.requests, two.totals!.requests]).toEqual([1, 0]);
    expect([exitOf([one]), exitOf([two])]).toEqual([0, 0]);
  });

  test('the second stops when the wait exceeds --max-wait, and says what is left', async () => {
    const { second, first } = await firstHolds();
    const two = await second.backfill({ ...SPAN, maxWaitMs: 3_000 });
    expect(two.end).toMatchObject({ kind: 'stopped', reason: 'another process' });
    expect(two.left).toEqual([{ reason: 'not asked yet', fate: 'later', slots: 30, nextAskAt: null }]);
    expect(exitOf([two])).toBe(75);
    expect(two.tookMs).toBeGreaterThanOrEqual(3_000);
    answer();
    const one = await first;
    expect([exitOf([one]), one.left, upstream.ohlcv().length]).toEqual([0, [], 1]);
  });

  test('the second completes even when the first is interrupted', async () => {
    const { second, first } = await firstHolds();
    const stop = new AbortController();
    const third = await world.open();
    const interrupted = third.backfill({ ...SPAN, coins: ['eth-ethereum'], signal: stop.signal });
    await vi.waitFor(() => expect(upstream.ohlcv()).toHaveLength(2), { timeout: 60_000 });
    const run = second.backfill({
      ...SPAN,
      coins: ['eth-ethereum'],
      maxWaitMs: 10 * 60_000,
      onProgress: ({ waiting }) => {
        if (waiting?.reason !== 'another process') return;
        stop.abort();
        upstream.script = null;
        answer();
      },
    });
    const [, gone, two] = await Promise.all([first, interrupted, run]);
    expect(gone.end.kind).toBe('interrupted');
    expect([two.left, exitOf([two])]).toEqual([[], 0]);
  });

  test('a run that wants less does not report what only the other wants', async () => {
    const { first } = await firstHolds();
    const less = await world.open();
    // The queue has no chunk of this run, because its chunks begin elsewhere.
    upstream.script = null;
    const run = await less.backfill({ ...SPAN, from: SPAN.to - 5 * DAY });
    expect([run.end, run.left, exitOf([run])]).toEqual([{ kind: 'done' }, [], 0]);
    expect(await world.database.sql`select slots::int from market.gaps`).toEqual([{ slots: 25 }]);
    answer();
    expect(exitOf([await first])).toBe(0);
  });
});
