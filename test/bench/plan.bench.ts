/** Planning for the largest number of series, and running again when nothing is missing. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { planOf } from '../../src/contract/plan/plans.ts';
import { DAY } from '../../src/core/interval.ts';
import { runBackfill } from '../../src/ingest/backfill/backfill.ts';
import { planBackfill } from '../../src/ingest/backfill/plan.ts';
import { readLearnedLimits } from '../../src/ingest/limits/learned-limits.ts';
import { topCoins } from '../../src/store/snapshot/coin.ts';
import { ensureBuilt } from '../support/build.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { openChunkQueue } from '../support/queues.ts';
import { runMeasured, startSimulator } from './measured-cli.ts';
import { makeSeriesOf } from './prepared.ts';
import { median, spread, table, thousands, timed, verdict } from './rounds.ts';

const SERIES = 50_000;
const COVERED_SERIES = 1_000;
const ROUNDS = 3;
const TO = Date.UTC(2025, 6, 1);
const SPAN = { from: Date.UTC(2015, 6, 1), to: TO };
const SLOTS = (SPAN.to - SPAN.from) / DAY;
const CHUNKS = Math.ceil(SLOTS / 366);
const NOW = TO + 30 * DAY;

type Planned = {
  readonly ms: number;
  readonly rssMb: number;
  readonly coins: number;
  readonly coinsWithGaps: number;
  readonly requests: number;
  readonly slots: number;
};

let dist: string;
let database: TestDatabase;
beforeAll(async () => {
  dist = await ensureBuilt();
  database = await createTestDatabase({ max: 2 });
  const coinIds = Array.from({ length: SERIES }, (_, i) => `coin-${i}`);
  await makeSeriesOf(database.sql, coinIds, '24h', SPAN);
});
afterAll(() => database?.drop());

function planAlone(): Planned {
  const script = fileURLToPath(new URL('plan-process.mjs', import.meta.url));
  const args = [script, dist, database.url, String(SPAN.from), String(SPAN.to), String(NOW)];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`planning ended with ${status}: ${stderr}`);
  return JSON.parse(stdout) as Planned;
}

function report(title: string): Planned {
  const rounds = Array.from({ length: ROUNDS }, planAlone);
  const seconds = rounds.map((r) => r.ms / 1000);
  const megabytes = rounds.map((r) => r.rssMb);
  const last = rounds.at(-1)!;
  console.info(
    table(`planning ${thousands(SERIES)} series × ten years of daily candles, ${title}, median of ${ROUNDS}`, [
      ['requests planned', `${thousands(last.requests)} of ${thousands(last.coinsWithGaps)} series`],
      ['seconds (< 10)', `${spread(seconds)} ${verdict(median(seconds) < 10)}`],
      ['largest resident size (< 300 MB)', `${spread(megabytes, 0)} MB ${verdict(median(megabytes) < 300)}`],
    ]),
  );
  return last;
}

it('plans 50,000 series of which everything is missing', () => {
  const planned = report('all missing');
  expect(planned).toMatchObject({
    coins: SERIES,
    coinsWithGaps: SERIES,
    requests: SERIES * CHUNKS,
    slots: SERIES * SLOTS,
  });
  expect(planned.rssMb).toBeLessThan(300);
});

it('plans 50,000 series half covered, with holes, pending edges and refusals', async () => {
  const { sql } = database;
  const day = (n: number) => SPAN.from + n * DAY;
  // A fifth is complete, a fifth untouched; the others have their newer half, with a hole every hundred days or none.
  const newer = { from: day(Math.floor(SLOTS / 2)), to: TO };
  const holes = Array.from({ length: 18 }, (_, i) => day(Math.floor(SLOTS / 2) + 60 + i * 100));
  const holed = [newer.from, ...holes.map((at) => at + DAY)].map((from, i) => ({ from, to: holes[i] ?? TO }));
  await sql`update market.series s set covered = case id % 5
      when 0 then ${[SPAN]}::tstzmultirange when 1 then '{}'
      when 2 then ${[newer]}::tstzmultirange else ${holed}::tstzmultirange end`;
  await sql`update market.coin set first_data_at = ${day(400)} where right(id, 1) = '7'`;
  await sql`insert into ops.second_opinion (series_id, span, claim, answers, requested_at, retry_at)
    select id, tstzrange(${day(0)}, ${day(30)}), 'unconfirmed', 1,
      ${NOW - DAY}::timestamptz, ${NOW + DAY}::timestamptz from market.series where id % 5 = 3`;
  await sql`insert into market.refusal (account_plan, series_id, span, reason, message, refused_at)
    select 'enterprise', id, '(,)', 'unknown coin', 'no such coin', ${NOW}::timestamptz from market.series where id % 100 = 1`;
  await sql`analyze market.series, ops.second_opinion, market.refusal`;
  const planned = report('half covered');
  expect(planned.coinsWithGaps).toBe(SERIES * 0.8 - SERIES / 100);
  expect(planned.rssMb).toBeLessThan(300);
});

it('requests nothing when 1,000 series are covered, in under a second', async () => {
  const covered = await createTestDatabase({ max: 10 });
  const simulator = await startSimulator(COVERED_SERIES * 2);
  try {
    const env = { DATABASE_URL: covered.url, CHANDLER_BASE_URL: simulator.baseUrl };
    const unlimited = ['MONTHLY_REQUESTS', 'DAILY_REQUESTS', 'REQUESTS_PER_SECOND'];
    const free = Object.fromEntries(unlimited.map((name) => [`CHANDLER_${name}`, 'unlimited']));
    const which = ['--top', `${COVERED_SERIES}`, '--start', '2015-07-01', '--end', '2025-07-01'];
    // Reads the catalogue, so that later commands need not.
    await runMeasured(['plan', ...which], { ...env, ...free });
    const coinIds = (await topCoins(covered.sql, COVERED_SERIES)).map((coin) => coin.id);
    const { sql } = covered;
    expect(coinIds).toHaveLength(COVERED_SERIES);
    await makeCovered(covered, coinIds);
    const [asked] = await sql<{ n: number }[]>`select count(*)::int as n from ops.fetch`;

    const commands: number[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      const { code, ms, err } = await runMeasured(['backfill', ...which, '--yes'], { ...env, ...free });
      if (code !== 0) throw new Error(`the backfill ended with ${code}: ${err}`);
      commands.push(ms / 1000);
    }
    const { planning, running } = await runInside(covered, coinIds);
    const inside = planning.map((ms, i) => (ms + running[i]!) / 1000);
    console.info(
      table(`a second run over ${thousands(coinIds.length)} covered series, median of ${ROUNDS}`, [
        ['planning', `${spread(planning, 0)} ms`],
        ['the run: series wanted, backfill written down, a pass of the refill', `${spread(running, 0)} ms`],
        ['both, in one process (< 1 s)', `${spread(inside)} s ${verdict(median(inside) < 1)}`],
        ['the whole command, starting Node included', `${spread(commands)} s`],
      ]),
    );
    const [askedThen] = await sql<{ n: number }[]>`select count(*)::int as n from ops.fetch`;
    expect(askedThen!.n).toBe(asked!.n);
  } finally {
    await simulator.stop();
    await covered.drop();
  }
});

async function makeCovered({ sql }: TestDatabase, coinIds: readonly string[]): Promise<void> {
  await sql`insert into market.series (coin_id, quote, interval, wanted, covered)
    select id, 'usd', '24h', ${[SPAN]}::tstzmultirange, ${[SPAN]}::tstzmultirange
    from unnest(${coinIds as string[]}::text[]) id`;
}

/** The command stops after the plan when nothing is missing; this goes through the run as well. */
async function runInside({ sql, url }: TestDatabase, coinIds: readonly string[]) {
  const plan = planOf('enterprise');
  const target = { coinIds, quote: 'usd', interval: '24h', span: SPAN } as const;
  const historyLimits = await readLearnedLimits(sql, systemClock, plan);
  const queue = await openChunkQueue({
    engine: { kind: 'postgres', url },
    onError: (error) => {
      throw error;
    },
  });
  const planning: number[] = [];
  const running: number[] = [];
  try {
    for (let i = 0; i <= ROUNDS; i++) {
      const now = systemClock.now();
      const options = { sql, target, now, askedSince: now, plan, historyLimit: historyLimits.of('24h') };
      const planMs = await timed(() => planBackfill(options));
      const planned = await planBackfill(options);
      const runMs = await timed(() =>
        runBackfill(
          {
            sql,
            clock: systemClock,
            queue,
            historyLimits,
            plan,
            owner: 'bench:1',
            circuitBreaker: (ingestChunk) => ingestChunk,
            ingestChunk: () => Promise.reject(new Error('there is nothing to ask')),
          },
          {
            target,
            spec: {},
            planned,
            startedAt: now,
            concurrency: 8,
            maxWaitMs: 0,
            signal: new AbortController().signal,
            onProgress: () => undefined,
          },
        ),
      );
      // The first round warms up.
      if (i === 0) continue;
      planning.push(planMs);
      running.push(runMs);
    }
  } finally {
    await queue.close();
  }
  return { planning, running };
}
