/** Who may see the dashboard and act on it, and what strangers and their pages cannot do. */
import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { revokeApiKey } from '../../src/store/callers/api-key.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import {
  createKey,
  createTestDashboard,
  fieldsIn,
  formTokenIn,
  ORIGIN,
  type TestDashboard,
} from '../support/dashboard.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

let database: TestDatabase;
let dashboard: TestDashboard;
beforeAll(async () => {
  database = await createTestDatabase({ max: 2 });
  dashboard = await createTestDashboard(database.url);
});
afterAll(async () => {
  await dashboard?.close();
  await database?.drop();
});

const PAGES = ['/', '/ui/backfills', '/ui/events', '/ui/do/pause?backfill=1', '/ui/no-such-page'];

test('each script that a page loads exists', async () => {
  const folder = new URL('../../src/dashboard/client/', import.meta.url);
  const sources = new Set(readdirSync(folder).map((file) => file.replace(/\.ts$/, '.js')));
  const pages = await Promise.all(['/', '/ui/coverage', '/ui/backfills'].map((path) => dashboard.page(path)));
  const named = new Set([...pages.join('').matchAll(/\/ui\/assets\/([\w-]+\.js)/g)].map(([, name]) => name!));
  expect([...named].filter((name) => !sources.has(name))).toEqual([]);
  expect(named.size).toBeGreaterThan(5);
});

describe('the dashboard', () => {
  test('opens without a key for any visitor on this machine', async () => {
    const host = new URL(ORIGIN).host;
    for (const [address, name] of [
      ['127.0.0.1', host],
      ['::1', '[::1]:8080'],
      ['::ffff:127.0.0.1', 'localhost:8080'],
    ])
      expect((await dashboard.ask('/', { address: address!, headers: { host: name! } })).status).toBe(200);
  });

  test.each<[string, Parameters<TestDashboard['ask']>[1]]>([
    ['another machine', { address: '192.0.2.7' }],
    ['another machine behind a proxy on this one', { headers: { 'x-forwarded-for': '192.0.2.7' } }],
    ['a proxy that only says that it is one', { headers: { via: '1.1 proxy' } }],
    ['a page whose name was led to this machine', { headers: { host: 'evil.example:8080' } }],
    ['a proxy that only tells the scheme', { headers: { 'x-forwarded-proto': 'https' } }],
    ['no known address', { address: 'unknown' }],
  ])('requires an operator’s key from %s', async (_, asking) => {
    for (const path of PAGES) {
      const answer = await dashboard.ask(path, asking);
      expect([path, answer.status]).toEqual([path, 303]);
      expect(answer.headers.get('location')).toBe(`/ui/sign-in?next=${encodeURIComponent(path)}`);
    }
    const { key } = await createKey(database.sql);
    const session = await dashboard.signIn(key);
    expect(await dashboard.page('/', { ...asking, session })).toContain('Signed in with the key Ada');
    // A stranger sees nothing about the warehouse.
    expect(await dashboard.page('/ui/sign-in', asking)).not.toMatch(/requests left|<nav aria-label="Screens"><ul><li>/);
  });
});

test('a trusted proxy on this machine lets nobody in without a key, whatever headers it leaves out', async () => {
  const behind = await createTestDashboard(database.url, { env: { CHANDLER_TRUSTED_PROXIES: '127.0.0.1,::1' } });
  try {
    expect((await behind.ask('/')).status).toBe(303);
    expect((await behind.ask('/', { address: '::1' })).status).toBe(303);
  } finally {
    await behind.close();
  }
});

