/**
 * When the service's backfills will be done: by the pace and the failures that backfills really meet, by the work of the others that go
 * before each or take turns with it, and by the quota, holds included.
 */
import type { App } from '../../app.ts';
import { readQuota } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import type { RunState } from '../../ingest/backfill/backfill.ts';
import { windowOf } from '../../ingest/backfill/backfill-runner.ts';
import { NOT_FINAL_YET } from '../../ingest/backfill/claim.ts';
import { type Work, workUntilDone } from '../../ingest/backfill/work-before.ts';
import type { Session } from '../../ingest/session.ts';
import { gapMs, MARGIN } from '../../quota/adaptive-rate.ts';
import { type Forecast, forecastEachFrom } from '../../quota/forecast.ts';
import { type MeasuredPace, measurePace } from '../../quota/measured-pace.ts';
import type { QuotaState, Reserved } from '../../quota/quota.ts';
import {
  type BackfillFinish,
  type OpenBackfill,
  readOpenBackfills,
  saveFinishes,
} from '../../store/work/backfill-finish.ts';
import { readSentForBackfills } from '../../store/work/fetch.ts';
import { liveInstances } from '../../store/work/instance.ts';
import { type Forecasted, tellFinish } from './finish-change.ts';

/** When a running backfill will be done. Null: unknown, because no limit slows it and it has sent too few requests. */
export async function readEta(app: App, session: Session, id: number, state: RunState): Promise<BackfillFinish | null> {
  const open = (await readOpenBackfills(app.database.sql, app.clock.now())).map((backfill) =>
    backfill.id === id ? { ...backfill, left: state.leftRequests } : backfill,
  );
  const mine = open.find((backfill) => backfill.id === id);
  if (mine === undefined) return null;
  const retryAt = Date.parse(state.chunks?.retryTo ?? '');
  const [forecasted] = await forecastEach(app, session, open, [{ ...mine, notBefore: retryAt || 0 }]);
  return tellFinish(mine.finish, forecasted!);
}

/** Saves the ETA of each queued backfill; a running one saves its own. */
export async function saveQueuedEtas(app: App, session: Session): Promise<void> {
  const { sql } = app.database;
  const open = await readOpenBackfills(sql, app.clock.now());
  const queued = open.filter(({ isRunning }) => !isRunning);
  if (queued.length === 0) return;
  const asked = queued.map((backfill) => ({ ...backfill, notBefore: backfill.waitUntil ?? 0 }));
  const forecasts = await forecastEach(app, session, open, asked);
  await saveFinishes(
    sql,
    queued.map(({ id, finish }, i) => ({ id, finish: tellFinish(finish, forecasts[i]!) })),
  );
}

type Asked = OpenBackfill & { readonly notBefore: Instant };

/** One for each that is asked for, in their order. */
async function forecastEach(
  app: App,
  session: Session,
  open: readonly OpenBackfill[],
  asked: readonly Asked[],
): Promise<readonly (Forecasted | null)[]> {
  const { clock, database } = app;
  const now = clock.now();
  const workers = await countWorkers(app, open, now);
  // Those that only wait for a second answer have nothing to send until then.
  const works = workUntilDone(
    open.filter(({ message, waitUntil }) => !(message === NOT_FINAL_YET && (waitUntil ?? 0) > now)),
    workers,
  );
  const { state, reserved } = await readQuota(app, session);
  const planGapMs = gapMs(session.limits.perSecond);
  const pace = measurePace(await readSentForBackfills(database.sql, now - PACE_SINCE_MS), planGapMs);
  const terms: Terms = { session, state, reserved, pace, planGapMs, now };
  return asked.map((backfill) => {
    const work = works.get(backfill.id) ?? { total: backfill.left, others: new Map() };
    return forecastOne(terms, backfill, work);
  });
}

/** Requests that were sent before say nothing about the pace now. */
const PACE_SINCE_MS = 6 * 3_600_000;
/** As long as an answer and its transaction may take, and as late as the others see that a chunk is done. */
const LEAST_SLACK_MS = 5_000;
/** From this part of the plan's pace on, the pace is not slowed by 429s. */
const STEADY = 0.9;
/** How much more or less than forecast fails. */
const LEAST_WORK_SPREAD = 0.02;

/** Services that run backfills; at least as many as are running now. */
async function countWorkers({ database: { sql } }: App, open: readonly OpenBackfill[], now: Instant): Promise<number> {
  const live = (await liveInstances(sql, now)).filter(({ roles }) => roles.includes('worker'));
  const running = open.filter(({ isRunning, isDetached }) => isRunning && isDetached);
  return Math.max(1, live.length, running.length);
}

type Terms = {
  readonly session: Session;
  readonly state: QuotaState;
  readonly reserved: (at: Instant) => Reserved;
  readonly pace: MeasuredPace | null;
  readonly planGapMs: number;
  readonly now: Instant;
};

/** Null: unknown. */
function forecastOne(terms: Terms, { left, notBefore }: Asked, { total, others }: Work): Forecasted | null {
  const { pace, planGapMs, state, now } = terms;
  const { gapMs: gap, spread, perChunk } = pace ?? { gapMs: planGapMs, spread: LEAST_WORK_SPREAD, perChunk: 1 };
  const workSpread = Math.max(LEAST_WORK_SPREAD, Math.abs(perChunk - 1) / 4);
  const requests = total * perChunk;
  const likely = forecastAt(terms, requests, gap);
  const isUnlimited = gap === 0 && likely.bindingWindow === null;
  if (likely.finishAt === null || (isUnlimited && total > 0)) return null;
  const early = forecastAt(terms, requests * (1 - workSpread), gap * (1 - spread));
  const late = forecastAt(terms, requests * (1 + workSpread), gap * (1 + spread));
  // Those that take turns do so in blocks.
  const turns = Math.min(...[...others.values(), left], windowOf(terms.session.limits.perSecond));
  const slackMs = LEAST_SLACK_MS + (others.size === 0 ? 0 : turns * gap);
  const after = (at: Instant) => Math.max(now, at, notBefore);
  const at = after(likely.finishAt);
  return {
    at,
    from: Math.min(at, after((early.finishAt ?? at) - slackMs)),
    to: Math.max(at, after((late.finishAt ?? at) + slackMs)),
    basis: {
      madeAt: now,
      left,
      others: Object.fromEntries([...others].map(([id, n]) => [id, Math.round(n)])),
      gapMs: gap,
      perChunk,
      hold: state.hold === null ? null : { until: state.hold.until, reason: state.hold.reason },
      window: likely.bindingWindow,
    },
  };
}

/** When so many requests will have been sent, one every `gap` milliseconds. */
function forecastAt({ session, state, reserved, pace }: Terms, requests: number, gap: number): Forecast {
  const { limit, now } = state.rate;
  // Just after a 429, the pace recovers faster than a measurement shows.
  const isMeasured = pace !== null && (limit === null || now === null || now > STEADY * limit);
  const steady = isMeasured ? { ...state, rate: { ...state.rate, limit: null, now: null } } : state;
  const perSecond = gap === 0 ? null : (1_000 / gap) * MARGIN;
  const limits = { ...session.limits, perSecond };
  return forecastEachFrom(steady, [Math.max(0, Math.round(requests))], { limits, reserved })[0]!;
}
