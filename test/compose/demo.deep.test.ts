/**
 * `docker compose --env-file .env.demo --profile demo --profile observe up`, with processes in place of containers: the commands,
 * environments and health checks of docker-compose.yml, and the queries of the dashboards, answered by the running processes.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { readComposeFile, readEnvFile, readText } from '../support/compose-file.ts';
import { type Composed, createStarter, type Ended } from '../support/composed.ts';
import { expandSql, metricsIn, type Panel, readDashboards } from '../support/dashboards.ts';
import { createEmptyDatabase, type TestDatabase, testRedisUrl } from '../support/database.ts';

const env = readEnvFile('.env.demo');
const file = readComposeFile(env);
const start = createStarter(file, env);
const dashboards = readDashboards();
const panels = dashboards.flatMap(({ uid, panels }) =>
  panels.map((panel) => ({ ...panel, name: `${uid}: ${panel.title}` })),
);

let database: TestDatabase;
let simulator: Composed;
/** The one-shot services as they ended, then the ones that keep running. */
const done: Record<string, Ended & { readonly output: string }> = {};
const running: Composed[] = [];
let addresses: Record<string, string>;
/** In place of the volume of that name. */
let attestations: string;

beforeAll(async () => {
  attestations = await mkdtemp(join(tmpdir(), 'attestations-'));
  database = await createEmptyDatabase();
  simulator = await start('simulator', { '8090': '0' });
  const { DATABASE_URL, REDIS_URL } = file.services.worker!.environment;
  addresses = {
    [DATABASE_URL!]: database.url,
    // When there is no Redis here, the queue is in Postgres.
    [REDIS_URL!]: testRedisUrl() ?? '',
    'simulator:8090': await simulator.address(),
    '0.0.0.0:8080': '0.0.0.0:0',
    '0.0.0.0:8081': '0.0.0.0:0',
    '/attestations': attestations,
  };
  for (const name of ['migrate', 'track']) {
    const shot = await start(name, addresses);
    done[name] = { ...(await shot.ended), output: shot.output() };
  }
  const workers = Array.from({ length: Number(file.services.worker!.deploy.replicas) }, () => 'worker');
  for (const name of ['scheduler', ...workers, 'http']) running.push(await start(name, addresses));
  await vi.waitFor(
    async () => {
      for (const one of running) expect(await one.health(), one.output()).toBe(0);
      const [there] = await database.sql`
        select (select count(*)::int from market.freshness where seen_until is not null) as seen,
          (select count(*)::int from market.candle) > 20000 as candles, (select count(*)::int from market.ticker) as tickers,
          (select count(*)::int from market.global_history) as global`;
      expect(there).toEqual({ seen: 40, candles: true, tickers: expect.any(Number), global: expect.any(Number) });
      expect(there!.global).toBeGreaterThan(0);
      expect(there!.tickers).toBeGreaterThan(100);
    },
    { timeout: 150_000, interval: 1_000 },
  );
}, 200_000);

afterAll(async () => {
  await Promise.all([...running, simulator].map((one) => one?.stop()));
  await database?.drop();
  await rm(attestations, { recursive: true, force: true });
});

