/** Opening a session: when the account is requested, which plan results, and how a 402 is judged. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PlanName } from '../../src/contract/plan/plans.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { AccountUnknown, ConfigurationError, KeyRefused } from '../../src/ingest/outcome.ts';
import { openSession, type SessionOptions } from '../../src/ingest/session.ts';
import { currentAccount, readAccount } from '../../src/store/quota/account.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { says } from '../support/scripted.ts';
import { BASE_URL, createScriptedQuota, createScriptedUpstream, NO_LIMITS } from '../support/scripted-upstream.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(() => database.sql`truncate ops.fetch, ops.quota, ops.quota_spent, ops.account cascade`);

const TICKERS = { spender: { class: 'scheduled', name: 'tickers' }, record: { endpoint: 'tickers' } } as const;

/** An answer of `/users/me`. */
function account(plan: string, left: number, status: string | null = 'active', made = 10): Response {
  const month = { requests_made: made, requests_left: left };
  return Response.json({
    plan,
    plan_started_at: null,
    plan_status: status,
    portal_url: null,
    usage: { current_month: month },
  });
}

function bench({ key = 'secret' as string | null } = {}) {
  const upstream = createScriptedUpstream({ key });
  const { clock } = upstream;
  const limitsAsked: (typeof NO_LIMITS)[] = [];
  const told: Parameters<NonNullable<SessionOptions['onRequest']>>[0][] = [];
  const open = (options: Partial<SessionOptions> = {}) =>
    openSession({
      sql: database.sql,
      clock,
      upstream: upstream.client,
      baseUrl: BASE_URL,
      apiKey: key,
      authScheme: 'auto',
      plan: null,
      limitsOf: (plan: PlanName) => ({ ...NO_LIMITS, perMonth: plan === 'free' ? 20_000 : 1_000_000 }),
      candlesPerRequest: null,
      createQuota: ({ accountId, limits }) => {
        limitsAsked.push(limits);
        return createScriptedQuota(database, { clock, accountId, limits });
      },
      onRequest: (result) => told.push(result),
      ...options,
    });
  return { ...upstream, open, limitsAsked, told };
}
type Bench = ReturnType<typeof bench>;
const pathsOf = ({ sent }: Bench) => sent.map(({ path }) => path.replace('/v1', ''));

