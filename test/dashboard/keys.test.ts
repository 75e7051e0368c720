/** API keys: what every visitor sees of them, and what operators do with them. A key appears only in the response that creates it. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hashApiKey, makeApiKey } from '../../src/core/caller/api-key.ts';
import { createApiKey, findApiKey } from '../../src/store/callers/api-key.ts';
import { createKey, createTestDashboard, formTokenIn, ORIGIN, type TestDashboard } from '../support/dashboard.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { NOW, type Visit, visit } from './visiting.ts';

const KEY = /chandler_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}/;
const SCREENS = ['/', '/ui/backfills', '/ui/quota', '/ui/requests', '/ui/notices', '/ui/keys?all=true', '/ui/system'];
const SECRETS = {
  CHANDLER_API_KEY: 'topsecretkey0123456789abcdef',
  CHANDLER_WEBHOOK_URL: 'https://hook.example/T0/hidden-part',
};

let database: TestDatabase;
let page: Visit;

beforeEach(async () => {
  database = await createTestDatabase();
  page = await visit(database, SECRETS);
});
afterEach(async () => {
  await page.close();
  await database.drop();
  expect(page.errors).toEqual([]);
});

async function seedKey(name: string, more: { expiresAt?: number } = {}) {
  const { key, prefix, hash } = makeApiKey();
  const terms = { name, plan: 'pro', isOperator: false, requestsPerMonth: null, requestsPerSecond: null };
  await createApiKey(database.sql, { ...terms, expiresAt: more.expiresAt ?? null }, { prefix, hash, now: NOW });
  return { key, prefix };
}

test('the list shows each key with its plan, its use of this month and its limit, and names as plain text', async () => {
  const { prefix } = await seedKey('<script>alert(1)</script>');
  const expired = await seedKey('old', { expiresAt: NOW - 1000 });
  const row = await findApiKey(database.sql, prefix);
  await database.sql`
    insert into ops.api_usage (subject, month_start, month_spent, day_start, day_spent, updated_at)
    values (${`key:${row!.accountId}`}, '2030-05-01', 1234, '2030-05-15', 1, ${NOW - 3_600_000})`;
  const { text, html } = await page.look('/ui/keys');
  expect(text).toContain(
    `${prefix} | <script>alert(1)</script> | pro | caller | 1,234 | 1,000,000 | 1h ago | 2030-05-15 | valid | revoke`,
  );
  expect(html).not.toContain('<script>alert');
  expect(text).not.toContain(expired.prefix);
  expect((await page.look('/ui/keys?all=true')).text).toContain(`${expired.prefix} | old | pro`);
});

test('a visitor who is not signed in cannot create or revoke a key', async () => {
  const { prefix } = await seedKey('bob');
  for (const path of ['/ui/do/create-key?plan=pro', `/ui/do/revoke-key?key=${prefix}`]) {
    const { text, html } = await page.look(path);
    expect(text).toContain('Only an operator may do this.');
    expect(html.slice(html.indexOf('<main'), html.indexOf('</main>'))).not.toContain('<form');
  }
});

test('an operator creates a key, which is shown once, works, and is stored nowhere', async () => {
  await page.signIn();
  const path = "/ui/do/create-key?plan=starter&name=Bob's+bot&operator=false&expires=2031-01-01";
  const asked = await page.look(path);
  expect(asked.text).toContain(
    "The key is for Bob's bot. The limits of the plan starter apply. It expires 2031-01-01.",
  );
  const { status, text, html, headers } = await page.confirm(path);
  expect([status, headers.get('cache-control'), headers.get('location')]).toEqual([200, 'no-store', null]);
  const key = KEY.exec(text)![0];
  expect(html.split(key)).toHaveLength(2);
  const prefix = key.slice(0, 'chandler_12345678'.length);
  const stored = await findApiKey(database.sql, prefix);
  expect(stored).toMatchObject({
    name: "Bob's bot",
    plan: 'starter',
    isOperator: false,
    expiresAt: Date.UTC(2031, 0, 1),
  });
  expect(Buffer.from(stored!.hash)).toEqual(Buffer.from(hashApiKey(key)));

  const secret = key.slice(prefix.length);
  for (const screen of SCREENS)
    expect([screen, (await page.look(screen)).html.includes(secret)]).toEqual([screen, false]);
  const audit = await database.sql<
    { actor: string; command: string; message: string | null; endedAt: number | null }[]
  >`
    select actor, command, message, ended_at from ops.audit`;
  expect(audit).toMatchObject([
    {
      actor: 'ann (dashboard)',
      command: String.raw`chandler keys create --plan starter --name 'Bob'\''s bot' --expires 2031-01-01T00:00:00.000Z`,
      message: null,
    },
  ]);
  expect(audit[0]!.endedAt).not.toBeNull();
  expect(JSON.stringify(audit) + page.log()).not.toContain(secret);
});

test('loading the response with the new key again creates no second key', async () => {
  await page.signIn();
  const [first, again] = await page.confirmTwice('/ui/do/create-key?plan=pro&name=Cy');
  expect(first!.text).toMatch(KEY);
  expect([again!.status, again!.text]).toEqual([400, expect.stringContaining('This was done already')]);
  expect(again!.html).not.toMatch(KEY);
  const keys = () => database.sql`select from ops.api_key where name = 'Cy'`;
  expect(await keys()).toHaveLength(1);
  // Opening the form again means that another key is wanted.
  expect((await page.confirm('/ui/do/create-key?plan=pro&name=Cy')).text).toMatch(KEY);
  expect(await keys()).toHaveLength(2);
});

test('the form of a key works once, whichever process receives it', async () => {
  const processes = await Promise.all([1, 2].map(() => createTestDashboard(database.url, { states: () => [] })));
  try {
    const [one, other] = processes as [TestDashboard, TestDashboard];
    const session = await one.signIn((await createKey(database.sql)).key);
    const path = '/ui/do/create-key?plan=pro&name=Di';
    const html = await one.page(path, { session });
    const form = { token: formTokenIn(html), once: /name="once" value="([^"]+)"/.exec(html)![1]! };
    const send = async (to: TestDashboard) => {
      const answer = await to.ask(path, { session, form, headers: { origin: ORIGIN } });
      return { status: answer.status, hasKey: KEY.test(await answer.text()) };
    };
    const keys = () => database.sql`select from ops.api_key where name = 'Di'`;
    // Two at the same time, and one more.
    const answers = await Promise.all([send(one), send(other), send(other)]);
    expect(answers.map(({ hasKey }) => hasKey).sort()).toEqual([false, false, true]);
    expect(await keys()).toHaveLength(1);
    for (const to of processes) expect(await send(to)).toEqual({ status: 400, hasKey: false });
    expect(await keys()).toHaveLength(1);
    expect([...one.errors, ...other.errors]).toEqual([]);
  } finally {
    for (const one of processes) await one.close();
  }
});

test('the form of a key may be sent again when the key could not be created', async () => {
  await page.signIn();
  const path = '/ui/do/create-key?plan=pro&name=Ed';
  await database.sql`alter table ops.api_key add constraint no_ed check (name <> 'Ed')`;
  const [first, again] = await page.confirmTwice(path);
  expect([first!.status, again!.status]).toEqual([500, 500]);
  expect(again!.text).not.toContain('This was done already');
  expect(page.errors).toHaveLength(2);
  (page.errors as unknown[]).length = 0;
});

test('an operator can revoke a key once', async () => {
  await page.signIn();
  const { prefix } = await seedKey('bob');
  const path = `/ui/do/revoke-key?key=${prefix}`;
  expect((await page.look(path)).text).toContain(`Revoke the key ${prefix}? It is for bob, plan pro`);
  const { text } = await page.confirm(path);
  expect(text).toContain(`${prefix} is revoked. chandler keys revoke ${prefix}`);
  expect((await findApiKey(database.sql, prefix))!.revokedAt).not.toBeNull();
  const again = await page.look(path);
  expect([again.status, again.text]).toEqual([400, expect.stringContaining('was already revoked')]);
  expect((await page.look('/ui/system')).text).toContain(`ann (dashboard) | chandler keys revoke ${prefix} | done in`);
});

test('wrong terms are refused with the name of their field, and a whole key in an address is not repeated', async () => {
  const { key } = await seedKey('bob');
  for (const [path, message] of [
    ['create-key', 'plan must be one of free, starter, pro, business, ultimate, enterprise, unlimited, got "".'],
    ['create-key?plan=gold', 'got "gold".'],
    ['create-key?plan=pro&operator=yes', 'operator must be true or false, got "yes".'],
    ['create-key?plan=pro&expires=soon', 'expires must be a date like 2027-01-31, or like 90d, got "soon".'],
    [
      'create-key?plan=pro&expires=2097-02-31',
      'expires must be a date like 2027-01-31, or like 90d, got "2097-02-31".',
    ],
    ['create-key?plan=pro&expires=2001-01-01', 'expires must lie in the future'],
    [`create-key?plan=pro&name=${'x'.repeat(101)}`, 'name must be one line of at most 100 characters.'],
    ['revoke-key?key=chandler_00000000', 'There is no key chandler_00000000.'],
    [`revoke-key?key=${key}`, 'key must be the first part of a key, like chandler_1a2B3c4D.'],
  ] as const) {
    const { status, text } = await page.look(`/ui/do/${path}`);
    expect([path, status]).toEqual([path, 400]);
    expect(text).toContain(message);
    expect(text).not.toContain(key);
  }
});

test('no screen shows any part of a secret setting', async () => {
  await page.look('/ui/system');
  // The checks take a moment.
  await expect.poll(async () => (await page.look('/ui/system')).text).toContain('set, sent only to 127.0.0.1:9');
  const url = new URL(database.url);
  for (const screen of SCREENS) {
    const { html } = await page.look(screen);
    for (const secret of ['topsecretkey', 'hidden-part', ...(url.password === '' ? [] : [url.password])])
      expect([screen, secret, html.includes(secret)]).toEqual([screen, secret, false]);
  }
});

test.each([
  ['53100', 'The disk of the database is full', 'was not done'],
  ['25006', 'The database is read-only', 'was not done'],
  ['55P03', 'The database is locked', 'was not done'],
  ['57P01', 'The database cannot be reached', 'may have been done or not'],
])('an action that cannot be stored (%s) says why, and whether it was done', async (code, title, said) => {
  await page.signIn();
  await database.sql.unsafe(`
    create function public.refuse() returns trigger language plpgsql as $$ begin raise 'no' using errcode = '${code}'; end $$;
    create trigger refuse before insert on ops.audit execute function public.refuse()`);
  const { status, text } = await page.confirm('/ui/do/create-key?plan=starter&name=bob&operator=false');
  expect([status, text]).toEqual([503, expect.stringContaining(title)]);
  expect(text).toContain(said);
  await database.sql`drop trigger refuse on ops.audit`;
  expect((await page.confirm('/ui/do/create-key?plan=starter&name=bob&operator=false')).status).toBe(200);
});

test('a page that needs a locked table says that the database is locked', async () => {
  await database.sql.begin(async (tx) => {
    await tx`lock table ops.api_key in access exclusive mode`;
    const { status, text } = await page.look('/ui/keys');
    expect([status, text]).toEqual([503, expect.stringContaining('The database is locked')]);
  });
  expect((await page.look('/ui/keys')).status).toBe(200);
});
