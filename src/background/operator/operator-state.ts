/** One look at what an operator should know. It reads only tables that the work has written, so no work waits for it. */
import type { App } from '../../app.ts';
import { type Budget, readBudget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import type { Config } from '../../config.ts';
import { DAY } from '../../core/interval.ts';
import { DEFAULT_REVISIONS_A_DAY } from '../../core/settings/notice-settings.ts';
import { refusalInUse } from '../../ingest/request/account.ts';
import type { QuotaState } from '../../quota/quota.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { lastNoticedQuarantine, watchSince } from '../../store/work/notice.ts';
import { readAlertInputs } from '../../views/operations/alert-inputs.ts';
import { LITTLE_DISK, readDisks } from '../health/disk.ts';
import { LOCK } from '../health/service-status.ts';
import { readLakeRuns } from '../lake/lake-state.ts';
import type { NoticeInputs } from '../notice/notices.ts';
import { databaseLocked, hasBudget, type LakeState, type State, statesOf } from '../notice/states.ts';
import type { ServiceContext } from '../service-context.ts';

export type OperatorState = { readonly inputs: NoticeInputs; readonly states: readonly State[] };

/** Reads and writes only `ops.watch`. */
export async function readLockState(
  { incidents }: ServiceContext,
  { database: { sql } }: App,
  now: Instant,
): Promise<State> {
  const lock = incidents.open().find(({ what }) => what === LOCK) ?? null;
  return databaseLocked({
    now,
    lock,
    lockedSince: await watchSince(sql, 'the database is locked', lock !== null, now),
  });
}

/** `known`: the budget of the account, if the caller has read it lately. */
export async function readOperatorState(app: App, now: Instant, known?: Budget): Promise<OperatorState> {
  const { config } = app;
  const { sql } = app.database;
  const budget = known ?? (await readBudget(app));
  const isKnown = budget.planSource !== 'assumed';
  const { accountId, plan, schedules, quota: ledger, reserved: reservedAt } = budget;
  const state = await ledger.state();
  // The limits of an assumed plan may differ from the account's. Then only an exhausted quota that the upstream reports counts.
  const quota = isKnown ? state : withoutLimits(state);
  const reserved = reservedAt(now);
  const found = await readAlertInputs(sql, {
    now,
    plan,
    schedules: schedules.map(({ name }) => name),
    since: now - DAY,
    revisionsADay: config.notify?.revisionsADay ?? DEFAULT_REVISIONS_A_DAY,
    quarantineAfter: await lastNoticedQuarantine(sql),
  });
  const alerts = isKnown ? found : { ...found, historyLimits: [] };
  // The ledger has no outage for an upstream that has never answered: its address may be wrong.
  const outage = quota.outage ?? (alerts.isUnreached ? { message: alerts.lastFailure ?? 'no answer' } : null);
  const inputs: NoticeInputs = { now, accountId, plan, quota, reserved, alerts };
  const couldRun = hasBudget(quota, reserved.account ?? { day: 0, month: 0 });
  const couldRequest = alerts.backfills > 0 && hasBudget(quota, reserved);
  const since = (name: string, holds: boolean) => watchSince(sql, name, holds, now);
  const disks = await Promise.all(
    (await readDisks(config)).map(async (disk) => ({
      ...disk,
      lowSince: await since(`little room for ${disk.folder}`, disk.freeBytes < LITTLE_DISK),
    })),
  );
  const states = statesOf(
    {
      ...inputs,
      schedules,
      outage,
      refusal: await refusalInUse(
        sql,
        { id: accountId, sentAs: config.authScheme, hasKey: config.apiKey !== null },
        now,
      ),
      downSince: await since(`${accountId} gets no answers`, outage !== null),
      couldRequestCandlesSince: await since(
        `${accountId} could ask for candles`,
        couldRequest || (alerts.dueSeries > 0 && couldRun),
      ),
      couldRunSince: await since(`${accountId} could run schedules`, couldRun),
      behindSince: await since(`${accountId} is behind`, alerts.lateTiers.length > 0),
      disks,
      lake: await lakeState(sql, config, now),
    },
    config.stuckAfterMs,
  );
  return { inputs, states };
}

async function lakeState(sql: Sql, config: Config, now: Instant): Promise<LakeState | null> {
  const runs = await readLakeRuns(sql, config);
  if (runs === null) return null;
  const { place, failure, doneAt } = runs;
  const since = await watchSince(sql, 'the lake cannot be written', failure !== null, now);
  return { place, failure: failure === null || since === null ? null : { since, message: failure }, doneAt };
}

function withoutLimits(state: QuotaState): QuotaState {
  return { ...state, month: { ...state.month, limit: null }, day: { ...state.day, limit: null } };
}
