/** Pages of a dashboard that each opens anew, and backfills for them. */
import { afterEach, beforeEach } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import { HOUR } from '../../src/core/interval.ts';
import { createTestDashboard } from '../support/dashboard.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

export const NOTHING = 'Nothing. No request is held';
export const ENV = { CHANDLER_PLAN: 'free', CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1' };

export let database: TestDatabase;

export function useDatabase(): void {
  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(() => database.drop());
}

/** A page of a new dashboard, which has nothing cached. */
export async function look(path = '/', clock: Clock = systemClock): Promise<string> {
  const page = await createTestDashboard(database.url, { clock, states: () => [], env: ENV });
  try {
    return textOf(await page.page(path));
  } finally {
    await page.close();
  }
}

export function textOf(html: string): string {
  return html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
}

/** A backfill of the daily candles of one coin over a span. */
export async function seedBackfill(row: {
  state: string;
  span: string;
  coin?: string;
  isDetached?: boolean;
  finishedAt?: number;
  message?: string;
}) {
  const { state, span, coin = 'btc-bitcoin', isDetached = true, finishedAt = null, message = null } = row;
  const at = systemClock.now() - HOUR;
  const [made] = await database.sql<{ id: number }[]>`
    insert into ops.backfill (requested_at, started_at, finished_at, heartbeat_at, owner, state, spec, span, interval, quote, planned_requests,
      is_detached, coin_ids, left_requests, message)
    values (${at}, ${at}, ${finishedAt}, ${at}, 'host:1', ${state}, '{}', ${span}::tstzrange, '24h', 'usd', 4, ${isDetached}, ${[coin]}, 7, ${message})
    returning id`;
  return made!.id;
}
