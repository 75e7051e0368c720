/** A key that the upstream refuses: every command that reports the state of Chandler says so without a request. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let server: Listening;
let requests = 0;
const envOf = (key: string) => ({
  DATABASE_URL: database.url,
  CHANDLER_BASE_URL: `${server.url}/v1`,
  CHANDLER_API_KEY: key,
  CHANDLER_LISTEN: '127.0.0.1:0',
});

beforeAll(async () => {
  database = await createTestDatabase();
  const simulator = createSimulator({
    market: 'made-up',
    coins: 12,
    clock: systemClock,
    limits: { keys: { right: 'pro' } },
    onError: (error) => {
      throw error;
    },
  });
  server = await listen(
    (request) => {
      requests++;
      return simulator.fetch(request);
    },
    { host: '127.0.0.1', port: 0 },
  );
  const { code } = await runCommand(['plan', 'btc-bitcoin', '--start', '-5d'], { env: envOf('wrong') });
  expect(code).toBe(2);
  await database.sql`update ops.account set refused_since = '2030-01-02T03:04:00Z' where refused_at is not null`;
});
afterAll(async () => {
  await server.close();
  await database.drop();
});

describe('a refused key', () => {
  test('is shown by status with since when, why, and what to do', async () => {
    const { code, out } = await runCommand(['status'], { env: envOf('wrong') });
    expect(code).toBe(0);
    expect(out).toMatch(
      /^Key refused since 2030-01-02 03:04Z \(tried last (now|.* ago)\): the upstream refused the key \(.*403.*\), .*; set CHANDLER_API_KEY .* chandler doctor --online does so now\.\n\n/,
    );
    // Nothing runs next until then.
    expect(out).toMatch(/^Next: nothing, until the upstream accepts the key\.$/m);
    const { keyRefusal } = JSON.parse((await runCommand(['status', '--json'], { env: envOf('wrong') })).out);
    expect(keyRefusal).toEqual({
      message: expect.stringMatching(/^the upstream refused the key/),
      since: '2030-01-02T03:04:00.000Z',
      lastTriedAt: expect.stringMatching(/Z$/),
      retryAt: expect.stringMatching(/Z$/),
    });
  });

  test('is among the problems of status since it began, but not when another key was refused', async () => {
    // The account was in use before its key was revoked.
    await database.sql`update ops.account set is_current = true where refused_at is not null`;
    const problems = async (env: Record<string, string>) =>
      JSON.parse((await runCommand(['status', '--json'], { env })).out).now.problems;
    const key = { what: 'key', times: 1, message: expect.stringMatching(/^the upstream refused the key/) };
    expect(await problems(envOf('wrong'))).toContainEqual({ ...key, since: '2030-01-02T03:04:00.000Z' });
    const isKey = expect.objectContaining({ what: 'key' });
    expect(await problems(envOf('right'))).not.toContainEqual(isKey);
    // The upstream may accept the refused key in another header.
    await database.sql`update ops.account set refused_scheme = 'bearer' where refused_at is not null`;
    expect(await problems({ ...envOf('wrong'), CHANDLER_AUTH_SCHEME: 'bare' })).not.toContainEqual(isKey);
    await database.sql`update ops.account set refused_scheme = 'auto', is_current = false where refused_at is not null`;
    expect(await problems(envOf('wrong'))).toContainEqual({ ...key, since: '2030-01-02T03:04:00.000Z' });
  });

  test('is shown by doctor, also offline', async () => {
    const { code, out } = await runCommand(['doctor'], { env: envOf('wrong') });
    expect(code).toBe(1);
    expect(out).toMatch(
      /FAIL {2}key refused +the upstream refused the key .*since 2030-01-02 03:04Z\n +→ set CHANDLER_API_KEY/,
    );
  });

  test.for([
    ['scheduler,worker,http', 503],
    // It sends no requests and serves what is stored.
    ['http', 200],
  ] as const)('is shown by /ready of a service with the roles %s', async ([roles, status]) => {
    const stop = new AbortController();
    let err = '';
    const ended = runCommand(['service', '--role', roles], {
      env: envOf('wrong'),
      signal: stop.signal,
      onError: (text) => {
        err = text;
      },
    });
    const url = await vi.waitFor(() => /"url":"(http:[^"]+)"/.exec(err)![1]!, { timeout: 60_000 });
    await vi.waitFor(
      async () => {
        const answer = await fetch(`${url}/ready`);
        expect({ status: answer.status, body: await answer.json() }).toMatchObject({
          status,
          body: { incidents: [{ what: 'the account', message: expect.stringContaining('set CHANDLER_API_KEY') }] },
        });
      },
      { timeout: 60_000 },
    );
    stop.abort();
    expect((await ended).code).toBe(0);
  });

  test('is known without a request, and does not affect another key', async () => {
    const before = requests;
    await runCommand(['status'], { env: envOf('wrong') });
    await runCommand(['doctor'], { env: envOf('wrong') });
    expect(requests).toBe(before);
    expect((await runCommand(['status'], { env: envOf('right') })).out).not.toMatch(/refuse/);
    expect((await runCommand(['doctor'], { env: envOf('right') })).out).not.toMatch(/refuse/);
    // A request now gets the refusal from the upstream itself.
    const online = await runCommand(['doctor', '--online'], { env: envOf('wrong') });
    expect(online.out.match(/refused the key/g)).toHaveLength(1);
  });
});
