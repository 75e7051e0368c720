/** How many permits a second the ledger can grant when no limit binds, compared with the cheapest shared counter. */
import { performance } from 'node:perf_hooks';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createQuota } from '../../src/quota/ledger.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const SECONDS = 2;
const ROUNDS = 2;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 32 });
  await database.sql`create table yardstick (id int primary key, n bigint not null) with (fillfactor = 10)`;
  await database.sql`insert into yardstick values (1, 0)`;
});
afterAll(() => database.drop());

type Result = { readonly perSecond: number; readonly p50: number; readonly p99: number };

async function measure(concurrency: number, work: () => Promise<unknown>): Promise<Result> {
  await Promise.all(Array.from({ length: concurrency * 8 }, work));
  const times: number[] = [];
  const started = performance.now();
  const until = started + SECONDS * 1000;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let before = performance.now(); before < until; before = performance.now()) {
        await work();
        times.push(performance.now() - before);
      }
    }),
  );
  const elapsed = performance.now() - started;
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? 0;
  return { perSecond: (times.length / elapsed) * 1000, p50: at(0.5), p99: at(0.99) };
}

it('grants at least 1,000 requests a second when no limit binds', async () => {
  // Limits that exist and never bind: the statement does all of its work.
  const quota = createQuota({
    sql: database.ledger,
    clock: systemClock,
    accountId: 'bench',
    limits: { perMonth: 1e12, perDay: 1e12, perSecond: 1e6 },
    reserved: () => ({ day: 6, month: 180 }),
    useDatabaseClock: true,
    random: () => 0,
  });
  const take = async () => {
    const answer = await quota.take({ class: 'backfill', name: 'backfill 1' });
    if (answer.kind !== 'granted') throw new Error(`denied: ${answer.reason}`);
  };
  const count = () => database.sql`update yardstick set n = n + 1 where id = 1`;
  const [server] = await database.sql<{ version: string; fsync: string; sync: string }[]>`
    select current_setting('server_version') as version, current_setting('fsync') as fsync,
      current_setting('synchronous_commit') as sync`;
  const lines = [`Postgres ${server!.version}, fsync ${server!.fsync}, synchronous_commit ${server!.sync}`];
  let best = 0;
  for (const concurrency of [1, 8, 32]) {
    // In turns, best of each: other load on the machine affects both.
    let takes: Result | null = null;
    let yardstick: Result | null = null;
    for (let round = 0; round < ROUNDS; round++) {
      yardstick = better(yardstick, await measure(concurrency, count));
      takes = better(takes, await measure(concurrency, take));
    }
    const show = (r: Result) => `${r.perSecond.toFixed(0)}/s (p50 ${r.p50.toFixed(2)} ms, p99 ${r.p99.toFixed(2)} ms)`;
    const ratio = (takes!.perSecond / yardstick!.perSecond).toFixed(2);
    lines.push(`${concurrency} at once: takes ${show(takes!)}, one-row UPDATE ${show(yardstick!)}, ratio ${ratio}`);
    best = Math.max(best, takes!.perSecond);
  }
  console.info(lines.join('\n'));
  expect(best).toBeGreaterThanOrEqual(1000);
});

function better(a: Result | null, b: Result): Result {
  return a !== null && a.perSecond >= b.perSecond ? a : b;
}
