import { afterEach, describe, expect, test } from 'vitest';
import { isFound, notFound } from '../../../src/contract/answer/not-found.ts';
import { NO_DATA, provenanceOf } from '../../../src/contract/answer/provenance.ts';
import { SIMULATOR_HEADER } from '../../../src/contract/interface/paths.ts';
import { ID_PROVIDERS, type IdProvider } from '../../../src/contract/record/catalogue.ts';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { createCatalogueRuns } from '../../../src/ingest/catalogue/catalogue-run.ts';
import { UpstreamError } from '../../../src/ingest/outcome.ts';
import { withoutRetry } from '../../../src/ingest/request/outage-retry.ts';
import type { RunOutcome } from '../../../src/ingest/schedule-run.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { CATALOGUE_KINDS, type CatalogueKind } from '../../../src/store/catalogue/catalogue-item.ts';
import { readDocument } from '../../../src/store/catalogue/document.ts';
import { readRpc } from '../../../src/store/work/rpc-interface.ts';
import { createWarehouse } from '../../../src/views/market/warehouse.ts';
import { says } from '../../support/scripted.ts';
import { createScriptedWorld, NOW, type ScriptedWorld } from '../../support/scripted-world.ts';
import type { Chandler, WorldOptions } from '../../support/world.ts';

/** These answers come from the same market as the stored data. */
const OURS = { [SIMULATOR_HEADER]: 'made-up, seed 3' };
const RPC_URL = 'http://upstream.test/rpc';
let scripted: ScriptedWorld;
afterEach(() => scripted.world.close());

type Call = {
  readonly id: number;
  readonly method: string;
  readonly params: { name: string; arguments: Record<string, unknown> };
};

/** A world whose first coins are tracked, with runs of the catalogue. */
async function open(options: Partial<WorldOptions> & { readonly tracked?: number; readonly most?: number } = {}) {
  const { tracked = 2, most = 100, ...world } = options;
  scripted = await createScriptedWorld({
    simulator: { seed: 3, coins: 12, unlimited: true, limits: { plan: 'enterprise' } },
    rpcUrl: RPC_URL,
    ...world,
  });
  const chandler = await scripted.world.open();
  const { sql } = scripted.world.database;
  const rows = await sql<
    { id: string }[]
  >`select id from market.coin where is_active order by rank, id limit ${tracked}`;
  const coins = rows.map(({ id }) => id);
  const span = { from: NOW - DAY, to: NOW };
  await wantSeries(sql, { coinIds: coins, quote: 'usd', interval: '24h', span, priority: 0 });
  scripted.upstream.forget();
  return { ...bench(chandler, most), sql, coins, chandler };
}

function bench(chandler: Chandler, most: number) {
  const { clock, database } = scripted.world;
  const { sql } = database;
  const runs = createCatalogueRuns({ sql, clock, session: chandler.session, mostOf: () => most });
  const signal = new AbortController().signal;
  return {
    clock,
    run: (kind: CatalogueKind, tick = clock.now()): Promise<RunOutcome> =>
      runs[kind]({ tick, attempt: 1, signal, retry: withoutRetry }),
    asked: () => scripted.upstream.log.map(({ path }) => path.replace('/v1', '')),
  };
}

/** Answers calls of the JSON-RPC interface; undefined leaves the call to the simulator. */
function tools(
  answer: (call: Call) => unknown | Promise<unknown>,
  rest: (path: string) => Response | null = () => null,
) {
  const calls: Call[] = [];
  scripted.upstream.script = (request, simulated) => {
    const { pathname } = new URL(request.url);
    if (pathname !== '/rpc') return rest(pathname.replace('/v1', ''));
    return (async () => {
      const call = (await request.clone().json()) as Call;
      calls.push(call);
      const said = await answer(call);
      if (said === undefined) return simulated(request);
      if (said instanceof Response) return said;
      return Response.json({ jsonrpc: '2.0', id: call.id, ...(said as object) }, { headers: OURS });
    })();
  };
  return calls;
}
const text = (data: unknown) => ({
  result: { content: [{ type: 'text', text: typeof data === 'string' ? data : JSON.stringify(data) }] },
});
const failure = (message: string) => ({ error: { code: -32000, message } });
const listing = (...names: string[]) => ({
  result: { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) },
});

