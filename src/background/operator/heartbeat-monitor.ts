/**
 * Sends a heartbeat to the operator's monitor (CHANDLER_HEARTBEAT_URL) while the service does its work. The monitor raises an alarm when no
 * heartbeat arrives for a while, so it also detects a machine without power, a broken network and a full disk.
 */
import type { App } from '../../app.ts';
import type { Instance } from '../../store/work/instance.ts';
import { claimTurn, releaseTurn } from '../../store/work/notice.ts';
import { isReady, type Role } from '../health/service-status.ts';
import { isWell, type State } from '../notice/states.ts';
import { createWebhook } from '../notice/webhook.ts';
import type { ServiceContext } from '../service-context.ts';

const EVERY_MS = 5 * 60_000;
const RETRY_MS = 30_000;
const MONITOR = 'the heartbeat monitor';
/** The roles that the services of the database must cover together. */
const NEEDED: readonly Role[] = ['scheduler', 'worker'];

/** One service at a time sends the heartbeat, no matter how many run. */
export function createHeartbeat(context: ServiceContext, app: App, url: string) {
  const { clock, signal, incidents, status } = context;
  const { sql } = app.database;
  const target = createWebhook(url, { setting: 'CHANDLER_HEARTBEAT_URL' });
  return {
    beat: async (states: readonly State[], peers: readonly Instance[]): Promise<void> => {
      const isComplete = NEEDED.every((role) => peers.some(({ roles }) => roles.includes(role)));
      if (!isComplete || !isWell(states) || !isReady(status, incidents)) return;
      const turn = { name: 'heartbeat', everyMs: EVERY_MS, now: clock.now() };
      if (!(await claimTurn(sql, turn))) return;
      const delivery = await target.get(signal);
      if (delivery.kind === 'taken') return incidents.resolve(MONITOR);
      incidents.report(MONITOR, new Error(delivery.message));
      await releaseTurn(sql, turn, RETRY_MS);
    },
    close: target.close,
  };
}
