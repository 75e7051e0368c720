/** The window of chunks in the queue, while other processes work them off without telling the refill. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { DAY } from '../../../src/core/interval.ts';
import { createRefill, type Refill, type RefillDeps } from '../../../src/ingest/backfill/refill.ts';
import { type ChunkJob, chunkJobId } from '../../../src/ingest/queue/chunk-job.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createVirtualClock, type VirtualClock } from '../../support/virtual-clock.ts';

const NOW = Date.UTC(2026, 10, 18, 12);
const COINS = Array.from({ length: 20 }, (_, i) => `c${i}-coin`);
const PER_COIN = 100;
const TOTAL = COINS.length * PER_COIN;
const SPAN = { from: NOW - 0.5 * DAY - PER_COIN * DAY, to: NOW - 0.5 * DAY };
const WINDOW = 1024;
const STEP_MS = 50;
const TARGET = { coinIds: COINS, quote: 'usd', interval: '24h', span: SPAN } as const;

let database: TestDatabase;
let clock: VirtualClock;
/** The queued chunks, in their order. */
let queue: Map<string, ChunkJob>;
let added: number;
let gone: ChunkJob[];
let refill: Refill;
let stop: AbortController;
let run: Promise<void>;
let isOver: boolean;

beforeEach(async () => {
  database = await createTestDatabase({ max: 2 });
  const { sql } = database;
  const coins = COINS.map((id, i) => ({
    id,
    name: id,
    symbol: `C${i}`,
    rank: i + 1,
    is_new: false,
    is_active: true,
    type: 'coin',
  }));
  await recordCoins(sql, coins, NOW);
  await wantSeries(sql, { ...TARGET, priority: 0 });
  clock = createVirtualClock(NOW);
  queue = new Map();
  added = 0;
  gone = [];
  isOver = false;
  stop = new AbortController();
  refill = makeRefill();
  run = refill.run(stop.signal).finally(() => {
    isOver = true;
  });
});
afterEach(async () => {
  stop.abort();
  await run;
  await database.drop();
});

function makeRefill(own: Partial<RefillDeps> = {}): Refill {
  return createRefill({
    sql: database.sql,
    clock,
    queue: {
      add: async (jobs) => {
        for (const job of jobs) queue.set(chunkJobId(job), job);
        added += jobs.length;
      },
      ids: async () => new Set(queue.keys()),
      begunIds: async () => new Set(),
      unpause: async () => undefined,
    },
    target: TARGET,
    backfillId: 1,
    priority: 0,
    requestedSince: NOW,
    plan: { name: 'enterprise', candlesPerRequest: 1 },
    historyLimits: { of: () => ({ kind: 'open' }) },
    retry: (work) => work(false),
    window: WINDOW,
    checkEveryMs: 2_000,
    onGone: (job) => gone.push(job),
    onGivenUp: () => undefined,
    onDueAgain: () => undefined,
    isOwn: () => false,
    onHeldElsewhere: () => undefined,
    ...own,
  });
}

/** Lets time pass until the refill waits for time; each of its statements is answered. */
async function settled(): Promise<void> {
  do await systemClock.sleep(1);
  while (clock.sleepers() === 0 && !isOver);
}

/** The first chunks of the queue, stored at once and removed from it. */
async function taken(count: number): Promise<readonly ChunkJob[]> {
  const jobs = [...queue.values()].slice(0, count);
  await cover(jobs);
  for (const job of jobs) queue.delete(chunkJobId(job));
  return jobs;
}

async function cover(jobs: readonly ChunkJob[]): Promise<void> {
  if (jobs.length > 0)
    await database.sql`
      update market.series s set covered = s.covered + done.spans
      from (
        select series_id, range_agg(span) as spans
        from unnest(${jobs.map((job) => job.seriesId)}::int[], ${jobs.map(({ from, to }) => ({ from, to }))}::tstzrange[])
          as job (series_id, span)
        group by series_id
      ) done where s.id = done.series_id`;
}

/**
 * Virtual time passes in which this many chunks a second are taken, each `mine`th of them by this process. Resolves to how often there were
 * too few.
 */
