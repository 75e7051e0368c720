/**
 * Tells the operator what happens: through a webhook, through the metrics, and by a heartbeat that stops. Every service looks. The tables
 * decide which service raises a notice and which one sends it.
 */
import type { App } from '../../app.ts';
import type { Instant } from '../../clock.ts';
import { asError } from '../../core/as-error.ts';
import { DAY, HOUR } from '../../core/interval.ts';
import type { Notify } from '../../core/settings/notice-settings.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import { liveInstances } from '../../store/work/instance.ts';
import {
  beginState,
  endState,
  notRaisedYet,
  openStates,
  raiseNotice,
  statesNotJudgedSince,
  watchSince,
} from '../../store/work/notice.ts';
import { DATABASE, HEARTBEAT } from '../health/service-status.ts';
import { noticesOf } from '../notice/notices.ts';
import { type State, withoutConsequences } from '../notice/states.ts';
import { createWebhook } from '../notice/webhook.ts';
import type { ServiceContext } from '../service-context.ts';
import type { DatabaseOutage } from './database-outage.ts';
import { createHeartbeat } from './heartbeat-monitor.ts';
import { deliver, logNotice } from './notice-delivery.ts';
import { type OperatorState, readLockState, readOperatorState } from './operator-state.ts';

export const LOOK_MS = 20_000;
const NOTICES = 'the notices';

/** Runs until the service stops. Resolves at once when there is no way to tell the operator. */
export async function notifyOperator(
  context: ServiceContext,
  app: App,
  outage: Pick<DatabaseOutage, 'record'>,
): Promise<void> {
  const { clock, signal, incidents, roles, open } = context;
  const { notify, heartbeatUrl } = context.config;
  if (notify === null && heartbeatUrl === null && !roles.includes('http')) return;
  const webhook = notify === null ? null : createWebhook(notify.url);
  const heartbeat = heartbeatUrl === null ? null : createHeartbeat(context, app, heartbeatUrl);
  try {
    while (!signal.aborted) {
      try {
        const now = clock.now();
        const locked = await readLockState(context, app, now);
        if (locked.since !== null && notify !== null && webhook !== null) {
          // At once, because the reads below may wait for that lock.
          await settleStates(context, app, notify, [locked], now);
          await deliver(context, app, webhook);
        }
        const { inputs, states: others } = await readOperatorState(app, now);
        const states = [locked, ...others];
        const peers = await liveInstances(app.database.sql, now);
        // Right after an outage the other services have not renewed their leases yet. The services alive before it decide which one reports it.
        if (!incidents.isOpen(DATABASE) && !incidents.isOpen(HEARTBEAT)) open.peers = peers;
        if (notify !== null) await raise(context, app, notify, { inputs, states });
        const settling = notify === null ? states : await withSettling(app, notify, states);
        open.states = settling;
        await heartbeat?.beat(settling, peers);
        await outage.record(app);
        if (webhook !== null) await deliver(context, app, webhook);
        incidents.resolve(NOTICES);
      } catch (error) {
        open.states = null;
        // The heartbeat of the service reports a database that is unavailable.
        if (!signal.aborted && !isDatabaseUnavailable(error)) incidents.report(NOTICES, asError(error));
      }
      await clock.sleep(LOOK_MS, signal).catch(() => undefined);
    }
  } finally {
    await Promise.all([webhook?.close(), heartbeat?.close()]);
  }
}

/** Marks the states that no longer hold but are still reported, until they have not held for long enough. */
async function withSettling(app: App, notify: Notify, states: readonly State[]): Promise<readonly State[]> {
  const told = new Set((await openStates(app.database.sql)).map(({ topic }) => topic));
  // Nobody ends the notice of an event that the operator has switched off.
  const isSettling = ({ event, topic, since }: State) =>
    since === null && told.has(topic) && notify.events.includes(event);
  return states.map((state) => (isSettling(state) ? { ...state, isSettling: true } : state));
}

async function raise(
  context: ServiceContext,
  app: App,
  notify: Notify,
  { inputs, states }: OperatorState,
): Promise<void> {
  const { sql } = app.database;
  await settleStates(context, app, notify, states, inputs.now);
  await endForgotten(context, app, inputs.now);
  // Most of them were raised long ago. One read finds the others, instead of one transaction for each.
  for (const notice of await notRaisedYet(sql, noticesOf(inputs, notify), inputs.now)) {
    if (await raiseNotice(sql, notice, inputs.now)) logNotice(context, notice.event, notice.topic, notice.text);
  }
}

/** A folder or a lake that no service has examined for so long is not used any more. */
const FORGOTTEN_AFTER_MS = DAY;
/** Other services that examine it may start later than this one. */
const OTHERS_START_MS = HOUR;

/** Ends the state of a folder or a lake that no service judges any more, because the setting of the services has changed. */
async function endForgotten(context: ServiceContext, app: App, now: Instant): Promise<void> {
  if (now - context.status.startedAt < OTHERS_START_MS) return;
  const { sql } = app.database;
  for (const { event, topic } of await statesNotJudgedSince(sql, now - FORGOTTEN_AFTER_MS)) {
    if (event !== 'disk' && event !== 'lake') continue;
    const text = `Resolved: no service uses ${event === 'disk' ? `the folder ${topic.slice('disk '.length)}` : 'a lake'} any more.`;
    if (await endState(sql, topic, text, now)) logNotice(context, event, topic, text);
  }
}

/** Raises a notice for each state that has begun and for each that is over. */
async function settleStates(
  context: ServiceContext,
  app: App,
  notify: Notify,
  judged: readonly State[],
  now: Instant,
): Promise<void> {
  const { sql } = app.database;
  const told = judged.filter(({ event }) => notify.events.includes(event));
  const isNews = new Set(withoutConsequences(told));
  const open = new Set((await openStates(sql)).map(({ topic }) => topic));
  for (const state of told) {
    const { event, topic, since, settleMs, text } = state;
    const isOpen = open.has(topic);
    if (since !== null && !isOpen) {
      if (!isNews.has(state)) continue;
      if (await beginState(sql, { event, topic, text, beganAt: since, sentAt: null }, now))
        logNotice(context, event, topic, text);
    }
    if (since === null && !isOpen) continue;
    const overSince = await watchSince(sql, `${topic} is over`, since === null, now);
    if (overSince === null || now - overSince < settleMs) continue;
    const resolved = `Resolved: ${state.over}`;
    if (await endState(sql, topic, resolved, now)) logNotice(context, event, topic, resolved);
  }
}