test('a page of another site may link to the dashboard, but may not load anything from it', async () => {
  const cross = { 'sec-fetch-site': 'cross-site' };
  const led = { ...cross, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
  expect((await dashboard.ask('/', { headers: led })).status).toBe(200);
  const others = [
    cross,
    { ...cross, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { ...led, 'sec-fetch-dest': 'iframe' },
  ];
  for (const headers of others) expect((await dashboard.ask('/', { headers })).status).toBe(403);
});

describe('signing in', () => {
  const refused = async (key: string) => {
    const answer = await dashboard.ask('/ui/sign-in', { address: '192.0.2.10', form: { key, next: '/' } });
    expect(answer.status).toBe(400);
    expect(answer.headers.get('set-cookie')).toBeNull();
    expect(await answer.text()).toContain('This is not a valid operator key');
  };

  test('accepts only the whole valid key of an operator', async () => {
    const { sql } = database;
    const { key, prefix } = await createKey(sql);
    const other = await createKey(sql);
    const caller = await createKey(sql, { isOperator: false, plan: 'pro' });
    const expired = await createKey(sql, { expiresAt: systemClock.now() - HOUR });
    for (const wrong of [
      '',
      'x',
      prefix,
      `${key}x`,
      `${prefix}${other.key.slice(prefix.length)}`,
      caller.key,
      expired.key,
    ])
      await refused(wrong);
    const cookie = (await dashboard.ask('/ui/sign-in', { form: { key: ` ${key} `, next: '/' } })).headers.get(
      'set-cookie',
    )!;
    expect(cookie).toMatch(/; HttpOnly/);
    expect(cookie).toMatch(/; SameSite=Strict/);
    expect(cookie).not.toContain(key);
    // A reader of the database cannot sign in with what it stores.
    const [{ text }] = (await sql`select string_agg(s::text, '') as text from ops.dashboard_session s`) as unknown as [
      { text: string },
    ];
    expect(text).not.toContain(/chandler_session=([\w-]+)/.exec(cookie)![1]);
  });

  test('is throttled for an address that guesses keys', async () => {
    const guesses = Array.from({ length: 30 }, () =>
      dashboard.ask('/ui/sign-in', { address: '192.0.2.8', form: { key: 'x', next: '/' } }),
    );
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses).toContain(429);
    expect(statuses.filter((status) => status === 400).length).toBeLessThan(20);
    expect((await dashboard.ask('/ui/sign-in', { address: '192.0.2.9', form: { key: 'x', next: '/' } })).status).toBe(
      400,
    );
  });

  test('refuses a form that is longer than a key needs', async () => {
    const form = { key: 'x'.repeat(20_000), next: '/' };
    expect((await dashboard.ask('/ui/sign-in', { form })).status).toBe(413);
    const headers = { 'transfer-encoding': 'chunked' };
    expect((await dashboard.ask('/ui/sign-in', { form: { key: 'x' }, headers })).status).toBe(411);
  });

  test('redirects to a page of the dashboard, and never to another site', async () => {
    const { key } = await createKey(database.sql);
    for (const [next, to] of [
      ['/ui/backfills?all=true', '/ui/backfills?all=true'],
      ['https://evil.example/', '/'],
      ['//evil.example', '/'],
      ['/\\evil.example', '/'],
      ['/ui/..//evil.example', '/'],
      ['javascript:alert(1)', '/'],
    ])
      expect((await dashboard.ask('/ui/sign-in', { form: { key, next: next! } })).headers.get('location')).toBe(to);
  });

  test('ends after twelve hours, when the key is revoked, and when the operator signs out', async () => {
    const clock = createVirtualClock(systemClock.now());
    const later = await createTestDashboard(database.url, { clock });
    const isIn = async (session: string) => (await later.ask('/', { address: '192.0.2.7', session })).status === 200;
    try {
      const { key, prefix } = await createKey(database.sql);
      const first = await later.signIn(key);
      expect(await isIn(first)).toBe(true);
      clock.advance(12 * HOUR);
      expect(await isIn(first)).toBe(false);

      const second = await later.signIn(key);
      const third = await later.signIn(key);
      const token = formTokenIn(await later.page('/', { session: second }));
      expect((await later.ask('/ui/sign-out', { session: second, form: { token } })).status).toBe(303);
      expect([await isIn(second), await isIn(third)]).toEqual([false, true]);

      await revokeApiKey(database.sql, prefix, clock.now());
      expect(await isIn(third)).toBe(false);
    } finally {
      await later.close();
    }
  });
});

describe('an action of an operator', () => {
  const queued = () =>
    queueBackfill(database.sql, {
      ...{ requestedAt: systemClock.now(), requestedBy: null, plannedRequests: 3, priority: 0, spec: {} },
      ...{ coinIds: [], interval: '24h', quote: 'usd', span: { from: Date.UTC(2024, 0), to: Date.UTC(2024, 0) + DAY } },
    });
  const stateOf = async (id: number) => {
    const [row] = await database.sql<{ state: string }[]>`select state from ops.backfill where id = ${id}`;
    return row!.state;
  };

  test('is shown with its price first, and runs when the operator confirms it', async () => {
    const id = await queued();
    const path = `/ui/do/pause?backfill=${id}`;
    const asked = await dashboard.page(path);
    expect(asked).toContain(`Pause backfill ${id}?`);
    expect(asked).toContain('It costs no requests now.');
    expect(asked).toContain('Only an operator may do this');
    expect(await stateOf(id)).toBe('queued');

    const { key } = await createKey(database.sql, { name: 'Grace' });
    const session = await dashboard.signIn(key);
    const next = await dashboard.confirm(path, session);
    expect(await stateOf(id)).toBe('paused');
    expect(await dashboard.page(next, { session })).toContain(`Backfill ${id} is paused.`);
    // Another visitor with the same address does not see what the operator did.
    expect(await dashboard.page(next)).not.toContain('is paused.');
    const [entry] = await database.sql`select actor, command, message from ops.audit order by id desc limit 1`;
    expect(entry).toEqual({ actor: 'Grace (dashboard)', command: `chandler backfills pause ${id}`, message: null });
  });

  test('is recorded in the audit log with its reason when it fails', async () => {
    const id = await queued();
    const { key } = await createKey(database.sql);
    const session = await dashboard.signIn(key);
    const path = `/ui/do/resume?backfill=${id}`;
    const failed = await dashboard.ask(path, { session, form: fieldsIn(await dashboard.page(path, { session })) });
    expect(failed.status).toBe(400);
    expect(await failed.text()).toContain(`backfill ${id} is queued and cannot be resumed`);
    const [entry] =
      await database.sql`select message, ended_at is not null as ended from ops.audit order by id desc limit 1`;
    expect(entry).toEqual({ message: `backfill ${id} is queued and cannot be resumed`, ended: true });
  });

  test('does not run when the session has ended before the operator confirms it, and the sign-in page says so', async () => {
    const id = await queued();
    const path = `/ui/do/pause?backfill=${id}`;
    const session = await dashboard.signIn((await createKey(database.sql)).key);
    const form = fieldsIn(await dashboard.page(path, { session }));
    await dashboard.ask('/ui/sign-out', { session, form });
    const late = await dashboard.ask(path, { session, form });
    expect(late.status).toBe(303);
    const page = await dashboard.page(late.headers.get('location')!);
    expect(page).toContain('Nothing was done: your session has ended.');
    expect(page).toContain(`name="next" value="${path}"`);
    expect(await stateOf(id)).toBe('queued');
  });

  test.each<[string, (form: { token: string; session: string }) => Parameters<TestDashboard['ask']>[1]]>([
    ['nobody signed in', ({ token }) => ({ form: { token } })],
    ['no token', ({ session }) => ({ session, form: {} })],
    ['the token of another session', ({ session }) => ({ session, form: { token: 'x'.repeat(43) } })],
    [
      'a page of somebody else, as the browser says',
      ({ session, token }) => ({ session, form: { token }, headers: { 'sec-fetch-site': 'cross-site' } }),
    ],
    [
      'a page of the same site, but not ours',
      ({ session, token }) => ({ session, form: { token }, headers: { 'sec-fetch-site': 'same-site' } }),
    ],
    [
      'another origin',
      ({ session, token }) => ({ session, form: { token }, headers: { origin: 'https://evil.example' } }),
    ],
    ['an origin without a name', ({ session, token }) => ({ session, form: { token }, headers: { origin: 'null' } })],
  ])('is refused with %s', async (_, asking) => {
    const id = await queued();
    const { key } = await createKey(database.sql);
    const session = await dashboard.signIn(key);
    const path = `/ui/do/cancel?backfill=${id}`;
    const token = formTokenIn(await dashboard.page(path, { session }));
    const answer = await dashboard.ask(path, asking({ token, session }));
    expect([303, 400, 403]).toContain(answer.status);
    expect(answer.headers.get('location') ?? '/ui/sign-in').toMatch(/^\/ui\/sign-in/);
    expect(await stateOf(id)).toBe('queued');
  });
});

describe('every response', () => {
  test('forbids scripts, frames and forms of other sites, and is not cached', async () => {
    for (const path of [...PAGES.filter((one) => one !== '/ui/events'), '/ui/sign-in']) {
      const { headers } = await dashboard.ask(path);
      const policy = headers.get('content-security-policy')!;
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('unsafe');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  test('to a wrong address says what is wrong, and logs no error', async () => {
    const coin = {
      id: 'btc-bitcoin',
      name: 'Bitcoin',
      symbol: 'BTC',
      rank: 1,
      is_new: false,
      is_active: true,
      type: 'coin',
    };
    await recordCoins(database.sql, [coin], Date.UTC(2026, 0, 1));
    await database.sql`insert into market.coin_rename (old_id, new_id, renamed_at, source) values ('bit-old', 'btc-bitcoin', '2020-02-03', 'changelog')`;
    const pages = [
      ['/ui/do/pause', 'backfill must be the number of a backfill'],
      ['/ui/do/pause?backfill=<script>', 'got &quot;&lt;script&gt;&quot;'],
      ['/ui/do/pause?backfill=999999999', 'There is no backfill 999999999'],
      ['/ui/do/backfill', 'coin is missing'],
      ['/ui/do/backfill?coin=bit-old', 'The coin bit-old has the id btc-bitcoin now'],
      ['/ui/do/backfill?coin=%3Cscript%3E', 'There is no coin &quot;&lt;script&gt;&quot;'],
      ['/ui/do/backfill?coin=x&interval=2h', 'interval must be like 24h'],
      ['/ui/do/backfill?coin=x&from=soon', 'from must be a date'],
      ['/ui/do/backfill?coin=x&from=2024-02-31', 'from must be a date'],
      ['/ui/do/backfill?coin=%00', 'coin must be the id of a coin'],
      ['/ui/do/track?coin=%00', 'coin'],
    ];
    for (const [path, text] of pages) expect(await dashboard.page(path!, { status: 400 })).toContain(text);
    for (const path of [
      '/ui/do/format',
      '/ui/do/constructor',
      '/ui/do/toString',
      '/ui/x/y',
      '/ui/assets/../../package.json',
      '/ui/assets/x.js',
    ])
      expect((await dashboard.ask(path)).status).toBe(404);
    expect(dashboard.errors).toEqual([]);
  });
});
