/**
 * Tells the operator that the database cannot be used. While the outage lasts, this works from the memory of one service. It records the
 * notice when the database is back, so that every service knows of it. Services cannot ask each other meanwhile, so each computes from
 * the services that were alive before which one sends the notice. If that one cannot, the notice comes late: when the outage is over.
 *
 *     well ──incident──→ away ──2 minutes, and it is mine to tell──→ told
 *       ▲                  └────────── back for a minute ──────────────┴──→ over ──recorded──→ well
 */
import type { App } from '../../app.ts';
import type { Instant } from '../../clock.ts';
import { formatDuration, formatInstant } from '../../core/format.ts';
import type { Instance } from '../../store/work/instance.ts';
import { beginState, endState, raiseNotice, wasRaised } from '../../store/work/notice.ts';
import { DATABASE, HEARTBEAT } from '../health/service-status.ts';
import { createWebhook, type Webhook } from '../notice/webhook.ts';
import type { ServiceContext } from '../service-context.ts';
import { deliveryBackoff, logNotice } from './notice-delivery.ts';

const EVENT = 'database-down';
const LOOK_MS = 5_000;
/** A shorter outage, such as a restart of the database, is not worth a message. */
const TOLD_AFTER_MS = 2 * 60_000;
/** The outage is over when the database has been available for so long. */
const SETTLE_MS = 60_000;
/** The service that sent the notice gets so much time to record it first. */
const OTHERS_WAIT_MS = 3 * 60_000;

type Outage = {
  since: Instant;
  /** When the database was available again. Null while it is not. */
  until: Instant | null;
  message: string;
  toldAt: Instant | null;
  attempts: number;
  retryAt: Instant;
};

export type DatabaseOutage = {
  /** Runs until the signal is aborted. */
  watch(signal: AbortSignal): Promise<void>;
  /** Call it when the database is available again: records an outage that is over, and raises the notice of its end. */
  record(app: App): Promise<void>;
};

export function createDatabaseOutage(context: ServiceContext): DatabaseOutage {
  const { clock, config } = context;
  const { notify } = config;
  if (notify === null || !notify.events.includes(EVENT))
    return { watch: async () => undefined, record: async () => undefined };
  let outage: Outage | null = null;

  async function look(webhook: Webhook, signal: AbortSignal): Promise<void> {
    const now = clock.now();
    const incident = context.incidents.open().find(({ what }) => what === DATABASE || what === HEARTBEAT);
    if (incident === undefined) {
      if (outage !== null) outage.until ??= now;
      // The outage was too short to report.
      if (outage !== null && !isWorthTelling(outage) && now - outage.until! >= SETTLE_MS) outage = null;
      return;
    }
    outage ??= { since: incident.since, until: null, message: '', toldAt: null, attempts: 0, retryAt: 0 };
    outage.until = null;
    outage.message = incident.message;
    if (outage.toldAt !== null || now - outage.since < TOLD_AFTER_MS || now < outage.retryAt || !isMine(context))
      return;
    const text = textAt(outage, now, context.owner);
    if (outage.attempts === 0) logNotice(context, EVENT, EVENT, text);
    const delivery = await webhook.post(text, signal);
    context.metrics.notice(EVENT, delivery.kind === 'taken' ? 'sent' : 'failed');
    if (delivery.kind === 'taken') outage.toldAt = now;
    else {
      context.log.warn({ event: EVENT }, `the notice was not sent: ${delivery.message}`);
      outage.retryAt = clock.now() + deliveryBackoff(outage.attempts++, Math.random());
    }
  }

  async function record({ database: { sql } }: App): Promise<void> {
    const now = clock.now();
    if (outage === null || outage.until === null || now - outage.until < SETTLE_MS || !isWorthTelling(outage)) return;
    const { since, until, toldAt, message } = outage;
    const lasted = `from ${formatInstant(since)} to ${formatInstant(until)} (${formatDuration(until - since)})`;
    const end = 'It is back, all work continues automatically, and nothing was lost.';
    if (toldAt !== null) {
      if (!(await wasRaised(sql, EVENT, since))) {
        const text = textAt(outage, toldAt, context.owner);
        await beginState(sql, { event: EVENT, topic: EVENT, text, beganAt: since, sentAt: toldAt }, now);
        const resolved = `Resolved: the database could not be used ${lasted}. ${end}`;
        if (await endState(sql, EVENT, resolved, now)) logNotice(context, EVENT, EVENT, resolved);
      }
    } else {
      if (now - until < OTHERS_WAIT_MS) return;
      const text = `The database could not be used ${lasted}: ${message}. ${end}`;
      const late = { event: EVENT, topic: EVENT, text, quietMs: now - since } as const;
      if (await raiseNotice(sql, late, now)) logNotice(context, EVENT, EVENT, text);
    }
    outage = null;
  }

  return {
    watch: async (signal) => {
      const webhook = createWebhook(notify.url);
      try {
        while (!signal.aborted) {
          await look(webhook, signal).catch(() => undefined);
          await clock.sleep(LOOK_MS, signal).catch(() => undefined);
        }
      } finally {
        await webhook.close();
      }
    },
    record,
  };
}

function isWorthTelling({ since, until, toldAt }: Outage): boolean {
  return toldAt !== null || (until !== null && until - since >= TOLD_AFTER_MS);
}

/** Whether this service sends the notice: the first scheduler by name, as there is usually one; without any scheduler, the first service. */
function isMine({ open: { peers }, owner, roles }: Pick<ServiceContext, 'open' | 'owner' | 'roles'>): boolean {
  // This service has never reached the database, so it knows no other services.
  if (peers === null) return roles.includes('scheduler');
  return tellerOf([...peers, { owner, roles }]) === owner;
}

function tellerOf(services: readonly Pick<Instance, 'owner' | 'roles'>[]): string | undefined {
  const schedulers = services.filter(({ roles }) => roles.includes('scheduler'));
  return (schedulers.length > 0 ? schedulers : services).map(({ owner }) => owner).sort()[0];
}

function textAt({ since, message }: Outage, now: Instant, owner: string): string {
  return `The database cannot be used since ${formatInstant(since)} (${formatDuration(now - since)}): ${message}. Nothing is fetched meanwhile, and nothing is lost: all work continues automatically when the database is back. chandler doctor says what is wrong. (${owner})`;
}
