/** When the backfills of the service will be done: each after those that are taken before it, holds included. */
import type { App } from '../app.ts';
import { readDemand, schedulesOf, setAsideOf } from '../budget.ts';
import type { Instant } from '../clock.ts';
import type { Session } from '../ingest/session.ts';
import { forecastFrom } from '../quota/forecast.ts';
import { readOpenBackfills, saveFinish } from '../store/backfill-queue.ts';

/** When so many requests are done, from now on; null when nobody can say, as when no limit slows them. */
export type FinishOf = (requests: number) => Instant | null;

export async function readFinishOf(app: App, { quota, plan, limits }: Session): Promise<FinishOf> {
  const [state, demand] = await Promise.all([quota.state(), readDemand(app.database.sql)]);
  const setAside = setAsideOf(schedulesOf(app.config, plan.name, limits, demand));
  return (requests) => {
    const { finishAt, bindingWindow } = forecastFrom(state, { requests, limits, setAside });
    // As fast as the upstream answers: nobody knows how fast that is.
    return bindingWindow === null && requests > 0 ? null : finishAt;
  };
}

/** So many are reckoned, the next ones: a forecast of years takes its time, and who waits behind more than that waits for long. */
const MOST = 10;

/** Of those that wait for their turn; one that is being worked on says so itself. */
export async function forecastQueued(app: App, session: Session): Promise<void> {
  const { sql } = app.database;
  const open = await readOpenBackfills(sql);
  const running = open.filter(({ isRunning }) => isRunning);
  const queued = open.filter(({ isRunning }) => !isRunning);
  if (queued.length === 0) return;
  const finishOf = await readFinishOf(app, session);
  let before = running.reduce((sum, { left }) => sum + left, 0);
  for (const { id, left, waitUntil } of queued.slice(0, MOST)) {
    before += left;
    const finishAt = finishOf(before);
    await saveFinish(sql, id, finishAt === null ? null : Math.max(finishAt, waitUntil ?? 0));
  }
}
