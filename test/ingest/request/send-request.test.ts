/** One request, from the permit to its record: against a scripted upstream, the real client, the real ledger and a real database. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ConfigurationError, Unreachable } from '../../../src/ingest/outcome.ts';
import { createAuthSchemeChoice } from '../../../src/ingest/request/auth-scheme.ts';
import { createReachability } from '../../../src/ingest/request/reachability.ts';
import {
  createSendRequest,
  type JudgeQuotaExhausted,
  type SendOptions,
  type SendRequestDeps,
  type SentRequest,
} from '../../../src/ingest/request/send-request.ts';
import { GRACE_MS } from '../../../src/quota/ledger.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { says } from '../../support/scripted.ts';
import { BASE_URL, createScriptedQuota, createScriptedUpstream, NO_LIMITS } from '../../support/scripted-upstream.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(() => database.sql`truncate ops.fetch, ops.quota, ops.quota_spent`);

const ACCOUNT = 'key-0123456789ab@upstream.test';
const OPTIONS: SendOptions = {
  spender: { class: 'scheduled', name: 'tickers' },
  record: { endpoint: 'tickers', attempt: 2, subject: 'bitcoin' },
};
const moved = (location: string) => new Response(null, { status: 302, headers: { location } });

function bench({ limits = NO_LIMITS, ...deps }: Partial<SendRequestDeps> & { limits?: typeof NO_LIMITS } = {}) {
  const upstream = createScriptedUpstream({ key: 'secret' });
  const { clock } = upstream;
  const quota = createScriptedQuota(database, { clock, accountId: ACCOUNT, limits });
  const remembered: string[] = [];
  const judged: boolean[] = [];
  const authScheme = createAuthSchemeChoice({
    hasKey: true,
    configured: 'auto',
    known: null,
    remember: async (scheme) => void remembered.push(scheme),
  });
  const judgeQuotaExhausted: JudgeQuotaExhausted = async (_, beyondPlan) => {
    judged.push(beyondPlan);
    return 'budget left';
  };
  const { sql } = database;
  const reachability = createReachability(sql, new URL(BASE_URL).host);
  const sendRequest = createSendRequest({
    upstream: upstream.client,
    baseUrl: BASE_URL,
    reachability,
    quota,
    authScheme,
    sql,
    clock,
    accountId: ACCOUNT,
    judgeQuotaExhausted,
    judgeForbidden: async () => undefined,
    ...deps,
  });
  const send = (options: Partial<SendOptions> = {}) =>
    sendRequest({ path: '/tickers', query: { limit: '5' } }, { ...OPTIONS, ...options });
  return { ...upstream, quota, remembered, judged, send, sendRequest };
}

const recorded = () =>
  database.sql<{ endpoint: string; status: number | null; outcome: string; attempt: number; subject: string }[]>`
    select endpoint, status, outcome, attempt, subject from ops.fetch order by id`;
const spentOf = async ({ quota }: Pick<ReturnType<typeof bench>, 'quota'>) => (await quota.state()).month.spent;

describe('a request that is answered', () => {
  test('takes one permit, is sent once, and leaves its record to the caller', async () => {
    const world = bench();
    world.answers(Response.json([{ id: 'bitcoin' }]));
    const result = (await world.send()) as SentRequest;
    expect(result).toMatchObject({ kind: 'sent', requests: 1, fetchId: null, budgetLeft: false, keySent: 'as before' });
    expect(result.answer).toMatchObject({ kind: 'answered', body: [{ id: 'bitcoin' }] });
    expect(result.record).toMatchObject({ accountId: ACCOUNT, endpoint: 'tickers', attempt: 2, outcome: 'answered' });
    expect(world.sent).toEqual([{ path: '/v1/tickers?limit=5', authorization: 'Bearer secret' }]);
    expect(await spentOf(world)).toBe(1);
    expect(await recorded()).toEqual([]);
  });

  test('remembers the auth scheme that worked', async () => {
    const world = bench();
    world.answers(Response.json([{ id: 'bitcoin' }]));
    await world.send();
    await world.send();
    expect(world.remembered).toEqual(['bearer']);
  });

  test('for a span asks for what its permit found missing; the permit is refused when nothing is missing', async () => {
    const world = bench();
    world.answers(Response.json([]));
    const gaps = [{ from: 1_000, to: 2_000 }];
    const about = (given: typeof gaps) => ({
      path: '/coins/x/ohlcv/historical',
      query: { start: String(given[0]!.from) },
      span: given[0]!,
      beyondPlan: false,
    });
    const stretch = {} as never;
    const take = world.quota.take;
    world.quota.take = (async (spender: never, asked: never) =>
      asked === stretch ? { ...(await take(spender)), gaps } : take(spender)) as never;
    const result = (await world.sendRequest({ stretch, about: about as never }, OPTIONS)) as SentRequest;
    expect(world.sent.map(({ path }) => path)).toEqual(['/v1/coins/x/ohlcv/historical?start=1000']);
    expect(result.record.span).toEqual(gaps[0]);

    world.quota.take = (async () => ({ kind: 'unwanted' })) as never;
    expect(await world.sendRequest({ stretch, about: about as never }, OPTIONS)).toEqual({ kind: 'unwanted' });
    expect(world.sent).toHaveLength(1);
  });
});

describe('a request that fails', () => {
  test('is recorded at once, with its subject and its outcome', async () => {
    const world = bench();
    world.answers(says(404, 'id not found'));
    const result = (await world.send()) as SentRequest;
    expect(result.fetchId).toEqual(expect.any(Number));
    expect(await recorded()).toEqual([
      { endpoint: 'tickers', status: 404, outcome: 'unknown id', attempt: 2, subject: 'bitcoin' },
    ]);
  });

  test('with a 429 pauses this process at once and holds the whole account', async () => {
    const world = bench();
    world.answers(says(429, 'slow down', { 'Retry-After': '30' }));
    const heldWhile: (string | undefined)[] = [];
    await world.send({
      retry: (work) => {
        if (world.sent.length > 0) heldWhile.push(world.quota.gate.heldAt(world.clock.now())?.reason);
        return work(false);
      },
    });
    // Already while the answer is recorded, this process sends no other request.
    expect(new Set(heldWhile)).toEqual(new Set(['limited']));
    const now = world.clock.now();
    const { hold } = await world.quota.state();
    expect(hold).toMatchObject({ reason: 'limited' });
    expect(hold!.until).toBeGreaterThan(now + 25_000);
    expect(await world.send()).toMatchObject({ kind: 'held', reason: 'limited' });
    expect(world.sent).toHaveLength(1);
  });

  test('with an unknown route is an outage, unless the caller says that the route may be missing', async () => {
    const world = bench();
    world.answers(says(404, 'no such route'));
    for (let i = 0; i < 4; i++) await world.send({ mayLack: true });
    expect((await world.quota.state()).hold).toBe(null);
    for (let i = 0; i < 4; i++) await world.send();
    expect((await world.quota.state()).hold).toMatchObject({ reason: 'unavailable' });
  });

  test('with a 402 asks the judge, and reports the answer to the quota while budget is left', async () => {
    const world = bench();
    world.answers(says(402, 'payment required'));
    expect(await world.send()).toMatchObject({ budgetLeft: true, answer: { kind: 'limited', by: 'quota' } });
    expect(world.judged).toEqual([false]);
    expect((await world.quota.state()).hold).toBe(null);
    // A 402 for the request for the account is not judged by another request for the account.
    expect(await world.send({ spender: { ...OPTIONS.spender, isAccountRequest: true } })).toMatchObject({
      budgetLeft: false,
    });
    expect(world.judged).toHaveLength(1);
  });
});

describe('the quota', () => {
  test('that is used up holds the request: nothing is sent and nothing recorded', async () => {
    const world = bench({ limits: { ...NO_LIMITS, perDay: 1 } });
    world.answers(Response.json([{ id: 'bitcoin' }]));
    expect(await world.send()).toMatchObject({ kind: 'sent' });
    expect(await world.send()).toMatchObject({ kind: 'held', reason: 'day', until: Date.UTC(2026, 10, 22) + GRACE_MS });
    expect(world.sent).toHaveLength(1);
  });

  test('holds the second step of a redirect as well', async () => {
    const world = bench({ limits: { ...NO_LIMITS, perDay: 1 } });
    world.answers(moved('/v1/tickers/?limit=5'), Response.json([]));
    expect(await world.send()).toMatchObject({ kind: 'held', reason: 'day' });
    expect(world.sent).toHaveLength(1);
  });
});

describe('a redirect', () => {
  test('is followed with a permit and a record of its own, and the key', async () => {
    const world = bench();
    world.answers(moved('/v1/all?limit=5'), Response.json([{ id: 'bitcoin' }]));
    expect(await world.send()).toMatchObject({ kind: 'sent', requests: 2, answer: { kind: 'answered' } });
    expect(world.sent).toEqual([
      { path: '/v1/tickers?limit=5', authorization: 'Bearer secret' },
      { path: '/v1/all?limit=5', authorization: 'Bearer secret' },
    ]);
    expect(await spentOf(world)).toBe(2);
    expect(await recorded()).toMatchObject([{ status: 302, outcome: 'moved' }]);
  });

  test('without an end is followed three times; the second time the address counts as wrong', async () => {
    const world = bench();
    let step = 0;
    world.answers(() => moved(`/v1/step/${++step}`));
    const result = (await world.send()) as SentRequest;
    expect(result).toMatchObject({ requests: 4, isRedirectLoop: true, answer: { kind: 'malformed' } });
    expect(result.fetchId).toEqual(expect.any(Number));
    await expect(world.send()).rejects.toThrow(ConfigurationError);
    expect(world.sent).toHaveLength(8);
    expect(await spentOf(world)).toBe(8);
    expect(await recorded()).toHaveLength(8);
  });

  test('whose second step was held proves nothing: the count of loops begins anew', async () => {
    const world = bench();
    let step = 0;
    world.answers(() => moved(`/v1/step/${++step}`));
    expect(await world.send()).toMatchObject({ isRedirectLoop: true });
    const { take } = world.quota;
    let permits = 0;
    const denied = { kind: 'denied', reason: 'unavailable', until: world.clock.now() };
    world.quota.take = (async (spender: never) => (++permits === 2 ? denied : take(spender))) as never;
    expect(await world.send()).toMatchObject({ kind: 'held', reason: 'unavailable' });
    expect(await world.send()).toMatchObject({ isRedirectLoop: true });
    await expect(world.send()).rejects.toThrow(ConfigurationError);
  });

  test('without an end is never a wrong address once the upstream has answered', async () => {
    const world = bench();
    let step = 0;
    const turns = () => moved(`/v1/step/${++step}`);
    world.answers(Response.json([{ id: 'bitcoin' }]), turns);
    await world.send();
    for (let i = 0; i < 3; i++) expect(await world.send()).toMatchObject({ isRedirectLoop: true });
  });
});

describe('a key that is refused', () => {
  test('is sent once in the other auth scheme, which is remembered when it works', async () => {
    const world = bench();
    world.answers(says(403, 'no'), Response.json([{ id: 'bitcoin' }]));
    expect(await world.send()).toMatchObject({ requests: 2, answer: { kind: 'answered' } });
    expect(world.sent.map(({ authorization }) => authorization)).toEqual(['Bearer secret', 'secret']);
    expect(world.remembered).toEqual(['bare']);
    expect(await recorded()).toMatchObject([{ status: 403, outcome: 'forbidden' }]);
    expect(await spentOf(world)).toBe(2);
  });

  test('in both schemes is refused, and not tried a third time', async () => {
    const world = bench();
    world.answers(says(403, 'no'));
    expect(await world.send()).toMatchObject({ requests: 2, keySent: 'both ways', answer: { kind: 'refused' } });
    expect(world.remembered).toEqual([]);
    expect(await world.send()).toMatchObject({ requests: 1 });
  });
});

describe('an upstream that was never reached', () => {
  const refused = () => {
    throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  };

  test('is a wrong address: recorded, and without backoff for whoever corrects it', async () => {
    const world = bench();
    world.answers(refused);
    await expect(world.send()).rejects.toThrow(Unreachable);
    expect(await recorded()).toMatchObject([{ status: null, outcome: 'unavailable' }]);
    expect(await database.sql`select down_streak from ops.quota`).toEqual([{ downStreak: 0 }]);
  });

  test('and answered before is an outage', async () => {
    const world = bench();
    world.answers(says(500, 'oops'), refused);
    await world.send();
    expect(await world.send()).toMatchObject({ answer: { kind: 'unavailable' } });
  });

  test('on another host than REST is neither: requests to REST continue', async () => {
    const world = bench({ isOtherHost: true });
    world.answers(refused);
    for (let i = 0; i < 5; i++) expect(await world.send()).toMatchObject({ answer: { kind: 'unavailable' } });
    expect((await world.quota.state()).hold).toBe(null);
  });

  test('on another host holds REST for a minute at most, however long a pause it asks for', async () => {
    const world = bench({ isOtherHost: true });
    world.answers(says(429, 'slow down', { 'Retry-After': '3600' }));
    await world.send();
    const { hold } = await world.quota.state();
    expect(hold!.until - world.clock.now()).toBeGreaterThan(50_000);
    expect(hold!.until - world.clock.now()).toBeLessThanOrEqual(60_000);
  });
});

describe('an abort signal', () => {
  test('that was aborted before sends nothing and takes no permit', async () => {
    const world = bench();
    world.answers(Response.json([]));
    await expect(world.send({ signal: AbortSignal.abort(new Error('stopped')) })).rejects.toThrow('stopped');
    expect(world.sent).toEqual([]);
    expect(await spentOf(world)).toBe(0);
  });

  test('that is aborted after sending cancels nothing: the answer arrives and is counted', async () => {
    const world = bench();
    const stop = new AbortController();
    world.answers(() => {
      stop.abort();
      return says(500, 'oops');
    });
    expect(await world.send({ signal: stop.signal })).toMatchObject({ kind: 'sent', answer: { kind: 'unavailable' } });
    expect(await spentOf(world)).toBe(1);
    expect(await recorded()).toMatchObject([{ status: 500, outcome: 'unavailable' }]);
  });
});

test('while the database is unavailable, the program keeps the answer and waits: it does not send the request again', async () => {
  const world = bench();
  world.answers(says(500, 'oops'));
  let failures = 0;
  const retry: NonNullable<SendOptions['retry']> = async (work) => {
    // Each piece of work meets an outage once.
    const done = await work(false).then(() => failures++);
    expect(done).toEqual(expect.any(Number));
    return work(true);
  };
  const result = (await world.send({ retry })) as SentRequest;
  expect(failures).toBeGreaterThan(2);
  expect(world.sent).toHaveLength(1);
  // It was committed before the outage was noticed, and is found again.
  expect(await recorded()).toHaveLength(1);
  expect(result.fetchId).toEqual(expect.any(Number));
});
