/**
 * Tells the operator what he should know, through a webhook: every service looks, the tables decide who raises and who sends. It
 * only reads what the work leaves behind, so however the webhook fares, nothing waits for it.
 */
import type { App } from '../../app.ts';
import { readBudget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { DAY } from '../../core/interval.ts';
import type { Notify } from '../../core/notice-settings.ts';
import { createOutageRetry } from '../../ingest/request/outage-retry.ts';
import type { QuotaState } from '../../quota/quota.ts';
import { isDatabaseAway } from '../../store/connection/database-unavailable.ts';
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
import { readConcerns } from '../../views/operations/alert-inputs.ts';
import { asError } from '../health/incidents.ts';
import { hasBudget, noticesOf, type Standing } from '../notice/notices.ts';
import { createWebhook, type Delivery, type Webhook } from '../notice/webhook.ts';
import type { Parts } from './service-context.ts';

const LOOK_MS = 20_000;
const MOST_PER_HOUR = 30;
const LONGEST_RETRY_MS = 30 * 60_000;
/** Stored, and one process sends the oldest notice at a time: there is nothing to spread. */
const backoff = createBackoff({ firstMs: 10_000, mostMs: LONGEST_RETRY_MS });
/** What nobody could be told within a day is in the log, and in `ops.notice`. */
const GIVE_UP_AFTER_MS = DAY;
const TROUBLE = 'the webhook';

/** Until the service stops; at once when nobody is to be told. */
export async function notifyOperator(parts: Parts, app: App): Promise<void> {
  const { notify } = parts.config;
  if (notify === null) return;
  const webhook = createWebhook(notify.url);
  const { clock, signal, troubles } = parts;
  try {
    while (!signal.aborted) {
      try {
        await look(parts, app, notify);
        await deliver(parts, app, webhook);
        troubles.over('the notices');
      } catch (error) {
        // Of a database that is away others tell.
        if (!signal.aborted && !isDatabaseAway(error)) troubles.met('the notices', asError(error));
      }
      await clock.sleep(LOOK_MS, signal).catch(() => undefined);
    }
  } finally {
    await webhook.close();
  }
}

async function look({ clock, log, metrics }: Parts, app: App, notify: Notify): Promise<void> {
  const standing = await readStanding(app, notify, clock.now());
  for (const notice of noticesOf(standing, notify)) {
    if (!(await raiseNotice(app.database.sql, notice, standing.now))) continue;
    const { event, topic, text } = notice;
    log.info({ event, topic }, `notice: ${text}`);
    metrics.notice(event, 'raised');
  }
}

async function readStanding(app: App, notify: Notify, now: Instant): Promise<Standing> {
  const { sql } = app.database;
  const budget = await readBudget(app);
  const isKnown = budget.planSource !== 'assumed';
  const { accountId, plan, schedules, quota: ledger, setAside: setAsideAt } = budget;
  const state = await ledger.state();
  // The limits of a plan that nobody has told are nobody's: of those only what upstream itself says counts.
  const quota = isKnown ? state : withoutLimits(state);
  const setAside = setAsideAt(now);
  const concerns = await readConcerns(sql, {
    plan,
    schedules: schedules.map(({ name }) => name),
    wallsSince: now - DAY,
    daySince: now - DAY,
    revisionsADay: notify.revisionsADay,
    quarantineAfter: await quarantineTold(sql),
  });
  const forAccount = setAside.account ?? { day: 0, month: 0 };
  const couldRun = hasBudget(quota, forAccount);
  const couldBackfill = concerns.backfills > 0 && hasBudget(quota, setAside);
  const couldAsk = couldBackfill || (concerns.turns > 0 && couldRun);
  return {
    now,
    accountId,
    plan,
    quota,
    setAside,
    schedules,
    refusal: (await readKeyRefusal(sql, accountId))?.message ?? null,
    concerns: isKnown ? concerns : { ...concerns, walls: [] },
    couldAskCandlesSince: await watchSince(sql, `${accountId} could ask for candles`, couldAsk, now),
    couldRunSince: await watchSince(sql, `${accountId} could run schedules`, couldRun, now),
  };
}

function withoutLimits(state: QuotaState): QuotaState {
  return { ...state, month: { ...state.month, limit: null }, day: { ...state.day, limit: null } };
}

/** All that is due, oldest first, until one is not taken. */
async function deliver(parts: Parts, app: App, webhook: Webhook): Promise<void> {
  const { clock, signal, owner } = parts;
  const { sql } = app.database;
  // What was taken must not be sent again because the database went away just then.
  const retry = createOutageRetry({ clock, signal, onAway: () => undefined, onBack: () => undefined });
  while (!signal.aborted) {
    const now = clock.now();
    const notice = await claimNotice(sql, { owner, now, mostPerHour: MOST_PER_HOUR });
    if (notice === null) return;
    const renew = () => renewNotice(sql, { id: notice.id, owner, now: clock.now() });
    const delivery = await holdingLease({ clock, renew }, () => webhook.post(notice.text, signal)).catch(() => null);
    const end: NoticeEnd = delivery === null ? { state: 'handed back' } : endOf(notice, delivery, clock.now());
    await retry(() => endNotice(sql, { id: notice.id, owner, now: clock.now() }, end));
    tell(parts, notice, end);
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
      const wait = Math.max(backoff(attempts - 1, WHOLE_BOUND), retryAfterMs ?? 0);
      // However long it asks us to stay away: a day later nobody would be told any more.
      return { state: 'later', at: now + Math.min(LONGEST_RETRY_MS, wait), message };
    }
  }
}

function tell({ log, metrics, troubles }: Parts, { id, event, attempts }: ClaimedNotice, end: NoticeEnd): void {
  switch (end.state) {
    case 'sent':
      metrics.notice(event, 'sent');
      troubles.over(TROUBLE);
      log.info({ notice: id, event, attempts }, 'notice sent');
      return;
    case 'later':
      metrics.notice(event, 'failed');
      troubles.met(TROUBLE, new Error(end.message));
      return;
    case 'given up':
      metrics.notice(event, 'given up');
      log.error({ notice: id, event, attempts }, `notice ${id} could not be delivered: ${end.message}`);
      return;
    case 'handed back':
      return;
  }
}
