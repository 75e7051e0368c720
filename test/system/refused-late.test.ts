import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { says } from '../support/scripted.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';

describe('an upstream that begins to refuse everything after it has answered', () => {
  let database: TestDatabase;
  let upstream: SimulatedUpstream;
  let asked = 0;
  beforeAll(async () => {
    database = await createTestDatabase();
    upstream = await startUpstream({ seed: 3, coins: 40 }, (simulated) => async (request) => {
      return request.url.includes('/ohlcv') && asked++ > 0 ? says(403, 'no such key') : simulated(request);
    });
  });
  afterAll(async () => {
    await upstream?.close();
    await database?.drop();
  });

  test.each([false, true])('ends the run with its report, then the error, and code 2 (--json: %s)', async (json) => {
    asked = 0;
    const args = ['--top', '30', '--start', '-40d', '--end', '-5d', '--interval', json ? '12h' : '24h', '--yes'];
    const { code, out, err } = await runCommand(
      ['backfill', ...args, '--concurrency', '1', ...(json ? ['--json'] : [])],
      {
        env: {
          DATABASE_URL: database.url,
          CHANDLER_BASE_URL: upstream.baseUrl,
          CHANDLER_PLAN: 'enterprise',
          CHANDLER_REQUESTS_PER_SECOND: 'unlimited',
        },
      },
    );
    expect(code, err).toBe(2);
    expect(err).toMatch(/^error: the upstream refused 10 series in a row .*check CHANDLER_API_KEY/m);
    const [row] = await database.sql<{ stored: number; requests: number }[]>`
      select sum(stored)::int as stored, count(*)::int as requests from ops.fetch
      where backfill_id = (select max(id) from ops.backfill)`;
    expect(row!.stored).toBeGreaterThan(30);
    if (json) {
      const { backfill } = JSON.parse(out) as { backfill: Record<string, unknown> };
      expect(backfill).toMatchObject({
        end: 'configurationError',
        message: expect.stringContaining('refused 10 series in a row'),
        ...row,
        byOutcome: { stored: 1, forbidden: 10 },
      });
    } else {
      expect(out).toMatch(new RegExp(`^Stopped early: [\\s\\S]*^ +stored +${row!.stored} candles`, 'm'));
      expect(out).toMatch(/^ +refused +10 requests: forbidden/m);
    }
  });
});
