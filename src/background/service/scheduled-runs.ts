/** Assembles the runs of the schedules for one session. */
import type { App } from '../../app.ts';
import { readHoleAllowance, readQuota, readScheduledWork, schedulesOf } from '../../budget.ts';
import { createCatalogueRuns } from '../../ingest/catalogue/catalogue-run.ts';
import { FRESHNESS } from '../../ingest/queue/chunk-job.ts';
import type { ChunkQueue } from '../../ingest/queue/chunk-queue.ts';
import { longestGapMs } from '../../ingest/schedule/cadence.ts';
import { freshnessBudgetOf, spentOnFreshness } from '../../ingest/schedule/demand.ts';
import type { Runs } from '../../ingest/schedule/schedules.ts';
import type { Session } from '../../ingest/session.ts';
import { createSnapshots, snapshotRun } from '../../ingest/snapshot/snapshots.ts';
import { auditGaps } from '../../ingest/tracking/audit.ts';
import { type ConfirmHolesDeps, createConfirmHoles } from '../../ingest/tracking/confirm-holes.ts';
import { createKeepFresh, type KeepFresh } from '../../ingest/tracking/keep-fresh.ts';
import { type CandleArchive, removeOld } from '../../store/upkeep/retention.ts';
import { attestToday } from '../attestation/daily-attestation.ts';
import { removeWithLake, writeLake } from '../lake/lake-run.ts';

export function createFreshness(app: App, session: Session, queue: ChunkQueue): KeepFresh {
  const { config, clock, database } = app;
  const { plan, limits, quota } = session;
  const { cadence } = schedulesOf(config, plan.name, limits).find(({ name }) => name === FRESHNESS)!;
  return createKeepFresh({
    sql: database.sql,
    clock,
    queue,
    plan,
    historyLimits: session.historyLimits,
    keep: config.keep.candles,
    perSecond: limits.perSecond,
    nextRun: (now) => cadence?.next(now) ?? now,
    tickMs: cadence === null ? 0 : longestGapMs(cadence),
    budget: async () => {
      const { schedules, demand } = await readScheduledWork(app, session);
      return freshnessBudgetOf(schedules, demand);
    },
    spentToday: async () => spentOnFreshness(await quota.spenders()),
  });
}

/** For logs and metrics of the chunks that a run requests itself. */
type ChunkEvents = Pick<ConfirmHolesDeps, 'onChunk' | 'onFailure'>;

export function createRuns(app: App, session: Session, freshness: KeepFresh, events: ChunkEvents): Runs {
  const { config, clock, database, log } = app;
  const { sql } = database;
  const { sendRequest, accountId, plan, limits, quota, historyLimits } = session;
  const schedules = schedulesOf(config, plan.name, limits);
  const snapshots = createSnapshots({ sql, sendRequest, clock, accountId });
  return {
    sql,
    clock,
    session,
    tickers: snapshotRun(snapshots.tickers),
    global: snapshotRun(snapshots.global),
    exchanges: snapshotRun(snapshots.exchanges),
    catalogue: createCatalogueRuns({
      sql,
      clock,
      session,
      mostOf: (kind) => schedules.find(({ name }) => name === kind)?.most ?? 0,
    }),
    freshness: () => freshness.run(),
    gaps: async () => {
      const queued = await auditGaps({ sql, clock, plan, historyLimits, keep: config.keep.candles });
      for (const { id } of queued)
        log.info({ backfill: id }, `backfill ${id} queued: history of tracked series is missing`);
      return { kind: 'done' };
    },
    confirmHoles: createConfirmHoles({
      ...events,
      sql,
      clock,
      plan,
      historyLimits,
      ingestChunk: session.ingestChunk,
      allowance: async () => readHoleAllowance(sql, { quota, reserved: (await readQuota(app, session)).reserved }),
    }),
    retention: async ({ signal }) => {
      const remove = (archive?: CandleArchive) =>
        removeOld(database, {
          keep: config.keep,
          now: clock.now(),
          signal,
          ...(archive === undefined ? {} : { archive }),
        });
      const removed = await removeWithLake(app, remove);
      log.info({ removed }, 'removed data past its retention');
      return { kind: 'done' };
    },
    attest: async ({ signal }) => {
      // Without a folder this schedule is off.
      if (config.attest === null) return { kind: 'done' };
      const { file, root, series } = await attestToday(sql, config.attest, { now: clock.now(), signal });
      log.info({ file, root, series }, 'wrote an attestation');
      return { kind: 'done' };
    },
    lake: async ({ signal }) => {
      // Without a place this schedule is off.
      if (config.lake === null) return { kind: 'done' };
      const written = await writeLake(app, config.lake, signal);
      log.info({ written }, 'brought the lake up to date');
      return { kind: 'done' };
    },
  };
}