async function workOff(perSecond: number, mine: number): Promise<number> {
  let dry = 0;
  let [owed, count] = [0, 0];
  await settled();
  while (count < TOTAL) {
    owed += (perSecond * STEP_MS) / 1000;
    const wanted = Math.floor(owed);
    owed -= wanted;
    if (queue.size < wanted && added < TOTAL) dry++;
    for (const job of await taken(wanted)) if (++count % mine === 0) refill.ended(job, 'done');
    clock.advance(STEP_MS);
    await settled();
  }
  return dry;
}

describe('the window of a backfill', () => {
  test.each([
    ['100 a second, a tenth of them here', 100, 10],
    ['200 a second, a tenth of them here', 200, 10],
    ['500 a second, a tenth of them here', 500, 10],
    ['200 a second, none of them here', 200, Number.POSITIVE_INFINITY],
  ])('never runs dry while there is more to request: %s', async (_, perSecond, mine) => {
    expect(await workOff(perSecond, mine)).toBe(0);
    expect(added).toBe(TOTAL);
    // The refill soon notices the last of them, and begins the next pass.
    for (let waited = 0; !isOver; waited += STEP_MS) {
      expect(waited).toBeLessThanOrEqual(2_000);
      clock.advance(STEP_MS);
      await settled();
    }
    expect(gone.length).toBe(TOTAL - Math.floor(TOTAL / mine));
  });

  test('requests wiped chunks in the next pass, and does not count them as done before', async () => {
    await settled();
    const { size } = queue;
    queue.clear();
    while (added === size) {
      clock.advance(STEP_MS);
      await settled();
    }
    expect(gone).toEqual([]);
    await workOff(1_000, 10);
    while (!isOver) {
      clock.advance(STEP_MS);
      await settled();
    }
    expect(added).toBe(TOTAL + size);
    expect(gone.length).toBe(TOTAL - TOTAL / 10);
  });
});

describe('a chunk that never gets done', () => {
  const FEW = 10;
  /** No chunk may come more often: a run that does not give a chunk up is stopped here. */
  const FAR_TOO_OFTEN = 20;

  /** How often each chunk of one coin is queued. One chunk ends as `how` says whenever it is taken. */
  async function runWith(how: 'done' | 'failed', leavesFirst = false) {
    stop.abort();
    await run;
    const over = new AbortController();
    const asked = new Map<string, number>();
    const givenUp: string[] = [];
    const span = { from: SPAN.to - FEW * DAY, to: SPAN.to };
    const isStubborn = ({ to }: ChunkJob) => to > SPAN.to - 4 * DAY && to <= SPAN.to - 3 * DAY;
    const few = makeRefill({
      target: { ...TARGET, coinIds: COINS.slice(0, 1), span },
      queue: {
        add: async (jobs) => {
          await cover(jobs.filter((job) => !isStubborn(job)));
          for (const job of jobs) {
            const times = (asked.get(chunkJobId(job)) ?? 0) + 1;
            asked.set(chunkJobId(job), times);
            if (times >= FAR_TOO_OFTEN) over.abort();
            if (leavesFirst && times === 1) few.ended(job, 'done');
            few.ended(job, isStubborn(job) ? how : 'done');
          }
        },
        ids: async () => new Set(),
        begunIds: async () => new Set(),
        unpause: async () => undefined,
      },
      onGivenUp: (job) => givenUp.push(chunkJobId(job)),
    });
    await few.run(over.signal);
    const times = [...asked.values()].sort((a, b) => a - b);
    return { times, givenUp, stubborn: [...asked].find(([, count]) => count > 1)?.[0] };
  }

  test('although it ends well is given up in this run after it was queued four times, and the run ends', async () => {
    const { times, givenUp, stubborn } = await runWith('done');
    expect(times).toEqual([...Array(FEW).fill(1).slice(1), 4]);
    expect(givenUp).toEqual([stubborn]);
  });

  test('because it failed for good is not queued again in this run', async () => {
    const { times, givenUp } = await runWith('failed');
    expect(times).toEqual(Array(FEW).fill(1));
    expect(givenUp).toEqual([]);
  });

  test('and left the window before its failure was reported is queued once more', async () => {
    const { times } = await runWith('failed', true);
    expect(times).toEqual([...Array(FEW).fill(1).slice(1), 2]);
  });
});
