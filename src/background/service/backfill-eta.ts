/** When the service's backfills will be done: each after those that go before it, holds included. */
import type { App } from '../../app.ts';
import { readQuota } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { WINDOW } from '../../ingest/backfill/backfill-runner.ts';
import type { Session } from '../../ingest/session.ts';
import { forecastEachFrom } from '../../quota/forecast.ts';
import { type OpenBackfill, readOpenBackfills, saveFinishes } from '../../store/work/backfill-queue.ts';

/** The ETA of a running backfill with `left` requests to go; null when no limit slows it, because its speed is then unknown. */
export async function readEta(app: App, session: Session, id: number, left: number): Promise<Instant | null> {
  const open = await readOpenBackfills(app.database.sql);
  const mine = open.find((backfill) => backfill.id === id);
  const beside = mine === undefined ? 0 : workBeside({ ...mine, left }, open);
  const [finishAt] = await etasOf(app, session, [beside + left]);
  return finishAt!;
}

/** Saves the ETA of each queued backfill; a running one saves its own. */
export async function saveQueuedEtas(app: App, session: Session): Promise<void> {
  const { sql } = app.database;
  const open = await readOpenBackfills(sql);
  if (open.every(({ isRunning }) => isRunning)) return;
  let work = 0;
  const queued = open.flatMap((backfill) => {
    work += backfill.left;
    return backfill.isRunning ? [] : [{ ...backfill, work }];
  });
  const finishes = await etasOf(
    app,
    session,
    queued.map((backfill) => backfill.work),
  );
  await saveFinishes(
    sql,
    queued.map(({ id, waitUntil }, i) => {
      const finishAt = finishes[i]!;
      return { id, finishAt: finishAt === null ? null : Math.max(finishAt, waitUntil ?? 0) };
    }),
  );
}

/**
 * The requests of other backfills before a running one is done: all of the more urgent ones, and of those that run beside it with the
 * same priority as many as its own, because they take turns, plus what they have in the queue already.
 */
function workBeside(mine: OpenBackfill, open: readonly OpenBackfill[]): number {
  return open.reduce((sum, { id, priority, isRunning, left }) => {
    if (priority > mine.priority) return sum + left;
    const takesTurns = id !== mine.id && priority === mine.priority && isRunning;
    return takesTurns ? sum + Math.min(left, mine.left + WINDOW) : sum;
  }, 0);
}

/** When each of these numbers of requests will be done, from now on. */
async function etasOf(app: App, session: Session, ascending: readonly number[]): Promise<readonly (Instant | null)[]> {
  const { state, reserved } = await readQuota(app, session);
  return forecastEachFrom(state, ascending, { limits: session.limits, reserved }).map(
    ({ finishAt, bindingWindow }, i) =>
      // No window limits it: its speed is that of the upstream, which is unknown.
      bindingWindow === null && ascending[i]! > 0 ? null : finishAt,
  );
}
