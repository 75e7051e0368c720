/**
 * When the service's backfills will be done: calculated from the measured pace and failures of backfills, from the work of other backfills
 * that go before each or take turns with it, and from the quota, including holds.
 */
import type { App } from '../../app.ts';
import { readQuota } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import type { RunState } from '../../ingest/backfill/run-chunks.ts';
import { type Work, workUntilDone } from '../../ingest/backfill/work-before.ts';
import { windowOf } from '../../ingest/runner/backfill-runner.ts';
import type { Session } from '../../ingest/session.ts';
import { gapMs, MARGIN } from '../../quota/adaptive-rate.ts';
import { type Forecast, forecastEachFrom } from '../../quota/forecast.ts';
import { type MeasuredPace, measurePace } from '../../quota/measured-pace.ts';
import type { QuotaState, Reserved } from '../../quota/quota.ts';
import {
  type BackfillFinish,
  type FinishBasis,
  type OpenBackfill,
  readOpenBackfills,
  saveFinishes,
} from '../../store/backfill/backfill-finish.ts';
import { ANOTHER_BACKFILL, NOT_FINAL_YET, readOverlapping } from '../../store/backfill/slot-owner.ts';
import { readSentForBackfills } from '../../store/work/fetch.ts';
import { liveInstances } from '../../store/work/instance.ts';
import { type Forecasted, finishToShow } from './finish-change.ts';

/** `concurrency`: the number of concurrent requests of this service. */
type EtaContext = { readonly app: App; readonly concurrency: number };

/** When a running backfill will be done. Null when it is no longer open. */
export async function readEta(
  context: EtaContext,
  session: Session,
  id: number,
  state: RunState,
): Promise<BackfillFinish | null> {
  const { database, clock } = context.app;
  const open = (await readOpenBackfills(database.sql, clock.now())).map((backfill) =>
    backfill.id === id ? { ...backfill, left: state.leftRequests } : backfill,
  );
  const mine = open.find((backfill) => backfill.id === id);
  if (mine === undefined) return null;
  const retryTo = state.chunks?.retryTo ?? null;
  const wait = retryTo === null ? null : { until: Date.parse(retryTo), reason: 'a chunk waits for its retry' };
  const [forecasted] = await forecastEach(context, session, open, [{ ...mine, wait, isUnderWay: isUnderWay(state) }]);
  return finishToShow(mine.finish, forecasted!);
}

/** Saves the ETA of each queued backfill; a running one saves its own. */
export async function saveQueuedEtas(context: EtaContext, session: Session): Promise<void> {
  const { database, clock } = context.app;
  const { sql } = database;
  const open = await readOpenBackfills(sql, clock.now());
  const queued = open.filter(({ isRunning }) => !isRunning);
  if (queued.length === 0) return;
  const backfills: BackfillToForecast[] = [];
  for (const backfill of queued) {
    const { id, waitUntil, message } = backfill;
    // The slots that other backfills fetch for it are there when those backfills are done.
    const owners = message === ANOTHER_BACKFILL ? await readOverlapping(sql, id, clock.now()) : [];
    const ends = open.flatMap((other) => (owners.includes(other.id) ? [other.finish?.at ?? 0] : []));
    const until = waitUntil === null ? null : Math.max(waitUntil, ...ends);
    backfills.push({
      ...backfill,
      isUnderWay: false,
      wait: until === null ? null : { until, reason: `it waits (${message})` },
    });
  }
  const forecasts = await forecastEach(context, session, open, backfills);
  await saveFinishes(
    sql,
    queued.map(({ id, finish }, i) => ({ id, finish: finishToShow(finish, forecasts[i]!) })),
  );
}

/** `wait`: the backfill is not done before it ends. */
type BackfillToForecast = OpenBackfill & {
  readonly wait: FinishBasis['hold'];
  /** Workers have started all of its remaining chunks, so no other backfill delays it. */
  readonly isUnderWay: boolean;
};

function isUnderWay({ leftRequests, chunks }: RunState): boolean {
  return chunks !== null && chunks.inProgress > 0 && leftRequests <= chunks.inProgress;
}

