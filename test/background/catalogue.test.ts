/** The service, as its operator starts it, fills the catalogue over real sockets. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { type Listening, listen } from '../../src/service/http/listen.ts';
import { createSimulator, type Simulator } from '../../src/simulate.ts';
import { runCommand } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { lookOften } from '../support/quick-looks.ts';

const looksOften = lookOften();

let simulator: Simulator;
let server: Listening;
let database: TestDatabase;
beforeAll(async () => {
  simulator = createSimulator({
    market: 'made-up',
    coins: 12,
    clock: systemClock,
    unlimited: true,
    onError: (error) => {
      throw error;
    },
  });
  server = await listen(simulator.fetch, { host: '127.0.0.1', port: 0 });
  database = await createTestDatabase();
});
afterAll(async () => {
  await server.close();
  await database.drop();
});

test('the catalogue is filled from the first minute on, through the tools, and status shows its age', async () => {
  const env = {
    DATABASE_URL: database.url,
    CHANDLER_BASE_URL: `${server.url}/v1`,
    CHANDLER_PLAN: 'pro',
    CHANDLER_LISTEN: '127.0.0.1:0',
  };
  const { sql } = database;
  const backfill = await runCommand(['backfill', 'btc-bitcoin', 'eth-ethereum', '--start', '-3d', '--yes'], { env });
  expect(backfill.code).toBe(0);
  const stop = new AbortController();
  looksOften(stop.signal);
  const service = runCommand(['service'], { env, signal: stop.signal });
  try {
    const kinds = {
      coin: 2,
      coin_events: 2,
      coin_exchanges: 2,
      coin_markets: 2,
      platforms: 1,
      tag: expect.any(Number),
      // These kinds depend on the others: their ticks came before there was any of it, and the next ones are an hour away.
      contracts: expect.any(Number),
      exchange_markets: expect.any(Number),
      person: expect.any(Number),
    };
    await vi.waitFor(
      async () => {
        const rows = await sql<{ kind: string; known: number }[]>`select kind, known from market.catalogue`;
        expect(Object.fromEntries(rows.map(({ kind, known }) => [kind, known]))).toMatchObject(kinds);
      },
      { timeout: 60_000, interval: 250 },
    );
    // One call for the list of tools, by the schedules that came first.
    const asked = await sql<{ endpoint: string; outcome: string }[]>`
      select distinct endpoint, outcome from ops.fetch where endpoint in ('tools', 'coin_details', 'coin_markets')`;
    expect(asked.map(({ endpoint, outcome }) => `${endpoint} ${outcome}`).sort()).toEqual([
      'coin_details stored',
      'coin_markets stored',
      'tools stored',
    ]);
  } finally {
    stop.abort();
    await service;
  }
  // The recipes that docs/sql.md shows to analysts.
  const [, shown] = /## The catalogue.*?```sql\n(.*?)```/s.exec(readFileSync('docs/sql.md', 'utf8'))!;
  const statements = shown!.split(/;\s*\n/).filter((text) => text.trim() !== '');
  expect(statements).toHaveLength(4);
  for (const statement of statements) await sql.unsafe(statement);
  const { out } = await runCommand(['status'], { env });
  expect(out).toMatch(/^coin_details +2 +2 /m);
  const { out: json } = await runCommand(['status', '--json'], { env });
  const { catalogue } = JSON.parse(json) as { catalogue: { kind: string; items: number; answered: number }[] };
  expect(catalogue.find(({ kind }) => kind === 'coin_markets')).toMatchObject({ items: 2, answered: 2 });
});
