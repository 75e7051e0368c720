import { afterAll, beforeAll, expect, test } from 'vitest';
import { leaseEnd } from '../../../src/store/work/lease.ts';
import { claimRun, endRun, latestRuns, renewRun } from '../../../src/store/work/schedule-run.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 16 });
});
afterAll(() => database.drop());

const T = Date.UTC(2026, 10, 21, 12);
const claim = (schedule: string, tick: number) =>
  claimRun(
    database.sql,
    { schedule, tick, owner: 'h:1', now: tick },
    (latest) => latest === null || latest.tick < tick,
  );

test('when several processes claim a tick at once, one gets it', async () => {
  for (let i = 0; i < 5; i++) {
    const claims = await Promise.all(Array.from({ length: 16 }, () => claim('a', T + i)));
    expect(claims.filter((run) => run !== null)).toHaveLength(1);
  }
});

test('a run is recorded as it proceeds, and runs older than a month are deleted', async () => {
  const { sql } = database;
  const first = (await claim('b', T))!;
  expect(first).toMatchObject({ state: 'running', attempts: 1, owner: 'h:1', begunAt: T, leaseUntil: leaseEnd(T) });
  await renewRun(sql, first.id, T + 10_000);
  expect((await latestRuns(sql, ['b', 'none']))[0]).toMatchObject({ tick: T, leaseUntil: leaseEnd(T + 10_000) });
  await endRun(
    sql,
    first,
    { state: 'held', message: `an upstream may say \0 ${'x'.repeat(1_000)}`, until: T + 60_000 },
    T + 1,
  );
  const [held] = await latestRuns(sql, ['b']);
  expect(held).toMatchObject({ state: 'held', attempts: 0, leaseUntil: null, waitUntil: T + 60_000, endedAt: T + 1 });
  expect(held?.message).toHaveLength(500);
  expect(held?.message).toContain('an upstream may say \ufffd xxx');

  const second = (await claim('b', T + 32 * 86_400_000))!;
  const states = () => sql<{ state: string }[]>`select state from ops.schedule_run where schedule = 'b' order by id`;
  expect((await states()).map((row) => row.state)).toEqual(['superseded', 'running']);
  await endRun(sql, second, { state: 'done' }, T);
  expect((await states()).map((row) => row.state)).toEqual(['done']);
});

test('a run that ends after a newer one began keeps the state that was recorded then', async () => {
  const { sql } = database;
  const slow = (await claim('c', T))!;
  const next = (await claim('c', T + 1))!;
  await endRun(sql, slow, { state: 'done' }, T + 2);
  const rows = await sql<{ state: string; message: string | null }[]>`
    select state, message from ops.schedule_run where schedule = 'c' order by id`;
  expect([...rows]).toEqual([
    { state: 'failed', message: 'its process ended in the middle of it' },
    { state: 'running', message: null },
  ]);
  expect((await latestRuns(sql, ['c']))[0]?.id).toBe(next.id);
});