/** One forecast for each backfill in `backfills`, in the same order. */
async function forecastEach(
  { app, concurrency }: EtaContext,
  session: Session,
  open: readonly OpenBackfill[],
  backfills: readonly BackfillToForecast[],
): Promise<readonly (Forecasted | null)[]> {
  const { clock, database } = app;
  const now = clock.now();
  const workers = await countWorkers(app, open, now);
  // Backfills that only wait for a second answer send nothing until then.
  const sharers = open.filter(({ message, waitUntil }) => !(message === NOT_FINAL_YET && (waitUntil ?? 0) > now));
  const block = windowOf(session.limits.perSecond, concurrency);
  const works = workUntilDone(sharers, workers, block);
  const { state, reserved } = await readQuota(app, session);
  const planGapMs = gapMs(session.limits.perSecond);
  const pace = measurePace(await readSentForBackfills(database.sql, now - PACE_SINCE_MS), planGapMs);
  const terms: Terms = { session, state, reserved, pace, planGapMs, block, freeAt: freeAt(open, workers, now), now };
  return backfills.map((backfill) => {
    const alone: Work = { total: backfill.left, others: new Map() };
    return forecastOne(terms, backfill, backfill.isUnderWay ? alone : (works.get(backfill.id) ?? alone));
  });
}

/** Older requests say nothing about the present pace. */
const PACE_SINCE_MS = 6 * 3_600_000;
/** The range is at least so wide: the end is shown to the minute, so a move of some seconds needs no explanation. */
const LEAST_SLACK_MS = 12_000;
/** Above this share of the plan's rate, 429s no longer slow the pace. */
const STEADY = 0.9;
/** The forecast allows for at least so much more or less work, because the number of failures varies. */
const LEAST_WORK_SPREAD = 0.02;

/** Services that run backfills; at least as many as are running now. */
async function countWorkers({ database: { sql } }: App, open: readonly OpenBackfill[], now: Instant): Promise<number> {
  const live = (await liveInstances(sql, now)).filter(({ roles }) => roles.includes('worker'));
  const running = open.filter(({ isRunning, isDetached }) => isRunning && isDetached);
  return Math.max(1, live.length, running.length);
}

/** When a service is free for the next backfill: at the earliest end of a running one, which may include waiting for a retry. */
function freeAt(open: readonly OpenBackfill[], workers: number, now: Instant): Instant {
  const running = open.filter(({ isRunning, isDetached }) => isRunning && isDetached);
  return running.length < workers ? now : Math.min(...running.map(({ finish }) => finish.at ?? now));
}

type Terms = {
  readonly session: Session;
  readonly state: QuotaState;
  readonly reserved: (at: Instant) => Reserved;
  readonly pace: MeasuredPace | null;
  readonly planGapMs: number;
  /** Number of requests that a backfill sends in one turn. */
  readonly block: number;
  /** When a service can begin another backfill. */
  readonly freeAt: Instant;
  readonly now: Instant;
};

/** Null when unknown. */
function forecastOne(
  terms: Terms,
  { left, wait, isRunning }: BackfillToForecast,
  { total, others }: Work,
): Forecasted | null {
  const { pace, planGapMs, block, state, now } = terms;
  const { gapMs: gap, spread, perChunk } = pace ?? { gapMs: planGapMs, spread: LEAST_WORK_SPREAD, perChunk: 1 };
  const workSpread = Math.max(LEAST_WORK_SPREAD, Math.abs(perChunk - 1) / 4);
  const requests = total * perChunk;
  const likely = forecastAt(terms, requests, gap);
  const isUnlimited = gap === 0 && likely.bindingWindow === null;
  if (likely.finishAt === null || (isUnlimited && total > 0)) return null;
  const early = forecastAt(terms, requests * (1 - workSpread), gap * (1 - spread));
  const late = forecastAt(terms, requests * (1 + workSpread), gap * (1 + spread));
  // Backfills that take turns send one block per turn.
  const turns = [...others.values()].reduce((sum, theirs) => sum + Math.min(theirs, block) / 2, 0);
  const slackMs = LEAST_SLACK_MS + turns * gap;
  const begins = isRunning ? now : terms.freeAt;
  const ownMs = left * perChunk * gap;
  const after = (at: Instant, own: number) => Math.max(now, at, wait?.until ?? 0, begins + own);
  const at = after(likely.finishAt, ownMs);
  return {
    at,
    from: Math.min(at, after((early.finishAt ?? at) - slackMs, ownMs * (1 - workSpread) * (1 - spread) - slackMs)),
    to: Math.max(at, after((late.finishAt ?? at) + slackMs, ownMs * (1 + workSpread) * (1 + spread) + slackMs)),
    basis: {
      madeAt: now,
      left,
      others: Object.fromEntries([...others].map(([id, n]) => [id, Math.round(n)])),
      gapMs: gap,
      perChunk,
      hold: laterOf(
        state.hold && { until: state.hold.until, reason: `all requests wait (${state.hold.reason})` },
        wait,
      ),
      window: likely.bindingWindow,
    },
  };
}

function laterOf(a: FinishBasis['hold'], b: FinishBasis['hold']): FinishBasis['hold'] {
  if (a === null || b === null) return a ?? b;
  return a.until > b.until ? a : b;
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
