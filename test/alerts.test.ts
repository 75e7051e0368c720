/** The alert rules of .observe/ cover all events, use existing metrics, and pass their own test. */
import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { createMetrics } from '../src/background/health/metrics.ts';
import { NOTICE_EVENTS } from '../src/core/settings/notice-settings.ts';
import { ROOT, readText } from './support/compose-file.ts';
import { metricsIn } from './support/dashboards.ts';

const rule = z.strictObject({
  alert: z.string().regex(/^Chandler[A-Z]\w+$/),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.strictObject({ event: z.string(), severity: z.enum(['critical', 'warning', 'info']) }),
  annotations: z.strictObject({ summary: z.string(), description: z.string() }),
});
const groups = z.object({ groups: z.array(z.object({ name: z.string(), rules: z.array(rule) })) });
const rules = groups.parse(parse(readText('.observe/alerts.yml'))).groups.flatMap((group) => group.rules);

const hasPromtool = spawnSync('promtool', ['--version']).error === undefined;
if (!hasPromtool) {
  const message = 'no promtool on the path (Debian: the package prometheus)';
  if (process.env.CI === 'true' || process.env.CI === '1') throw new Error(`${message} (in CI nothing may be skipped)`);
  process.stderr.write(`\n${message}; what the alert rules do is not tested\n\n`);
}

/** The metrics of a process that knows every state and has counted one event of each kind. */
async function exposed(): Promise<string> {
  const metrics = createMetrics();
  const window = { start: 0, reset: 1, spent: 0, limit: 10 };
  const job = { kind: 'freshness' } as Parameters<typeof metrics.chunk>[0];
  metrics.chunk(job, { kind: 'stored', requests: 1, stored: 1, revised: 1, quarantined: 1 });
  const rate = { limit: 1, now: 1, nextFree: 0 };
  const quota = { accountId: '', now: 0, month: window, day: window, rate, hold: null, outage: null };
  const { text } = await metrics.text(async () => ({
    warehouse: {
      tiers: [],
      backfills: ['done', 'failed', 'queued'].map((state) => ({ state, n: 1 })),
      connections: [],
      lastDone: [],
      revisions: 0,
      quarantined: 0,
      historyLimits: 0,
    },
    ledger: { quota, reserved: { day: 0, month: 0 } },
    queued: null,
    states: (['key-refused', 'upstream-down', 'stuck', 'behind', 'disk', 'lake'] as const).map((event) => ({
      event,
      since: event === 'stuck' ? 0 : null,
    })),
    disks: [{ folder: '/data', freeBytes: 1 }],
    incidents: ['the database'],
    isReady: true,
  }));
  return text;
}

describe('the alert rules', () => {
  test('cover every event that the webhook sends, and silence', () => {
    expect(new Set(rules.map(({ labels }) => labels.event))).toEqual(new Set([...NOTICE_EVENTS, 'silence']));
  });

  test('use existing metrics and labels', async () => {
    const text = await exposed();
    for (const { alert, expr } of rules) {
      for (const { metric } of metricsIn(expr)) {
        if (metric === 'up') continue;
        expect(text, alert).toMatch(new RegExp(`^${metric}[ {]`, 'm'));
      }
      for (const [selector] of expr.matchAll(/chandler_\w+\{\w+="[\w-]+"/g)) expect(text, alert).toContain(selector);
    }
  });

  test('have their counters exposed before these increase', async () => {
    const { text } = await createMetrics().text(async () => ({
      ...{ warehouse: null, ledger: null, queued: null, states: null, disks: [], incidents: [], isReady: true },
    }));
    const increasing = rules.flatMap(({ expr }) => [...expr.matchAll(/increase\((\w+)/g)].map(([, metric]) => metric!));
    expect(increasing.length).toBeGreaterThan(1);
    for (const metric of increasing)
      for (const kind of ['backfill', 'freshness', 'holes']) expect(text).toContain(`\n${metric}{kind="${kind}"} 0\n`);
  });

  test('get each state from a process, whether it holds or not', async () => {
    const text = await exposed();
    expect(text).toMatch(/^chandler_alert\{event="stuck"\} 1$/m);
    expect(text).toMatch(/^chandler_alert\{event="key-refused"\} 0$/m);
    expect(text).toMatch(/^chandler_alert\{event="database-down"\} 1$/m);
    expect(text).toMatch(/^chandler_incident\{what="the database"\} 1$/m);
  });

  test.runIf(hasPromtool)('pass .observe/alerts.test.yml, which tests every rule', () => {
    const run = (...argv: string[]) => execFileSync('promtool', argv, { cwd: `${ROOT}/.observe`, encoding: 'utf8' });
    expect(run('check', 'config', 'prometheus.yml')).toMatch(/SUCCESS: \d+ rules found/);
    expect(run('test', 'rules', 'alerts.test.yml')).toMatch(/SUCCESS/);
    const tested = readText('.observe/alerts.test.yml');
    for (const { alert } of rules) expect(tested).toContain(`labels: 'ALERTS{alertname="${alert}"`);
  });
});