const items = async () => [
  ...(await scripted.world.database.sql<{ kind: string; id: string; outcome: string; times: number }[]>`
    select kind, id, outcome, times from ops.catalogue_item order by kind, id`),
];
const fetches = async () =>
  (
    await scripted.world.database.sql<{ endpoint: string; outcome: string; subject: string | null }[]>`
    select endpoint, outcome, subject from ops.fetch where endpoint not in ('tickers', 'coins') order by id`
  ).map(({ endpoint, outcome, subject }) => `${endpoint} ${subject ?? '-'} ${outcome}`);

describe('a run', () => {
  test('lists the tools once, then sends one request for each item, and counts each', async () => {
    const { run, asked, coins, sql, clock, chandler } = await open();
    const before = (await chandler.session.quota.state()).month.spent;
    expect(await run('coin_details')).toEqual({ kind: 'done' });
    expect(asked()).toEqual(['/rpc', '/rpc', '/rpc']);
    expect(await fetches()).toEqual(['tools - stored', ...coins.map((id) => `coin_details ${id} stored`)]);
    expect((await chandler.session.quota.state()).month.spent - before).toBe(3);
    const truth = await Promise.all(coins.map((id) => scripted.world.simulator.data.coin(id)));
    for (const [i, id] of coins.entries()) {
      expect(JSON.parse((await readDocument(sql, 'coin', id))!.text)).toEqual(JSON.parse(JSON.stringify(truth[i])));
    }
    // No item is due before it is old enough.
    expect(await run('coin_details')).toEqual({ kind: 'done' });
    clock.advanceTo(clock.now() + 2 * DAY + 1);
    expect(asked()).toHaveLength(3);
    await run('coin_details');
    expect(asked()).toHaveLength(6);
  });

  test('sends no more requests than allowed and the rest next time; begun again, it continues where it was', async () => {
    const { run, asked, clock, coins } = await open({ tracked: 5, most: 2 });
    const tick = clock.now();
    await run('coin_events', tick);
    clock.advanceTo(clock.now() + 60_000);
    await run('coin_events', tick);
    expect(asked()).toHaveLength(1 + 2);
    await run('coin_events');
    await run('coin_events', clock.now() + 1);
    expect(new Set((await items()).map(({ id }) => id))).toEqual(new Set(coins));
  });

  test('fills every kind from related items: people of coins, contracts of platforms, markets of exchanges', async () => {
    const { run, sql, coins } = await open({ tracked: 6 });
    for (const kind of CATALOGUE_KINDS) expect(await run(kind), kind).toEqual({ kind: 'done' });
    const { data } = scripted.world.simulator;
    const [counts] = await sql`
      select (select count(*) from market.tag where gone_at is null) as tags, (select count(*) from market.platform) as platforms,
        (select count(*) from market.coin_detail) as details, (select count(*) from market.contract where valid_to is null) as contracts,
        (select count(*) from market.coin_event) as events, (select count(*) from market.coin_market) as markets,
        (select count(*) from market.person) as people, (select count(distinct exchange_id) from market.exchange_market) as exchanges`;
    const all = async <T>(of: (id: string) => Promise<readonly T[] | null>, ids: readonly string[]) =>
      (await Promise.all(ids.map(async (id) => (await of(id)) ?? []))).flat();
    const details = await Promise.all(coins.map((id) => data.coin(id)));
    const platforms = await data.platforms();
    expect(counts).toMatchObject({
      tags: (await data.tags()).length,
      platforms: platforms.length,
      details: coins.length,
      contracts: (await all((id) => data.contracts(id), platforms)).length,
      events: (await all((id) => data.coinEvents(id), coins)).length,
      markets: (await all((coinId) => data.coinMarkets({ coinId, quotes: ['USD'] }), coins)).length,
      people: new Set(details.flatMap((coin) => (coin?.team ?? []).map(({ id }) => id))).size,
    });
    expect(Number(counts!.exchanges)).toBeGreaterThan(0);
    expect((await items()).filter(({ outcome }) => outcome !== 'stored')).toEqual([]);
    const [joined] = await sql`
      select count(*) as n from market.coin_detail d join market.position p on p.coin_id = d.coin_id
      join market.person on person.id = p.person_id where p.valid_to is null`;
    expect(Number(joined!.n)).toBeGreaterThan(0);
  });
});

