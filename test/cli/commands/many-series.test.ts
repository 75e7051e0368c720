/** With very many series, no command that a person waits for looks at each of them. Told by the rows that Postgres read, not by time. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countWhenDue } from '../../../src/background/service/counting.ts';
import { systemClock } from '../../../src/clock.ts';
import { DAY } from '../../../src/core/interval.ts';
import { countSeriesNow } from '../../../src/views/operations/status.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { makeManySeries, SERIES_OF_A_COIN } from '../../support/many-series.ts';
import { type CliResult, runCli } from '../../support/program.ts';

const COINS = 600;
const SERIES = COINS * SERIES_OF_A_COIN;
/** Whether there are many is known after so many. */
const MANY = 20_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 4 });
  await makeManySeries(database.sql, { coins: COINS, requests: 1_000 });
});
afterAll(() => database?.drop());

type Read = { readonly series: number; readonly tracked: number };

/** Rows of tables that were read since the last call; a process tells its own when it ends. */
async function readSince(before: Read): Promise<Read> {
  const now = await readRows();
  return { series: now.series - before.series, tracked: now.tracked - before.tracked };
}

async function readRows(): Promise<Read> {
  const [row] = await database.sql<Read[]>`
    select sum(n) filter (where relname = 'series')::float8 as series, sum(n) filter (where relname = 'tracked')::float8 as tracked
    from (
      select relname, seq_tup_read as n from pg_stat_user_tables
      union all
      select relname, idx_tup_read from pg_stat_user_indexes
    ) t`;
  return row!;
}

async function run(...args: string[]): Promise<CliResult & { readonly read: Read }> {
  const before = await readRows();
  const result = await runCli(args, { DATABASE_URL: database.url });
  expect(result).toMatchObject({ code: 0 });
  return { ...result, read: await readSince(before) };
}

test('status shows what the service counted, and when', async () => {
  const { sql } = database;
  const live = await run('status', '--json');
  expect(JSON.parse(live.out)).toMatchObject({ countedAt: null });

  expect(await countWhenDue({ clock: systemClock, database })).toBe(true);
  // Of several services one counts, and not before it is due.
  expect(await countWhenDue({ clock: systemClock, database })).toBe(false);
  const saved = await run('status', '--json');
  const status = JSON.parse(saved.out);
  // Once for the coins that have series: what the schedules need.
  expect(saved.read.series).toBeLessThanOrEqual(MANY + 1 + SERIES);
  expect(saved.read.series).toBeLessThan(live.read.series / 2);
  expect(saved.read.tracked).toBeLessThan(live.read.tracked);
  expect(Date.now() - Date.parse(status.countedAt)).toBeLessThan(DAY);
  const { series, tiers } = await countSeriesNow(sql, Date.parse(status.countedAt));
  const shown = (rows: readonly { readonly interval: string }[]) => JSON.parse(JSON.stringify(rows));
  expect(status.tiers).toEqual(shown(tiers));
  expect(status.series.map((one: { slotsCovered: number }) => one.slotsCovered)).toEqual(
    series.map((one) => one.slotsCovered),
  );
  expect((await run('status')).out).toMatch(
    /\nNote: series, ages and requests were counted .* ago; .* the service counts them/,
  );

  // Nobody has counted for long: then no service runs, and the figures are those of now.
  await sql`update ops.counted set counted_at = counted_at - interval '1 day'`;
  expect(JSON.parse((await run('status', '--json')).out)).toMatchObject({ countedAt: null });
});

test('gaps with a limit reads what it shows, and says that it did not count the others', async () => {
  const { out, read } = await run('gaps', '--limit', '50');
  expect(read.series).toBeLessThanOrEqual(MANY + 200);
  expect(out.split('\n').filter((line) => /^c\d+-coin-/.test(line))).toHaveLength(50);
  expect(out).toMatch(
    /50 gaps shown\. There are too many series to count all gaps at once: .*--all shows and counts every gap/,
  );
  // Of a few series all gaps are counted, as always.
  const few = await run('gaps', 'c1-coin-1', '--limit', '5');
  expect(few.out).toMatch(/ gaps \(5 shown; --all shows every one\): [\d,]+ slots not asked yet/);
});

test('backfills list sums the requests of a backfill from an index alone', async () => {
  const { sql } = database;
  const { out } = await run('backfills', 'list');
  expect(out).toMatch(/1 +running .* 500 /);
  const plan = await sql.begin(async (tx) => {
    await tx`set local enable_seqscan = off`;
    await tx`set local enable_bitmapscan = off`;
    return tx`explain select spent, stored from ops.backfill_progress where id = 1`;
  });
  expect(plan.map((row) => row['QUERY PLAN']).join('\n')).toContain('Index Only Scan using fetch_of_backfill');
});

test('what each process reads every minute is counted once', async () => {
  const { read } = await run('quota');
  expect(read.series).toBeLessThan(2 * SERIES);
});