describe('the plan', () => {
  test('of an account without a key is the free one, and nothing is requested', async () => {
    const world = bench({ key: null });
    const session = await world.open();
    expect(session).toMatchObject({
      planSource: 'assumed',
      plan: { name: 'free' },
      accountId: 'anonymous@upstream.test',
    });
    expect(world.sent).toEqual([]);
  });

  test('of a key is what the account says: one request, taken without a monthly limit, and remembered', async () => {
    const world = bench();
    world.answers(account('pro', 999_990));
    const session = await world.open();
    expect(session).toMatchObject({ planSource: 'account', plan: { name: 'pro' }, limits: { perMonth: 1_000_000 } });
    expect(pathsOf(world)).toEqual(['/users/me']);
    expect(world.limitsAsked.map(({ perMonth }) => perMonth)).toEqual([null, 1_000_000]);
    expect(world.told).toEqual([{ endpoint: 'account', outcome: 'answered', requests: 1 }]);
    const saved = await currentAccount(database.sql);
    expect(saved).toMatchObject({ plan: 'pro', authScheme: 'bearer', accountPath: '/users/me', monthLimit: 1_000_000 });
    expect(saved!.checkedAt).not.toBe(null);

    const again = await world.open();
    expect(again).toMatchObject({ planSource: 'account', plan: { name: 'pro' } });
    expect(world.sent).toHaveLength(1);
    expect((await again.quota.state()).month).toMatchObject({ spent: 10, limit: 1_000_000 });
  });

  test.each([
    { made: 1e300, left: 5, wrong: 'made' },
    { made: 10, left: 1e19, wrong: 'left' },
    { made: 1200.5, left: 5, wrong: 'made' },
    { made: 2 ** 53, left: -1, wrong: 'made' },
  ])(
    'and its count are not believed with $made requests made and $left left, and nothing of the answer is kept',
    async ({ made, left, wrong }) => {
      const world = bench();
      world.answers(account('pro', 999_990));
      const session = await world.open();
      world.answers(account('free', left, 'active', made));
      expect(await session.check()).toMatchObject({ kind: 'unknown' });
      expect((await session.quota.state()).month).toMatchObject({ spent: 11, limit: 1_000_000 });
      expect(await currentAccount(database.sql)).toMatchObject({ plan: 'pro', monthLimit: 1_000_000 });
      const [row] = await database.sql`select outcome, message from ops.fetch order by id desc limit 1`;
      expect(row).toMatchObject({ outcome: 'malformed', message: expect.stringContaining(`requests_${wrong}`) });
      // An account without a limit has no such count.
      world.answers(account('pro', -1, 'active', -1));
      expect(await session.check()).toMatchObject({ kind: 'known' });
      expect((await session.quota.state()).month.limit).toBe(null);
    },
  );

  test('is requested again when the answer is six hours old', async () => {
    const world = bench();
    world.answers(account('pro', 999_990), account('free', 100));
    await world.open();
    world.clock.advanceTo(world.clock.now() + 6 * HOUR + 1_000);
    expect(await world.open()).toMatchObject({ plan: { name: 'free' } });
    expect(world.sent).toHaveLength(2);
  });

  test('comes from the other path where the first one is unknown, and that path is used from then on', async () => {
    const world = bench();
    world.answers(says(404, 'no such route'), account('pro', 999_990), account('pro', 999_989));
    const session = await world.open();
    await session.check();
    expect(pathsOf(world)).toEqual(['/users/me', '/key/info', '/key/info']);
  });

  test('that is configured wins over what the account says, which is requested again without the setting', async () => {
    const world = bench();
    world.answers(account('pro', 999_990));
    expect(await world.open({ plan: 'free' })).toMatchObject({ planSource: 'configured', plan: { name: 'free' } });
    expect((await readAccount(database.sql, (await world.open({ plan: 'free' })).accountId))!.checkedAt).toBe(null);
    const before = world.sent.length;
    expect(await world.open()).toMatchObject({ planSource: 'account', plan: { name: 'pro' } });
    expect(world.sent).toHaveLength(before + 1);
  });

  test('that is unknown is assumed by a command, and waited for by a service', async () => {
    const world = bench();
    world.answers(says(500, 'oops'));
    await expect(world.open({ waitsForPlan: true })).rejects.toThrow(AccountUnknown);
    expect(await world.open()).toMatchObject({ planSource: 'assumed', plan: { name: 'free' } });
  });

  test('that is held back by a 429 is waited for until the ledger lets requests through', async () => {
    const world = bench();
    world.answers(says(429, 'slow down', { 'Retry-After': '40' }));
    const error = await world.open({ waitsForPlan: true }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(AccountUnknown);
    const until = (error as AccountUnknown).retryAt;
    expect(until! - world.clock.now()).toBeGreaterThan(30_000);
    expect(until! - world.clock.now()).toBeLessThanOrEqual(40_000);
  });
});

describe('a key that was refused', () => {
  test('ends the opening, is not sent again for a minute, and then once', async () => {
    const world = bench();
    world.answers(says(403, 'no'));
    await expect(world.open()).rejects.toThrow(KeyRefused);
    expect(world.sent.map(({ authorization }) => authorization)).toEqual(['Bearer secret', 'secret']);
    await expect(world.open()).rejects.toThrow(KeyRefused);
    expect(world.sent).toHaveLength(2);
    world.clock.advanceTo(world.clock.now() + 61_000);
    await expect(world.open()).rejects.toThrow(KeyRefused);
    expect(world.sent).toHaveLength(4);
    // The second refusal: four minutes.
    world.clock.advanceTo(world.clock.now() + 180_000);
    await expect(world.open()).rejects.toThrow(KeyRefused);
    expect(world.sent).toHaveLength(4);
  });

  test('is sent again at once when the caller asks for that, and the refusal is forgotten when the key is accepted', async () => {
    const world = bench();
    world.answers(says(403, 'no'));
    await expect(world.open()).rejects.toThrow(KeyRefused);
    world.answers(account('pro', 5));
    expect(await world.open({ ignoresKeyRefusal: true })).toMatchObject({ plan: { name: 'pro' } });
    expect(await database.sql`select refusals from ops.account`).toEqual([{ refusals: 0 }]);
  });
});

test('an address where nothing answers is a wrong configuration for a command, and something to wait for for a service', async () => {
  const world = bench();
  world.answers(() => {
    throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  });
  await expect(world.open()).rejects.toThrow(ConfigurationError);
  await expect(world.open({ waitsForPlan: true })).rejects.toThrow(AccountUnknown);
});

describe('a 402 that names no history limit', () => {
  const LATER = Date.UTC(2026, 11, 1);
  const opened = async (world: Bench, ...answers: readonly Response[]) => {
    world.answers(account('pro', 999_990));
    const session = await world.open();
    world.answers(says(402, 'payment required'), ...answers);
    return session;
  };

  test('exhausts the month when the account has no request left', async () => {
    const world = bench();
    const session = await opened(world, account('pro', 0));
    expect(await session.sendRequest({ path: '/tickers' }, TICKERS)).toMatchObject({ budgetLeft: false });
    expect((await session.quota.state()).hold).toMatchObject({
      reason: 'quota exhausted',
      message: expect.stringContaining('402'),
    });
    expect((await session.quota.state()).hold!.until).toBeGreaterThanOrEqual(LATER);
  });

  test('means something else when the account has requests left', async () => {
    const world = bench();
    const session = await opened(world, account('pro', 500));
    expect(await session.sendRequest({ path: '/tickers' }, TICKERS)).toMatchObject({ budgetLeft: true });
    expect((await session.quota.state()).hold).toBe(null);
  });

  test('stops all work for a plan that is not paid, and says so', async () => {
    const world = bench();
    const session = await opened(world, account('pro', 500, 'past_due'));
    await session.sendRequest({ path: '/tickers' }, TICKERS);
    expect((await session.quota.state()).hold!.message).toMatch(/the plan of the account is past due/);
  });

  test('causes one request for the account for many that arrive together', async () => {
    const world = bench();
    const session = await opened(
      world,
      ...Array.from({ length: 4 }, () => says(402, 'payment required')),
      account('pro', 500),
    );
    await Promise.all(Array.from({ length: 5 }, () => session.sendRequest({ path: '/tickers' }, TICKERS)));
    expect(pathsOf(world).filter((path) => path === '/users/me')).toHaveLength(2);
  });

  test('is judged by its text and the ledger where there is no account', async () => {
    const world = bench({ key: null });
    const session = await world.open();
    world.answers(says(402, 'this endpoint requires a paid plan'), says(402, 'request limit reached'));
    expect(await session.sendRequest({ path: '/tickers' }, TICKERS)).toMatchObject({ budgetLeft: true });
    expect(await session.sendRequest({ path: '/tickers' }, TICKERS)).toMatchObject({ budgetLeft: false });
    expect((await session.quota.state()).hold).toMatchObject({ reason: 'quota exhausted' });
  });
});

test('the key is never sent to another host: the JSON-RPC interface there is used without it', async () => {
  const world = bench();
  const elsewhere = createScriptedUpstream({ key: 'secret' });
  world.answers(account('pro', 999_990));
  elsewhere.answers(says(403, 'no'));
  const session = await world.open({
    rpc: { client: elsewhere.client, url: 'http://x.test/rpc', sharesOrigin: false },
  });
  const result = await session.tools!.sendRequest({ path: '/' }, TICKERS);
  // One refusal there proves nothing about the key, and no other scheme is tried.
  expect(result).toMatchObject({ kind: 'sent', requests: 1, keySent: 'no key' });
});

test.each(['an outage', 'an exhausted quota'])(
  'the request that tests whether %s is over goes to the host that had it, not to the JSON-RPC interface on another host',
  async (what) => {
    const world = bench();
    const elsewhere = createScriptedUpstream();
    world.answers(account('pro', 999_990));
    elsewhere.answers(says(500, 'oops'));
    const session = await world.open({
      rpc: { client: elsewhere.client, url: 'http://x.test/rpc', sharesOrigin: false },
    });
    const { quota, sendRequest } = session;
    const { clock } = world;
    const failed = { sentAt: clock.now(), message: 'failed' };
    if (what === 'an outage') for (let i = 0; i < 4; i++) await quota.unavailable({ ...failed, retryAfterMs: null });
    else await quota.exhausted({ ...failed, window: 'day' });
    // Also while nothing is answered, no request of REST is sent to the host that is down.
    expect(await session.tools!.sendRequest({ path: '/' }, TICKERS)).toMatchObject({ kind: 'held' });
    clock.advanceTo((await quota.state()).hold!.until);

    expect(await session.tools!.sendRequest({ path: '/' }, TICKERS)).toMatchObject({ kind: 'sent' });
    // REST need not wait for the answer of the other host, and the state lasts until it has answered itself.
    expect(await quota.state()).toMatchObject({
      hold: null,
      outage: what === 'an outage' ? { message: 'failed' } : null,
    });
    world.answers(Response.json([]));
    expect(await sendRequest({ path: '/tickers' }, TICKERS)).toMatchObject({ kind: 'sent' });
    expect((await quota.state()).outage).toBe(null);
  },
);

test('a refused item of the catalogue is requested again when the account has another plan, and not because the settings name another', async () => {
  const world = bench();
  const { sql } = database;
  const until = world.clock.now() + 30 * DAY;
  await sql`
    insert into ops.catalogue_item (kind, id, asked_at, outcome, wait_until, times, message)
    values ('coin_details', 'x', ${world.clock.now()}, 'forbidden', ${until}, 7, 'no')`;
  const waits = async () =>
    (
      await sql<
        { waits: boolean; times: number }[]
      >`select wait_until > asked_at as waits, times from ops.catalogue_item`
    )[0];
  world.answers(...Array.from({ length: 6 }, () => account('pro', 999_990)));
  for (let start = 0; start < 2; start++) await (await world.open({ plan: 'free' })).check();
  expect(await waits()).toEqual({ waits: true, times: 7 });
  await world.open();
  await sql`update ops.catalogue_item set wait_until = ${until}`;
  await (await world.open()).check();
  expect(await waits()).toEqual({ waits: true, times: 7 });
  world.answers(account('business', 999_990));
  await (await world.open()).check();
  expect(await waits()).toEqual({ waits: false, times: 7 });
});