describe('the ids of coins on other sites', () => {
  const mappingOf = async (provider: IdProvider, id: string) => {
    const { database, clock } = scripted.world;
    return createWarehouse({ sql: database.sql, clock }).mapping({ provider, id });
  };

  test('come from REST alone, because the hosted tools get no key, and a search by each of them finds the coin', async () => {
    const { run, asked, coins, clock } = await open({ tracked: 3 });
    expect(await run('coin_mappings')).toEqual({ kind: 'done' });
    expect(asked()).toEqual(coins.map(() => '/coins/mappings'));
    for (const id of coins) {
      const truth = (await scripted.world.simulator.data.mapping({ provider: 'coinpaprika', id }))!;
      for (const provider of ID_PROVIDERS) {
        if (truth[provider] !== '') expect(await mappingOf(provider, truth[provider] as string)).toEqual(truth);
      }
    }
    expect(provenanceOf((await mappingOf('coingecko', 'bitcoin')) as object)).toMatchObject({ coverage: 'full' });
    // This coin is not tracked, or does not exist: no request was sent for it.
    const missing = await mappingOf('coingecko', 'nothing');
    expect([isFound(missing), missing]).toEqual([false, notFound(NO_DATA)]);
    scripted.upstream.forget();
    clock.advanceTo(clock.now() + 29 * DAY);
    await run('coin_mappings');
    expect(asked()).toEqual([]);
    clock.advanceTo(clock.now() + 2 * DAY);
    await run('coin_mappings');
    expect(asked()).toHaveLength(3);
  });

  test('another coin than the requested one, and one that the upstream no longer knows', async () => {
    const { run, coins, clock } = await open({ tracked: 1 });
    await run('coin_mappings');
    clock.advanceTo(clock.now() + 31 * DAY);
    scripted.upstream.script = () =>
      Response.json({ coinpaprika: 'other-coin', coingecko: 'other' }, { headers: OURS });
    await run('coin_mappings');
    expect(await items()).toMatchObject([{ id: coins[0], outcome: 'malformed' }]);
    expect(await mappingOf('coingecko', 'bitcoin')).toMatchObject({ coinpaprika: 'btc-bitcoin' });
    clock.advanceTo(clock.now() + DAY);
    scripted.upstream.script = () => says(404, 'id not found');
    await run('coin_mappings');
    expect(isFound(await mappingOf('coinpaprika', 'btc-bitcoin'))).toBe(false);
    expect(isFound(await mappingOf('coingecko', 'bitcoin'))).toBe(false);
  });

  test('are not requested again under a plan that does not have them', async () => {
    const { run, asked } = await open({ simulator: { seed: 3, coins: 12, unlimited: false, limits: { plan: 'pro' } } });
    const first = await run('coin_mappings');
    expect(first).toMatchObject({ kind: 'held', reason: expect.stringContaining('mappings of ids is not allowed') });
    expect(await run('coin_mappings')).toMatchObject({ kind: 'held' });
    expect(asked()).toEqual(['/coins/mappings']);
  });
});

