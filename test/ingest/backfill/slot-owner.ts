/** Rules, backfills and the audit of gaps, all of which want slots. */
import { expect } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { auditGaps } from '../../../src/ingest/tracking/audit.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { addTracks } from '../../../src/store/tracking/track-rule.ts';
import { runCommand } from '../../support/cli.ts';
import { NOW, type open, world } from './backfill-runner.ts';

export async function chandler(...argv: string[]): Promise<string> {
  const env = {
    DATABASE_URL: world.database.url,
    CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1',
    CHANDLER_PLAN: 'enterprise',
  };
  const { code, out, err } = await runCommand(argv, { env, clock: world.clock });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return out;
}

export async function track(coinIds: readonly string[], since: number): Promise<void> {
  const term = { tier: 'list', interval: '24h', quote: 'usd', priority: 10, targetAgeMs: DAY } as const;
  await addTracks(
    world.database.sql,
    coinIds.map((coinId) => ({ ...term, coinId, since })),
    NOW,
  );
  await applyTracks(world.database.sql, NOW);
}

/** Runs the audit of gaps as the service does each hour. Resolves to the ids of the backfills that it queued. */
export function audits({ session: { plan, historyLimits } }: Awaited<ReturnType<typeof open>>) {
  return async () => {
    const queued = await auditGaps({ sql: world.database.sql, clock: world.clock, plan, historyLimits });
    return queued.map(({ id }) => id);
  };
}
