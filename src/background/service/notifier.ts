/**
 * Sends notices to the operator through a webhook. Every service checks; the tables decide which service raises and which one sends
 * a notice. The check only reads tables that the work has written, so no work waits for the webhook.
 */
import type { App } from '../../app.ts';
import { readBudget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { createBackoff } from '../../core/backoff.ts';
import { DAY } from '../../core/interval.ts';
import type { Notify } from '../../core/settings/notice-settings.ts';
import { createOutageRetry } from '../../ingest/request/outage-retry.ts';
import type { QuotaState } from '../../quota/quota.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import { readKeyRefusal } from '../../store/quota/account.ts';
import { holdingLease } from '../../store/work/lease.ts';
import {
  type ClaimedNotice,
  claimNotice,
  endNotice,
  type NoticeEnd,
  quarantineTold,
  raiseNotice,
  renewNotice,
  watchSince,
} from '../../store/work/notice.ts';
import { readAlertInputs } from '../../views/operations/alert-inputs.ts';
import { asError } from '../health/service-status.ts';
import { hasBudget, type NoticeInputs, noticesOf } from '../notice/notices.ts';
import { createWebhook, type Delivery, type Webhook } from '../notice/webhook.ts';
import type { ServiceContext } from './service-context.ts';

const LOOK_MS = 20_000;
const MOST_PER_HOUR = 30;
const LONGEST_RETRY_MS = 30 * 60_000;
const backoff = createBackoff({ firstMs: 10_000, mostMs: LONGEST_RETRY_MS });
/** A notice that could not be delivered within a day stays in the log and in `ops.notice`. */
const GIVE_UP_AFTER_MS = DAY;
const WEBHOOK = 'the webhook';

/** Until the service stops; resolves at once without a webhook. */
export async function notifyOperator(context: ServiceContext, app: App): Promise<void> {
  const { notify } = context.config;
  if (notify === null) return;
  const webhook = createWebhook(notify.url);
  const { clock, signal, incidents } = context;
  try {
    while (!signal.aborted) {
      try {
        await raiseNotices(context, app, notify);
        await deliver(context, app, webhook);
        incidents.resolve('the notices');
      } catch (error) {
        // The heartbeat reports a database that is unavailable.
        if (!signal.aborted && !isDatabaseUnavailable(error)) incidents.report('the notices', asError(error));
      }
      await clock.sleep(LOOK_MS, signal).catch(() => undefined);
    }
  } finally {
    await webhook.close();
  }
}

async function raiseNotices({ clock, log, metrics }: ServiceContext, app: App, notify: Notify): Promise<void> {
  const inputs = await readInputs(app, notify, clock.now());
  for (const notice of noticesOf(inputs, notify)) {
    if (!(await raiseNotice(app.database.sql, notice, inputs.now))) continue;
    const { event, topic, text } = notice;
    log.info({ event, topic }, `notice: ${text}`);
    metrics.notice(event, 'raised');
  }
}

async function readInputs(app: App, notify: Notify, now: Instant): Promise<NoticeInputs> {
  const { sql } = app.database;
  const budget = await readBudget(app);
  const isKnown = budget.planSource !== 'assumed';
  const { accountId, plan, schedules, quota: ledger, reserved: reservedAt } = budget;
  const state = await ledger.state();
  // The limits of an assumed plan are not the account's. Then only an exhausted quota that the upstream reports counts.
  const quota = isKnown ? state : withoutLimits(state);
  const reserved = reservedAt(now);
  const alerts = await readAlertInputs(sql, {
    plan,
    schedules: schedules.map(({ name }) => name),
    since: now - DAY,
    revisionsADay: notify.revisionsADay,
    quarantineAfter: await quarantineTold(sql),
  });
  const forAccount = reserved.account ?? { day: 0, month: 0 };
  const couldRun = hasBudget(quota, forAccount);
  const couldBackfill = alerts.backfills > 0 && hasBudget(quota, reserved);
  const couldAsk = couldBackfill || (alerts.dueSeries > 0 && couldRun);
  return {
    now,
    accountId,
    plan,
    quota,
    reserved,
    schedules,
    refusal: (await readKeyRefusal(sql, accountId))?.message ?? null,
    alerts: isKnown ? alerts : { ...alerts, historyLimits: [] },
    couldAskCandlesSince: await watchSince(sql, `${accountId} could ask for candles`, couldAsk, now),
    couldRunSince: await watchSince(sql, `${accountId} could run schedules`, couldRun, now),
  };
}

function withoutLimits(state: QuotaState): QuotaState {
  return { ...state, month: { ...state.month, limit: null }, day: { ...state.day, limit: null } };
}

/** Sends every notice that is due, oldest first, until one fails. */
async function deliver(context: ServiceContext, app: App, webhook: Webhook): Promise<void> {
  const { clock, signal, owner } = context;
  const { sql } = app.database;
  // A notice that was delivered must be recorded even if the database becomes unavailable just then; else it would be sent again.
  const retry = createOutageRetry({ clock, signal });
  while (!signal.aborted) {
    const now = clock.now();
    const notice = await claimNotice(sql, { owner, now, mostPerHour: MOST_PER_HOUR });
    if (notice === null) return;
    const renew = () => renewNotice(sql, { id: notice.id, owner, now: clock.now() });
    const delivery = await holdingLease({ clock, renew }, () => webhook.post(notice.text, signal)).catch(() => null);
    const end: NoticeEnd = delivery === null ? { state: 'lease released' } : endOf(notice, delivery, clock.now());
    await retry(() => endNotice(sql, { id: notice.id, owner, now: clock.now() }, end));
    logEnd(context, notice, end);
    if (end.state !== 'sent' && end.state !== 'given up') return;
  }
}

function endOf({ attempts, raisedAt }: ClaimedNotice, delivery: Delivery, now: Instant): NoticeEnd {
  switch (delivery.kind) {
    case 'taken':
      return { state: 'sent' };
    case 'refused':
      return { state: 'given up', message: delivery.message };
    case 'failed': {
      const { message, retryAfterMs } = delivery;
      if (now - raisedAt > GIVE_UP_AFTER_MS) return { state: 'given up', message };
      const wait = Math.max(backoff(attempts - 1, Math.random()), retryAfterMs ?? 0);
      // Bounded, whatever the webhook asks for: after a day the notice is given up.
      return { state: 'later', at: now + Math.min(LONGEST_RETRY_MS, wait), message };
    }
  }
}

function logEnd(
  { log, metrics, incidents }: ServiceContext,
  { id, event, attempts }: ClaimedNotice,
  end: NoticeEnd,
): void {
  switch (end.state) {
    case 'sent':
      metrics.notice(event, 'sent');
      incidents.resolve(WEBHOOK);
      log.info({ notice: id, event, attempts }, 'notice sent');
      return;
    case 'later':
      metrics.notice(event, 'failed');
      incidents.report(WEBHOOK, new Error(end.message));
      return;
    case 'given up':
      metrics.notice(event, 'given up');
      log.error({ notice: id, event, attempts }, `notice ${id} could not be delivered: ${end.message}`);
      return;
    case 'lease released':
      return;
  }
}