describe('the JSON-RPC interface', () => {
  test('gets a rationale where it requires one, and is asked for as many rows as it gives', async () => {
    const { run, coins } = await open({ tracked: 1 });
    const calls = tools(({ method }) => {
      if (method !== 'tools/list') return text([]);
      const inputSchema = {
        type: 'object',
        required: ['rationale', 'coinId'],
        properties: { limit: { maximum: 1000 } },
      };
      return { result: { tools: [{ name: 'getCoinEvents', inputSchema }] } };
    });
    await run('coin_events');
    expect(calls[1]!.params).toEqual({
      name: 'getCoinEvents',
      arguments: { coinId: coins[0], limit: 1000, rationale: expect.stringMatching(/^.{20,500}$/) },
    });
  });

  test('is not used when nothing answers there, and REST is used in its place at once', async () => {
    const { run, asked, sql, clock, coins } = await open();
    tools(() => new Response('404 page not found', { status: 404 }));
    expect(await run('coin_details')).toEqual({ kind: 'done' });
    expect(asked()).toEqual(['/rpc', ...coins.map((id) => `/coins/${id}`)]);
    expect(await readRpc(sql, RPC_URL)).toMatchObject({
      failures: 1,
      closedUntil: expect.closeTo(clock.now() + 60_000, -5),
    });
    // This is not an outage of REST: nothing waits.
    expect((await items()).map(({ outcome }) => outcome)).toEqual(['stored', 'stored']);
    scripted.upstream.script = null;
    clock.advanceTo(clock.now() + 2 * DAY);
    scripted.upstream.forget();
    await run('coin_details');
    expect(asked()).toEqual(['/rpc', '/rpc', '/rpc']);
    expect(await readRpc(sql, RPC_URL)).toMatchObject({ failures: 0, closedUntil: null });
  });

  test('that lacks a tool is still used for the others', async () => {
    const { run, asked, coins } = await open({ tracked: 1 });
    tools(({ method }) => (method === 'tools/list' ? listing('getTags', 'getCoinEvents') : undefined));
    await run('coin_details');
    await run('coin_events');
    expect(asked()).toEqual(['/rpc', `/coins/${coins[0]}`, '/rpc']);
  });

  test('gives the beginning of a list: the whole list is requested from REST, now and from then on', async () => {
    const { run, asked, sql, clock, coins } = await open({ tracked: 1 });
    const event = (n: number) => ({ id: `e${n}`, date: '2026-01-01T00:00:00Z', name: `Event ${n}` });
    const all = Array.from({ length: 300 }, (_, i) => event(i));
    tools(
      ({ method }) => (method === 'tools/list' ? undefined : text(all.slice(0, 250))),
      // The answer of a cache is older than the tool's, and still has the rows that the tool left out.
      () => Response.json(all, { headers: { ...OURS, Age: '600' } }),
    );
    await run('coin_events');
    expect(asked()).toHaveLength(3);
    expect(await readDocument(sql, 'coin_events', coins[0]!)).toMatchObject({ isTruncated: false });
    expect(Number((await sql`select count(*) as n from market.coin_event where gone_at is null`)[0]!.n)).toBe(300);
    clock.advanceTo(clock.now() + 2 * DAY);
    scripted.upstream.forget();
    await run('coin_events');
    expect(asked()).toEqual([expect.stringMatching(/^\/coins\/.*\/events$/)]);
  });

  test('gives the beginning of a list that REST refuses: both are requested once a day, not at each run', async () => {
    const { run, clock, coins, asked } = await open({ tracked: 1, most: 8 });
    const market = { exchange_id: 'x', pair: 'A/B', base_currency_id: 'a-a', quote_currency_id: 'b-b', quotes: {} };
    tools(
      ({ method, params }) => {
        if (method !== 'tools/call' || params.arguments.coinId !== coins[0]) return undefined;
        const rows = Array.from({ length: Number(params.arguments.limit) }, (_, i) => ({
          ...market,
          exchange_id: `x${i}`,
        }));
        return text(rows);
      },
      (path) => (path.includes('/markets') ? says(403, 'forbidden') : null),
    );
    for (let i = 0; i < 2 * 24; i++) {
      await run('coin_markets');
      clock.advanceTo(clock.now() + HOUR);
    }
    expect(asked().filter((path) => path.includes('/markets'))).toHaveLength(2);
  });
});

test('data of another market is not mixed in, and the error names the address', async () => {
  const { run, sql } = await open({ tracked: 1 });
  scripted.upstream.script = (request) => {
    if (new URL(request.url).pathname !== '/rpc') return null;
    return (async () => {
      const { id, method } = (await request.json()) as Call;
      return Response.json({ jsonrpc: '2.0', id, ...(method === 'tools/list' ? listing('getCoinEvents') : text([])) });
    })();
  };
  await expect(run('coin_events')).rejects.toThrow(/simulated market.*CHANDLER_RPC_URL answers with the real market/);
  expect(Number((await sql`select count(*) as n from market.document`)[0]!.n)).toBe(0);
});

