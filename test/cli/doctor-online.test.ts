import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { startHook } from '../support/hook.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';

let database: TestDatabase;
let upstream: SimulatedUpstream;
/** Replaces the simulator's answers when set. */
let instead: (() => Response) | null = null;
/** The upstream has no such endpoint. */
let withoutAccount = false;
beforeAll(async () => {
  database = await createTestDatabase();
  upstream = await startUpstream(
    { seed: 3, coins: 5, limits: { keys: { right: 'pro' } } },
    (simulated) => async (request) => {
      if (withoutAccount && /\/(users\/me|key\/info)$/.test(new URL(request.url).pathname))
        return new Response('404 page not found', { status: 404 });
      return instead?.() ?? simulated(request);
    },
  );
});
afterAll(async () => {
  await upstream?.close();
  await database?.drop();
});

async function doctor(settings: Record<string, string>) {
  const env = { DATABASE_URL: database.url, CHANDLER_BASE_URL: `${upstream.url}/v1`, ...settings };
  const { code, out } = await runCommand(['doctor', '--online', '--json'], { env });
  const checks: { name: string; state: string; found: string; fix?: string }[] = JSON.parse(out);
  expect(checks.find((check) => check.name === 'database')?.state).toBe('ok');
  return { code, about: checks.find((check) => check.name === 'upstream') };
}

describe('doctor --online', () => {
  test('succeeds with an upstream that answers, with the right key and without a key', async () => {
    expect(await doctor({})).toMatchObject({ code: 0, about: { state: 'ok' } });
    expect(await doctor({ CHANDLER_API_KEY: 'right' })).toMatchObject({
      code: 0,
      about: { found: expect.stringContaining('plan pro') },
    });
  });

  test('warns if CHANDLER_PLAN is not the plan of the key', async () => {
    expect(await doctor({ CHANDLER_API_KEY: 'right', CHANDLER_PLAN: 'business' })).toEqual({
      code: 0,
      about: {
        ...{ name: 'upstream', state: 'warn' },
        found: expect.stringMatching(/ accepts the key: plan pro, but CHANDLER_PLAN is business$/),
        fix: 'leave out CHANDLER_PLAN: Chandler then uses the plan of the key, also after it changes',
      },
    });
    expect(await doctor({ CHANDLER_API_KEY: 'right', CHANDLER_PLAN: 'pro' })).toMatchObject({ about: { state: 'ok' } });
  });

  test('distinguishes an upstream without an account endpoint from a wrong path at the right host', async () => {
    const wrong = { CHANDLER_API_KEY: 'right', CHANDLER_BASE_URL: `${upstream.url}/somewhere/v1` };
    expect(await doctor(wrong)).toMatchObject({
      code: 1,
      about: { state: 'fail', found: expect.stringMatching(/does not answer like/) },
    });
    withoutAccount = true;
    try {
      expect(await doctor({ CHANDLER_API_KEY: 'right' })).toMatchObject({
        code: 0,
        about: { state: 'warn', fix: expect.stringContaining('CHANDLER_PLAN') },
      });
    } finally {
      withoutAccount = false;
    }
  });

  test.each<[string, Record<string, string>, (() => Response) | null, RegExp, RegExp]>([
    ['a wrong key', { CHANDLER_API_KEY: 'wrong' }, null, /refused the key .*403/, /CHANDLER_API_KEY/],
    [
      'a key that is wanted',
      {},
      () => Response.json({ error: 'api key is required' }, { status: 403 }),
      /only with a key/,
      /set CHANDLER_API_KEY/,
    ],
    [
      'nobody there',
      { CHANDLER_BASE_URL: 'http://127.0.0.1:1/v1' },
      null,
      /CHANDLER_BASE_URL .*refused/,
      /correct the address/,
    ],
    [
      'a web page',
      {},
      () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
      /does not answer like/,
      /end in \/v1/,
    ],
    ['an outage', {}, () => new Response('', { status: 503 }), /answered 503/, /try again later/],
    [
      'an outage, with a key',
      { CHANDLER_API_KEY: 'right' },
      () => new Response('', { status: 503 }),
      /answered 503/,
      /try again later/,
    ],
  ])('reports %s as a problem of the upstream, and says what would help', async (_, settings, answer, found, fix) => {
    instead = answer;
    try {
      const { code, about } = await doctor(settings);
      expect(about).toMatchObject({ state: 'fail' });
      expect(about!.found).toMatch(found);
      expect(about!.fix).toMatch(fix);
      expect(code).toBe(1);
    } finally {
      instead = null;
    }
  });

  test('sends a message to the webhook and reports a failed response; without --online it only names the host', async () => {
    const hook = await startHook();
    const env = { DATABASE_URL: database.url, CHANDLER_BASE_URL: `${upstream.url}/v1`, CHANDLER_WEBHOOK_URL: hook.url };
    const ask = async (...options: string[]) => {
      const { code, out } = await runCommand(['doctor', '--json', ...options], { env });
      expect(out).not.toContain(hook.secret);
      const checks: { name: string; state: string; found: string }[] = JSON.parse(out);
      return { code, ...checks.find(({ name }) => name === 'webhook') };
    };
    try {
      expect(await ask()).toMatchObject({
        code: 0,
        state: 'ok',
        found: expect.stringMatching(/is notified of key-refused, upstream-down/),
      });
      expect(hook.posts).toEqual([]);
      expect(await ask('--online')).toMatchObject({
        code: 0,
        state: 'ok',
        found: expect.stringMatching(/accepted a/),
      });
      expect(hook.texts()).toEqual(['chandler doctor: messages of Chandler arrive here.']);
      hook.answer = (_, response) => void response.writeHead(404).end('no_service');
      expect(await ask('--online')).toMatchObject({
        code: 1,
        state: 'fail',
        found: expect.stringMatching(/404 \(no_s/),
      });
    } finally {
      await hook.close();
    }
  });
});
