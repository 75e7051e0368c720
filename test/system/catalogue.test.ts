/** The catalogue against a simulator that fails: in the end the warehouse has what the upstream has, and each request is counted. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { CATALOGUE_PLAN } from '../../src/ingest/catalogue/catalogue-plan.ts';
import { createCatalogueRuns } from '../../src/ingest/catalogue/catalogue-run.ts';
import { UpstreamError } from '../../src/ingest/outcome.ts';
import { withoutRetry } from '../../src/ingest/request/outage-retry.ts';
import { parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { CATALOGUE_KINDS, demandOf, readComingItems } from '../../src/store/catalogue/catalogue-item.ts';
import { readDocument, readDocuments } from '../../src/store/catalogue/document.ts';
import { createWorld, type World } from '../support/world.ts';

const NOW = Date.UTC(2026, 10, 18, 12);
let world: World;
afterEach(() => world?.close());

test.each([1, 2])('despite faults, the catalogue is complete and each request counted (seed %i)', async (seed) => {
  const parsed = parseFaultSpec(
    `429:0.06,429-silent:0.04,402-history-limit:0.03,402-spent:0.02,500:0.06,502:0.05,reset:0.06,truncated:0.06,seed=${seed}`,
  );
  if (!parsed.ok) throw new Error(parsed.problem);
  world = await createWorld({
    startAt: NOW,
    speed: 100,
    // No permit is lost on a slow machine, so each counted permit is one request.
    graceMs: 100 * 60_000,
    simulator: { seed: 3, coins: 10, unlimited: true },
    rpcUrl: 'http://upstream.test/rpc',
    faults: () => parsed.spec,
  });
  const { clock, database, simulator } = world;
  const { sql } = database;
  const { session } = await world.open();
  const rows = await sql<{ id: string }[]>`select id from market.coin where is_active order by rank limit 3`;
  const coins = rows.map(({ id }) => id);
  const span = { from: NOW - DAY, to: NOW };
  await wantSeries(sql, { coinIds: coins, quote: 'usd', interval: '24h', span, priority: 0 });
  const runs = createCatalogueRuns({ sql, clock, session, mostOf: () => 50 });
  const signal = new AbortController().signal;
  const answered = async () => {
    const demand = demandOf(await readComingItems(sql, clock.now(), CATALOGUE_PLAN));
    const [done] = await sql<
      { n: number }[]
    >`select count(*) as n from ops.catalogue_item where answered_at is not null`;
    return done!.n >= Object.values(demand).reduce((sum, { items }) => sum + items, 0);
  };
  for (let round = 0; round < 60 && !(await answered()); round++) {
    for (const kind of CATALOGUE_KINDS) {
      const outcome = await runs[kind]({ tick: clock.now(), attempt: 1, signal, retry: withoutRetry }).catch(
        (error: unknown) => {
          if (error instanceof UpstreamError) return null;
          throw error;
        },
      );
      // A short wait is waited out. After a long one the test comes back later.
      const until = outcome?.kind === 'held' ? Math.min(outcome.until, clock.now() + DAY) : clock.now() + 60_000;
      clock.advanceTo(Math.max(clock.now() + 1_000, until));
    }
    const { hold } = await session.quota.state();
    if (hold !== null) clock.advanceTo(hold.until + 1_000);
  }
  expect(await answered()).toBe(true);
  const same = async (kind: Parameters<typeof readDocument>[1], id: string, truth: unknown) =>
    expect(JSON.parse((await readDocument(sql, kind, id))!.text), `${kind} ${id}`).toEqual(
      JSON.parse(JSON.stringify(truth)),
    );
  const { data } = simulator;
  for (const id of coins) await same('coin_events', id, await data.coinEvents(id));
  await same('platforms', '', await data.platforms());
  expect((await readDocuments(sql, 'tag')).map(({ id }) => id)).toEqual((await data.tags()).map(({ id }) => id));
  const [people] = await sql<{ missing: number }[]>`
    select count(*) filter (where person.id is null) as missing
    from market.position p left join market.person on person.id = p.person_id where p.coin_id = any(${coins}::text[])`;
  expect(people!.missing).toBe(0);

  const faults = Object.keys(simulator.counters().faults);
  expect(faults.length).toBeGreaterThan(4);
  const [ledger] = await sql<{ n: number }[]>`select sum(month_spent)::int as n from ops.quota_spent`;
  const [fetches] = await sql<{ n: number }[]>`select count(*) as n from ops.fetch`;
  const seen = simulator.counters().requests.total;
  expect([ledger!.n, fetches!.n]).toEqual([seen, seen]);
});