describe('a failure', () => {
  test('of an id that upstream does not know: the id is kept, marked, and requested less and less often', async () => {
    const { run, clock, asked, sql, coins } = await open({ tracked: 1 });
    await run('coin_details');
    tools(({ method }) => (method === 'tools/list' ? undefined : failure('404: id not found')));
    clock.advanceTo(clock.now() + 2 * DAY + 1);
    await run('coin_details');
    expect(await readDocument(sql, 'coin', coins[0]!)).toMatchObject({ goneAt: expect.any(Number) });
    expect(Number((await sql`select count(*) as n from market.coin_detail`)[0]!.n)).toBe(1);
    scripted.upstream.forget();
    for (let hour = 0; hour < 30 * 24; hour += 6) {
      clock.advanceTo(clock.now() + 6 * HOUR);
      await run('coin_details');
    }
    // After one day, four, sixteen; and the tools are listed once a day at most.
    expect((await items())[0]).toMatchObject({ outcome: 'unknown id', times: 4 });
    expect(asked().length).toBeLessThanOrEqual(2 * 3);
  });

  test('of one item does not stop the others', async () => {
    const { run, coins } = await open({ tracked: 4 });
    tools(({ method, params }) =>
      method === 'tools/call' && params.arguments.coinId === coins[1] ? text('{"id":"x-y"}') : undefined,
    );
    expect(await run('coin_details')).toEqual({ kind: 'done' });
    const got = Object.fromEntries((await items()).map(({ id, outcome }) => [id, outcome]));
    expect(coins.map((id) => got[id])).toEqual(['stored', 'malformed', 'stored', 'stored']);
  });

  test('of an upstream that is down fails the run after two requests', async () => {
    const { run, asked } = await open({ tracked: 4 });
    tools(
      () => says(503, 'no'),
      () => says(503, 'no'),
    );
    await expect(run('coin_details')).rejects.toThrow(UpstreamError);
    // The list of tools, and two coins.
    expect(asked()).toHaveLength(3);
  });

  test('with a pause that upstream asks for pauses the whole account', async () => {
    const { run, chandler, asked } = await open();
    tools(() => Response.json({ error: 'too fast' }, { status: 429, headers: { 'Retry-After': '90' } }));
    expect(await run('coin_details')).toMatchObject({ kind: 'held', reason: 'limited' });
    expect(asked()).toHaveLength(1);
    expect((await chandler.session.quota.state()).hold).toMatchObject({ reason: 'limited' });
  });

  test.each([
    ['402: this endpoint requires a paid plan', 'history limit'],
    ['403: not available on the free tier', 'forbidden'],
  ])('%s to three items switches the schedule off until the plan changes, and says so', async (message, reason) => {
    const { run, clock, chandler, asked, sql } = await open({ tracked: 3 });
    tools(({ method }) => (method === 'tools/list' ? undefined : failure(message)));
    for (let hour = 0; hour < 20; hour++) {
      const outcome = await run('people');
      expect(outcome).toEqual({ kind: 'done' });
      await run('coin_markets');
      clock.advanceTo(clock.now() + HOUR);
    }
    expect(asked()).toHaveLength(1 + 3);
    expect(await run('coin_markets')).toMatchObject({
      kind: 'held',
      reason: expect.stringContaining(`the plan does not include this, until it changes: `),
    });
    const [refusal] = await sql`
      select key, evidence->>'reason' as reason, answers from ops.second_opinion where claim = 'catalogue refusal'`;
    const { accountId } = chandler.session;
    expect(refusal).toEqual({ key: `${accountId} enterprise coin_markets`, reason, answers: 3 });
    scripted.upstream.script = null;
    const richer = bench(await scripted.world.open({ plan: 'ultimate' }), 100);
    expect(await richer.run('coin_markets')).toEqual({ kind: 'done' });
    expect((await items()).map(({ outcome }) => outcome)).toEqual(['stored', 'stored', 'stored']);
  });

  test.each([
    ['402: this endpoint requires a paid plan', 'history limit'],
    ['403: not available on the free tier', 'forbidden'],
  ])('%s to one item concerns only that item, which is requested less and less often', async (message, outcome) => {
    const { run, clock, coins, sql } = await open({ tracked: 4 });
    const calls = tools(({ method, params }) =>
      method === 'tools/call' && params.arguments.coinId === coins[0] ? failure(message) : undefined,
    );
    for (let hour = 0; hour < 60 * 24; hour += 6) {
      await run('coin_details');
      clock.advanceTo(clock.now() + 6 * HOUR);
    }
    const about = (id: string | undefined) => calls.filter(({ params }) => params?.arguments?.coinId === id).length;
    // Six times in the first days, then after three days, eleven and thirty.
    expect(about(coins[0])).toBe(10);
    for (const id of coins.slice(1)) expect(about(id)).toBeGreaterThanOrEqual(29);
    const got = Object.fromEntries((await items()).map((item) => [item.id, item.outcome]));
    expect(coins.map((id) => got[id])).toEqual([outcome, 'stored', 'stored', 'stored']);
    expect(await sql`select from ops.second_opinion where claim = 'catalogue refusal' and answers > 1`).toEqual([]);
  });

  test('of items that were never answered does not stop those that were; once these are refused too, the kind is', async () => {
    const { run, clock, coins, sql } = await open({ tracked: 7 });
    let good = new Set(coins.slice(0, 3));
    tools(({ method, params }) =>
      method === 'tools/call' && !good.has(String(params.arguments.coinId)) ? failure('403: forbidden') : undefined,
    );
    const outcomes = async () => {
      const got = new Map((await items()).map(({ id, outcome }) => [id, outcome]));
      return coins.map((id) => got.get(id));
    };
    const refused = Array.from({ length: 4 }, () => 'forbidden');
    expect(await run('coin_details')).toEqual({ kind: 'done' });
    expect(await outcomes()).toEqual(['stored', 'stored', 'stored', ...refused]);
    clock.advanceTo(clock.now() + 2 * DAY + 1);
    scripted.upstream.forget();
    expect(await run('coin_details')).toEqual({ kind: 'done' });
    expect(await outcomes()).toEqual(['stored', 'stored', 'stored', ...refused]);
    good = new Set();
    for (let hour = 0; hour < 3 * 24; hour++) {
      await run('coin_details');
      clock.advanceTo(clock.now() + HOUR);
    }
    expect(await outcomes()).toEqual(coins.map(() => 'forbidden'));
    const [refusal] = await sql`select answers from ops.second_opinion where claim = 'catalogue refusal'`;
    expect(refusal).toEqual({ answers: 3 });
    expect(await run('coin_details')).toMatchObject({ kind: 'held', reason: expect.stringContaining('the plan does') });
  });

  test.each([
    ['a 403 and a 503 by turns', () => says(503, 'no')],
    ['a 403 and a 402 by turns', () => failure('402: this endpoint requires a paid plan')],
  ])('of one item with %s does not stop its kind, and is requested less and less often', async (_, other) => {
    const { run, clock, coins, sql } = await open({ tracked: 4 });
    await run('coin_details');
    clock.advanceTo(clock.now() + 2 * DAY + HOUR);
    let requests = 0;
    tools(
      ({ method, params }) => {
        if (method !== 'tools/call' || params.arguments.coinId !== coins[0]) return undefined;
        return requests++ % 2 === 0 ? failure('403: forbidden') : other();
      },
      (path) => (path.includes(`coins/${coins[0]}`) ? says(403, 'forbidden') : null),
    );
    for (let i = 0; i < 2 * 24; i++) {
      const ended = await run('coin_details').catch((error: unknown) => error);
      expect(ended).not.toMatchObject({ reason: expect.stringContaining('the plan does not') });
      clock.advanceTo(clock.now() + HOUR / 2);
    }
    expect((await sql`select answers from ops.second_opinion where claim = 'catalogue refusal'`)[0]).toEqual({
      answers: 1,
    });
    expect(requests).toBeLessThan(24);
  });

  test('of the only item ends when the plan changes: the item is requested at once', async () => {
    const { run, clock, asked } = await open({ tracked: 1 });
    tools(({ method }) => (method === 'tools/list' ? undefined : failure('403: not in this plan')));
    for (let hour = 0; hour < 24; hour++) {
      await run('coin_markets');
      clock.advanceTo(clock.now() + HOUR);
    }
    scripted.upstream.forget();
    expect(await run('coin_markets')).toEqual({ kind: 'done' });
    expect(asked()).toEqual([]);
    scripted.upstream.script = null;
    const richer = bench(await scripted.world.open({ plan: 'ultimate' }), 100);
    expect(await richer.run('coin_markets')).toEqual({ kind: 'done' });
    expect(await items()).toMatchObject([{ outcome: 'stored', times: 1 }]);
  });

  test('a list that lost half of its rows is believed only when a second answer agrees', async () => {
    const { run, clock, sql } = await open({ tracked: 1 });
    let rows = 4;
    tools(({ method }) =>
      method === 'tools/list'
        ? undefined
        : text(Array.from({ length: rows }, (_, i) => ({ id: `e${i}`, date: '2026-01-01T00:00:00Z', name: 'E' }))),
    );
    const listed = async () =>
      Number((await sql`select count(*) as n from market.coin_event where gone_at is null`)[0]!.n);
    await run('coin_events');
    rows = 0;
    clock.advanceTo(clock.now() + 2 * DAY);
    await run('coin_events');
    expect([await listed(), (await items())[0]!.outcome]).toEqual([4, 'unconfirmed']);
    await run('coin_events');
    clock.advanceTo(clock.now() + 2 * HOUR);
    await run('coin_events');
    expect([await listed(), (await items())[0]!.outcome]).toEqual([0, 'stored']);
    expect(Number((await sql`select count(*) as n from market.coin_event`)[0]!.n)).toBe(4);
  });

  test('a short list does not count for a later one when a full list came between, whatever else failed meanwhile', async () => {
    const { run, clock } = await open({ tracked: 1 });
    const events = (rows: number) =>
      Array.from({ length: rows }, (_, i) => ({ id: `e${i}`, date: '2026-01-01T00:00:00Z', name: 'E' }));
    let answer: unknown = events(4);
    tools(({ method }) => (method === 'tools/list' ? undefined : text(answer)));
    const outcomes: unknown[] = [];
    for (const next of [events(4), events(1), 'broken', events(4), events(1)]) {
      answer = next;
      clock.advanceTo(clock.now() + 2 * DAY);
      await run('coin_events').catch(() => undefined);
      outcomes.push((await items())[0]!.outcome);
    }
    expect(outcomes).toEqual(['stored', 'unconfirmed', 'malformed', 'stored', 'unconfirmed']);
  });

  test('impossible rows are quarantined, and the rest is kept', async () => {
    const { run, sql, coins } = await open({ tracked: 1 });
    const good = {
      exchange_id: 'x',
      pair: 'A/B',
      base_currency_id: 'a-a',
      quote_currency_id: 'b-b',
      quotes: { USD: { price: 1.5, volume_24h: 2 } },
    };
    const list = `[${JSON.stringify(good)}, ${JSON.stringify({ ...good, quotes: { USD: { price: -1 } } })},{"pair": 7}]`;
    tools(({ method }) => (method === 'tools/list' ? undefined : text(list)));
    await run('coin_markets');
    expect((await readDocument(sql, 'coin_markets', coins[0]!))!.text).toBe(`[${JSON.stringify(good)}]`);
    const [market] = await sql`select exchange_id, price, volume_24h, gone_at from market.coin_market`;
    expect(market).toEqual({ exchangeId: 'x', price: 1.5, volume24h: 2, goneAt: null });
    const aside = await sql`select endpoint, record_id, reason from market.quarantine order by reason`;
    expect([...aside]).toEqual([
      { endpoint: 'coin_markets', recordId: `${coins[0]}/`, reason: 'exchange_id: expected string' },
      { endpoint: 'coin_markets', recordId: `${coins[0]}/`, reason: 'quotes.USD.price is negative or not finite' },
    ]);
  });
});

test('a coin that is dead or was renamed is not requested as if it were alive', async () => {
  const { run, clock, asked, sql, coins } = await open({ tracked: 3 });
  await run('coin_events');
  const [dead, old, alive] = coins as [string, string, string];
  await sql`update market.coin set is_active = false where id = ${dead}`;
  await sql`insert into market.coin (id, name, symbol, rank, is_new, is_active, first_seen_at, last_seen_at, rank_seen_at)
    select 'new-id', name, symbol, rank, is_new, true, last_seen_at, last_seen_at, rank_seen_at from market.coin where id = ${old}`;
  await sql`update market.series set coin_id = 'new-id' where coin_id = ${old}`;
  const calls = tools(({ method }) => (method === 'tools/list' ? undefined : text([])));
  clock.advanceTo(clock.now() + 2 * DAY);
  scripted.upstream.forget();
  await run('coin_events');
  const about = calls.filter(({ method }) => method === 'tools/call').map(({ params }) => params.arguments.coinId);
  expect(about).toEqual(['new-id', alive]);
  expect(asked()).toHaveLength(3);
  // The data under the old id stays.
  expect(await readDocument(sql, 'coin_events', old)).not.toBeNull();
});
