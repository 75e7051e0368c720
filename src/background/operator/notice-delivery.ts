/** Sends each raised notice from one service. No other work waits for the webhook. */
import type { App } from '../../app.ts';
import type { Instant } from '../../clock.ts';
import { createBackoff } from '../../core/backoff.ts';
import { DAY } from '../../core/interval.ts';
import type { NoticeEvent } from '../../core/settings/notice-settings.ts';
import { createOutageRetry } from '../../ingest/request/outage-retry.ts';
import { holdingLease } from '../../store/work/lease.ts';
import { type ClaimedNotice, claimNotice, endNotice, type NoticeEnd, renewNotice } from '../../store/work/notice.ts';
import type { Delivery, Webhook } from '../notice/webhook.ts';
import type { ServiceContext } from '../service-context.ts';

const MOST_PER_HOUR = 30;
/** Notices of states come first, so that a hundred finished backfills do not delay the news that the key is refused. */
const KEPT_FOR_STATES = 10;
const LONGEST_RETRY_MS = 30 * 60_000;
export const deliveryBackoff = createBackoff({ firstMs: 10_000, mostMs: LONGEST_RETRY_MS });
/** A notice that could not be delivered within a day stays in the log and in `ops.notice`. */
const GIVE_UP_AFTER_MS = DAY;
const WEBHOOK = 'the webhook';
/** A slow webhook must not delay the next look of the service: the remaining notices are sent after it. */
const LONGEST_ROUND_MS = 60_000;

/** Records in the log and in the metrics that a notice was raised. */
export function logNotice(
  { log, metrics }: Pick<ServiceContext, 'log' | 'metrics'>,
  event: NoticeEvent,
  topic: string,
  text: string,
): void {
  log.info({ event, topic }, `notice: ${text}`);
  metrics.notice(event, 'raised');
}

/** Sends every due notice, those of states first and the oldest of them first, until one fails or a minute is over. */
export async function deliver(context: ServiceContext, app: App, webhook: Webhook): Promise<void> {
  const { clock, signal, owner } = context;
  const { sql } = app.database;
  // A delivered notice must be recorded even if the database becomes unavailable at that moment. Otherwise a service would send it again.
  const retry = createOutageRetry({ clock, signal });
  const begunAt = clock.now();
  while (!signal.aborted) {
    const now = clock.now();
    if (Math.abs(now - begunAt) > LONGEST_ROUND_MS) return;
    const notice = await claimNotice(sql, { owner, now, mostPerHour: MOST_PER_HOUR, keptForStates: KEPT_FOR_STATES });
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
      const wait = Math.max(deliveryBackoff(attempts - 1, Math.random()), retryAfterMs ?? 0);
      // The wait is bounded, whatever the webhook demands, because Chandler gives up the notice after a day.
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