describe('the services', () => {
  test('migrate and track end once, with success', () => {
    expect(done).toMatchObject({ migrate: { code: 0 }, track: { code: 0 } });
    expect(done.migrate!.output).toMatch(/^Applied \d+ migrations/);
  });

  test('a health check fails while a process is not ready, and when it is gone', async () => {
    const { DATABASE_URL } = file.services.http!.environment;
    const lonely = await start('http', { ...addresses, [DATABASE_URL!]: 'postgres://chandler@127.0.0.1:1/chandler' });
    expect(await lonely.health()).toBe(1);
    expect(await fetch(`http://${await lonely.address()}/health`).then(({ ok }) => ok)).toBe(true);
    expect(await lonely.stop()).toEqual({ code: 0, signal: null });
    expect(await lonely.health()).toBe(1);
    expect(await simulator.health()).toBe(0);
  });

  test('write an attestation, and each shows its root', async () => {
    for (const one of running) {
      const health = async () => (await fetch(`http://${await one.address()}/health`)).json();
      await expect
        .poll(health, { timeout: 60_000, interval: 1_000 })
        .toMatchObject({ attestation: { file: expect.any(String), root: expect.stringMatching(/^[0-9a-f]{64}$/) } });
    }
  });

  test('log one JSON object a line, and no password', async () => {
    const secret = new URL(database.url).password;
    for (const one of running) {
      const output = one.output();
      for (const line of output.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('level');
      if (secret !== '') expect(output).not.toContain(secret);
    }
  });
});

describe('Prometheus', () => {
  /** Metric → its labels, of all processes together; null for a metric without samples, whose labels are unknown. */
  let exported: Map<string, Set<string> | null>;
  beforeAll(async () => {
    const texts = running.map(async (one) => (await fetch(`http://${await one.address()}/metrics`)).text());
    exported = readMetrics((await Promise.all(texts)).join('\n'));
  });

  test('finds every process of Chandler by the name of its service', () => {
    const { scrape_configs } = parse(readText('.observe/prometheus.yml')) as {
      scrape_configs: { job_name: string; dns_sd_configs: { names: string[]; port: number }[] }[];
    };
    expect(
      scrape_configs.map((job) => [job.job_name, job.dns_sd_configs[0]!.names, job.dns_sd_configs[0]!.port]),
    ).toEqual([...new Set(running.map(({ name }) => name))].map((name) => [name, [name], 8081]));
  });

  test.each(targetsOf(panels, 'prometheus').map(({ name, expr }) => [name, expr!] as const))('%s: %s', (_, expr) => {
    const asked = metricsIn(expr);
    expect(asked.length).toBeGreaterThan(0);
    for (const { metric, labels } of asked) {
      // Prometheus makes this metric itself: whether it got an answer.
      if (metric === 'up') continue;
      expect(exported.has(metric), `${metric} is in no /metrics`).toBe(true);
      const known = exported.get(metric);
      if (known) expect(['job', 'instance', ...known]).toEqual(expect.arrayContaining([...labels]));
    }
  });

  test('has samples of what the demo does: everything except notices', () => {
    const silent = [...new Set(targetsOf(panels, 'prometheus').flatMap(({ expr }) => metricsIn(expr!)))]
      .map(({ metric }) => metric)
      .filter((metric) => metric !== 'up' && !exported.get(metric));
    expect(silent.filter((metric) => metric !== 'chandler_notices_total')).toEqual([]);
  });
});

describe('Grafana', () => {
  test('gets the datasources that the dashboards query, and their files', () => {
    const { datasources } = parse(readText('.observe/grafana/datasources/chandler.yml')) as {
      datasources: { uid: string; type: string; user?: string; secureJsonData?: { password: string } }[];
    };
    const given = datasources.map(({ uid, type }) => `${type} ${uid}`);
    for (const { datasource } of [
      ...panels.flatMap(({ targets }) => targets),
      ...dashboards.flatMap((d) => d.templating.list),
    ]) {
      expect(given).toContain(`${datasource.type} ${datasource.uid}`);
    }
    expect(datasources[1]).toMatchObject({ user: 'analyst', secureJsonData: { password: '$ANALYST_PASSWORD' } });
    expect(file.services.grafana!.environment).toHaveProperty('ANALYST_PASSWORD');
    const { providers } = parse(readText('.observe/grafana/dashboards/chandler.yml')) as {
      providers: { options: { path: string } }[];
    };
    expect(file.services.grafana!.volumes).toContain(`./.observe/dashboards:${providers[0]!.options.path}:ro`);
  });

  test.each(dashboards.map((one) => [one.title, one] as const))('shows %s without an overlap', (_, { panels: all }) => {
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    const taken = new Set<string>();
    for (const {
      title,
      gridPos: { x, y, w, h },
    } of all) {
      expect(x + w, title).toBeLessThanOrEqual(24);
      for (let row = y; row < y + h; row++) {
        for (let column = x; column < x + w; column++) {
          expect(taken.has(`${row} ${column}`), title).toBe(false);
          taken.add(`${row} ${column}`);
        }
      }
    }
  });

  test('lets the role analyst log in, read, and do nothing else', async () => {
    const lines = readText('.observe/analyst.sql').split('\n');
    const sql = lines
      .filter((line) => !line.startsWith('\\'))
      .join('\n')
      .replaceAll(":'password'", "'any'");
    const undone = new Error('roles belong to the whole server');
    await expect(
      database.sql.begin(async (tx) => {
        await tx.unsafe(sql);
        const [role] = await tx`
          select rolcanlogin, rolsuper, rolcreaterole, rolconnlimit, rolconfig from pg_roles where rolname = 'analyst'`;
        expect(role).toMatchObject({ rolcanlogin: true, rolsuper: false, rolcreaterole: false, rolconnlimit: 20 });
        expect(role!.rolconfig).toContain('default_transaction_read_only=on');
        throw undone;
      }),
    ).rejects.toBe(undone);
  });

  describe('reads as an analyst', () => {
    const span = { from: new Date('2000-01-01T00:00:00Z'), to: new Date('2100-01-01T00:00:00Z') };
    const variables: Record<string, string> = {};
    const ask = (sql: string) =>
      database.sql.begin('read only', async (tx) => {
        await tx`set local role analyst`;
        return tx.unsafe(expandSql(sql, { ...span, variables }));
      });
    /** What a healthy demo never has, or has only by chance. */
    const mayBeEmpty = ['Revisions', 'Newest revisions', 'Quarantined rows', 'Least complete series'];

    beforeAll(async () => {
      // Variables that are chosen when the dashboard is opened, each after those it depends on.
      for (const { name, query } of dashboards.flatMap(({ templating }) => templating.list)) {
        const rows = await ask(query);
        variables[name] = String(Object.values(rows[0]!)[0]);
      }
      expect(variables).toEqual({ coin: expect.stringMatching(/^\w+-/), interval: '24h', quote: 'usd' });
    });

    test.each(targetsOf(panels, 'warehouse').map((one) => [one.name, one] as const))('%s', async (_, one) => {
      const rows = await ask(one.rawSql!);
      if (!mayBeEmpty.includes(one.title)) expect(rows.length).toBeGreaterThan(0);
      const columns = rows.columns.map(({ name }) => name);
      if (one.format === 'time_series' || one.type === 'candlestick') {
        expect(columns[0]).toBe('time');
        // timestamptz
        expect(rows.columns[0]!.type).toBe(1184);
      }
      if (one.type === 'candlestick') expect(columns).toEqual(['time', 'open', 'high', 'low', 'close', 'volume']);
    });
  });
});

describe('a stop', () => {
  test('every process ends by itself within the time that Compose gives it, with success', async () => {
    const ends = await Promise.all(running.map(async (one) => [one.name, await one.stop()]));
    expect(ends).toEqual(running.map(({ name }) => [name, { code: 0, signal: null }]));
    for (const one of running) expect(one.output()).toContain('"msg":"stopped"');
    expect(await database.sql`select from ops.instance`).toHaveLength(0);
    expect(await simulator.stop()).toEqual({ code: 0, signal: null });
  });
});

function targetsOf<P extends Panel>(all: readonly P[], uid: string) {
  return all.flatMap(({ targets, ...panel }) =>
    targets.filter(({ datasource }) => datasource.uid === uid).map((target) => ({ ...panel, ...target })),
  );
}

/** Prometheus' text format, as far as names go. */
function readMetrics(text: string): Map<string, Set<string> | null> {
  const metrics = new Map<string, Set<string> | null>();
  for (const line of text.split('\n')) {
    const declared = /^# TYPE (\S+) (\w+)$/.exec(line);
    if (declared !== null) {
      const [, name, kind] = declared as unknown as [string, string, string];
      for (const suffix of kind === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']) {
        if (!metrics.has(name + suffix)) metrics.set(name + suffix, null);
      }
    }
    const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/.exec(line);
    if (sample === null) continue;
    const labels = metrics.get(sample[1]!) ?? new Set<string>();
    for (const [, label] of (sample[2] ?? '').matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) labels.add(label!);
    metrics.set(sample[1]!, labels);
  }
  return metrics;
}
