/** The registry of tools: when they are listed, which are used, and how long the interface is not used after a failure. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { HOUR } from '../../../src/core/interval.ts';
import { createToolRegistry } from '../../../src/ingest/catalogue/tool-registry.ts';
import { withoutRetry } from '../../../src/ingest/request/outage-retry.ts';
import type { RequestResult, SendRequest } from '../../../src/ingest/request/send-request.ts';
import { readRpc } from '../../../src/store/work/rpc-interface.ts';
import type { Answer, Exchange } from '../../../src/upstream/answer.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(() => database.sql`truncate ops.rpc, ops.fetch`);

const NOW = Date.UTC(2026, 10, 21, 12);
const MINUTE = 60_000;
const URL = 'http://upstream.test/rpc';
type Final = Exclude<Answer, { kind: 'moved' }>;

const exchange: Exchange = {
  sentAt: NOW,
  durationMs: 1,
  status: 200,
  bytes: 1,
  bodySha256: null,
  asOf: NOW,
  ageMs: 0,
  isByOurClock: false,
  date: NOW,
  latest: NOW,
  simulator: null,
  noContact: null,
};
const record = {
  sentAt: NOW,
  asOf: NOW,
  accountId: 'key-0@upstream.test',
  endpoint: 'tools',
  seriesId: null,
  span: null,
  backfillId: null,
  attempt: 1,
  status: 200,
  outcome: 'answered',
  durationMs: 1,
  rows: 0,
  stored: 0,
  revised: 0,
  quarantined: 0,
  bytes: 1,
  bodySha256: null,
  message: null,
};
const unavailable: Final & { kind: 'unavailable' } = {
  kind: 'unavailable',
  retryAfterMs: null,
  message: '503',
  exchange,
};
const unusable = { kind: 'malformed', message: 'a web page', astray: true, exchange } as const;
const tool = (name: string, required: readonly string[] = [], limit?: number) => ({
  name,
  inputSchema: { required, properties: limit === undefined ? {} : { limit: { maximum: limit } } },
});
const page = (tools: readonly unknown[], nextCursor?: string): Final => ({
  kind: 'answered',
  body: { tools, ...(nextCursor === undefined ? {} : { nextCursor }) },
  exchange,
});

function bench(...answers: readonly (Final | Extract<RequestResult, { kind: 'held' }>)[]) {
  const clock = createVirtualClock(NOW);
  const cursors: (string | null)[] = [];
  const sendRequest = (async ({ rpc }: { rpc: { cursor?: string } }) => {
    const answer = answers[cursors.push(rpc.cursor ?? null) - 1];
    if (answer === undefined) throw new Error('nothing was scripted');
    if (answer.kind === 'held') return answer;
    return { kind: 'sent', answer, record, fetchId: null, requests: 1, budgetLeft: false, isRedirectLoop: false };
  }) as unknown as SendRequest;
  const registry = (sharesOrigin = true) =>
    createToolRegistry({ sql: database.sql, clock, tools: { url: URL, sharesOrigin, sendRequest } });
  const find = (name = 'getTags', given: readonly string[] = []) =>
    registry().find(name, {
      given,
      spender: { class: 'scheduled', name: 'tags' },
      retry: withoutRetry,
      signal: undefined,
    });
  return { clock, cursors, registry, find };
}

describe('a tool', () => {
  test('is found in the list of all pages, which is requested once a day', async () => {
    const world = bench(page([tool('getTags', [], 500)], 'next'), page([tool('getCoinById', ['coinId'])]), page([]));
    expect(await world.find()).toEqual({ kind: 'tool', tool: { name: 'getTags', required: [], mostRows: 500 } });
    expect(world.cursors).toEqual([null, 'next']);
    expect(await world.find('getCoinById', ['coinId'])).toMatchObject({ kind: 'tool' });
    world.clock.advance(23 * HOUR);
    expect(await world.find()).toMatchObject({ kind: 'tool' });
    expect(world.cursors).toHaveLength(2);
    world.clock.advance(2 * HOUR);
    expect(await world.find()).toEqual({ kind: 'rest' });
    expect(world.cursors).toHaveLength(3);
    expect(await database.sql`select endpoint, outcome, rows from ops.fetch order by id`).toEqual([
      { endpoint: 'tools', outcome: 'stored', rows: 1 },
      { endpoint: 'tools', outcome: 'stored', rows: 1 },
      { endpoint: 'tools', outcome: 'stored', rows: 0 },
    ]);
  });

  test('that is not listed, or requires arguments that we do not give, is replaced by REST', async () => {
    const world = bench(page([tool('getTags', ['tagId', 'rationale'])]));
    expect(await world.find('getPeopleById')).toEqual({ kind: 'rest' });
    expect(await world.find('getTags')).toEqual({ kind: 'rest' });
    // Our calls always have a rationale.
    expect(await world.find('getTags', ['tagId'])).toMatchObject({ kind: 'tool' });
  });

  test('is listed anew after a call that was not understood, unless the list is less than an hour old', async () => {
    const world = bench(page([tool('getTags')]), page([tool('getTags')]));
    await world.find();
    world.clock.advance(HOUR - 1);
    expect(await world.registry().relist(withoutRetry)).toBe(false);
    world.clock.advance(1);
    expect(await world.registry().relist(withoutRetry)).toBe(true);
    await world.find();
    expect(world.cursors).toHaveLength(2);
  });
});

describe('an interface that cannot be used', () => {
  test('when its list of tools fails is not used for a minute, then for four, and then used again', async () => {
    const world = bench(unavailable, unavailable, page([tool('getTags')]));
    expect(await world.find()).toEqual({ kind: 'rest' });
    expect(await readRpc(database.sql, URL)).toMatchObject({ failures: 1, closedUntil: NOW + MINUTE });
    expect(await world.find()).toEqual({ kind: 'rest' });
    expect(world.cursors).toHaveLength(1);
    world.clock.advance(MINUTE);
    expect(await world.find()).toEqual({ kind: 'rest' });
    expect(await readRpc(database.sql, URL)).toMatchObject({ failures: 2, closedUntil: NOW + 5 * MINUTE });
    world.clock.advance(4 * MINUTE);
    expect(await world.find()).toMatchObject({ kind: 'tool' });
    expect(await readRpc(database.sql, URL)).toMatchObject({ failures: 0, closedUntil: null });
  });

  test('is not used for a day at most, however often it failed', async () => {
    await database.sql`insert into ops.rpc (url, failures) values (${URL}, 40)`;
    const world = bench(unavailable);
    await world.find();
    expect((await readRpc(database.sql, URL)).closedUntil).toBe(NOW + 24 * HOUR);
  });

  test('is left after three failures in a row that may be chance, and at once when nothing there is such an interface', async () => {
    const world = bench();
    const { failed, answered } = world.registry();
    expect(await failed(unavailable, withoutRetry)).toBe(false);
    expect(await failed(unavailable, withoutRetry)).toBe(false);
    await answered(withoutRetry);
    expect(await failed(unavailable, withoutRetry)).toBe(false);
    expect(await failed(unavailable, withoutRetry)).toBe(false);
    expect(await failed(unavailable, withoutRetry)).toBe(true);
    await answered(withoutRetry);
    expect(await failed(unusable, withoutRetry)).toBe(true);
    expect(await world.find()).toEqual({ kind: 'rest' });
  });

  test('is not used for as long as one failure says, although more calls were under way when it failed', async () => {
    const { failed } = bench().registry();
    expect(await failed(unusable, withoutRetry)).toBe(true);
    const closed = { failures: 1, closedUntil: NOW + MINUTE };
    expect(await readRpc(database.sql, URL)).toMatchObject(closed);
    for (let i = 0; i < 5; i++) expect(await failed(i % 2 === 0 ? unavailable : unusable, withoutRetry)).toBe(true);
    expect(await readRpc(database.sql, URL)).toMatchObject(closed);
  });

  test('is not used for as long as it asks, or until the next day when its limit is used up', async () => {
    const limited = { kind: 'limited', by: 'rate', retryAfterMs: 2 * HOUR, message: '429', exchange } as const;
    const world = bench();
    await world.registry().failed(limited, withoutRetry);
    expect((await readRpc(database.sql, URL)).closedUntil).toBe(NOW + 2 * HOUR);
    await world.registry().failed({ ...limited, by: 'quota', retryAfterMs: null }, withoutRetry);
    expect((await readRpc(database.sql, URL)).closedUntil).toBe(NOW + 24 * HOUR);
  });
});

describe('a list that cannot be requested now', () => {
  test('because of the quota is waited for', async () => {
    const world = bench({ kind: 'held', until: NOW + 5, reason: 'day' });
    expect(await world.find()).toEqual({ kind: 'held', until: NOW + 5, reason: 'day' });
    expect((await readRpc(database.sql, URL)).failures).toBe(0);
  });

  test('because its host is the one of REST, which asks for a pause, is waited for as well', async () => {
    const world = bench({ kind: 'limited', by: 'rate', retryAfterMs: 5, message: '429', exchange });
    expect(await world.find()).toEqual({ kind: 'held', until: NOW, reason: 'limited' });
    expect((await readRpc(database.sql, URL)).failures).toBe(0);
  });
});
