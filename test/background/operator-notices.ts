/** Whole services, a clock that the test moves, and a real webhook. */
import { afterEach, beforeEach, expect } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { type Hook, startHook } from '../support/hook.ts';
import {
  createServiceWorld,
  expectAlive,
  type Service,
  type ServiceWorld,
  type ServiceWorldOptions,
  untilLogged,
} from '../support/service-world.ts';

export const MINUTE = 60_000;
export const START = Date.UTC(2030, 4, 15, 10, 3);

export let world: ServiceWorld;
export let hook: Hook;
export function useHook(): void {
  beforeEach(async () => {
    hook = await startHook();
  });
  afterEach(async () => {
    await world?.close();
    await hook.close();
  });
}

export async function open(options: ServiceWorldOptions): Promise<void> {
  world = await createServiceWorld(options);
}
export const create = (env: Record<string, string> = {}) =>
  open({
    startAt: START,
    redis: null,
    simulator: { coins: 12, limits: { keys: { good: 'pro' } } },
    env: { CHANDLER_PLAN: 'pro', ...env },
  });
/** Minutes pass one after the other, and every service does what is due. */
export const minutes = async (n: number) => {
  for (let i = 0; i < n; i++) await world.advance(MINUTE);
  expectAlive(world);
};
export const until = async (isSo: () => boolean, most = 30) => {
  for (let i = 0; i < most && !isSo(); i++) await minutes(1);
  expect(isSo()).toBe(true);
};

/** A lost connection is opened again after at most a second of the machine's time. */
const LONGEST_RECONNECT_MS = 1_000;

/**
 * Mends the connections to the database, and lets every service open them before any time of the test's clock passes: otherwise minutes could
 * pass for one service while another one still waits for its connection. Resolves when `service` says that the database recovered.
 */
export async function mendDatabase(service: Service): Promise<void> {
  const from = service.lines.length;
  world.mend();
  await systemClock.sleep(LONGEST_RECONNECT_MS);
  await untilLogged(world, service, 'the database recovered', from);
}

/** An upstream that knows the keys `good` and `better`, until it refuses the first. */
export function twoKeys(isRevoked: () => boolean): Pick<ServiceWorldOptions, 'simulator' | 'script'> {
  return {
    simulator: { coins: 12, limits: { keys: { good: 'pro', better: 'pro' } } },
    script: (request) =>
      isRevoked() && /good/.test(request.headers.get('authorization') ?? '')
        ? Promise.resolve(Response.json({ error: 'no such key' }, { status: 403 }))
        : null,
  };
}
