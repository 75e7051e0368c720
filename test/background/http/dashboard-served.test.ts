/** Where the dashboard is: beside the API, or with all other paths for operators at their own address; never at the address for callers then. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { startServiceProcess } from '../../support/service-process.ts';

let database: TestDatabase;
let env: Record<string, string>;
beforeAll(async () => {
  database = await createTestDatabase({ max: 1 });
  // Nothing listens there.
  env = { DATABASE_URL: database.url, CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1', CHANDLER_PLAN: 'pro' };
});
afterAll(() => database?.drop());

const PATHS = ['/', '/?done=1', '/ui/backfills', '/ui/assets/style.css', '/ui/assets/page.js', '/ui/sign-in'];

async function typesOf(origin: string): Promise<string[]> {
  const answers = await Promise.all(PATHS.map((path) => fetch(`${origin}${path}`)));
  return answers.map(({ status, headers }) => `${status} ${headers.get('content-type')?.split(';')[0]}`);
}

/** The statuses of the pages beyond the dashboard to which its pages link. */
async function linksFrom(origin: string): Promise<[string, number][]> {
  const html = await (await fetch(`${origin}/`)).text();
  const links = new Set(Array.from(html.matchAll(/ href="(\/[^"]*)"/g), ([, path]) => path!));
  const others = [...links].filter((path) => path !== '/' && !path.startsWith('/ui/'));
  return Promise.all(
    others.map(async (path): Promise<[string, number]> => [path, (await fetch(origin + path)).status]),
  );
}

const THERE = [...Array(3).fill('200 text/html'), '200 text/css', '200 text/javascript', '200 text/html'];

test('a service with the role http serves the dashboard beside the API', async () => {
  const service = await startServiceProcess('http', env);
  try {
    const { url } = (await service.said(/^serving \/v1/)) as unknown as { url: string };
    await expect.poll(() => typesOf(url), { timeout: 60_000 }).toEqual(THERE);
    expect((await fetch(`${url}/v1/global`)).headers.get('content-type')).toContain('application/json');
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect(await linksFrom(url)).toEqual([['/docs', 200]]);
    // The answer has no body, so it ends at once, and the next request on the connection is answered.
    for (let i = 0; i < 3; i++) {
      const head = await fetch(`${url}/ui/events`, { method: 'HEAD', signal: AbortSignal.timeout(10_000) });
      expect([head.status, await head.text()]).toEqual([200, '']);
    }
    // Scripts send forms without a body and without a length.
    const empty = await fetch(`${url}/ui/do/pause?backfill=1`, { method: 'POST', redirect: 'manual' });
    expect([empty.status, empty.headers.get('location')]).toEqual([303, expect.stringContaining('/ui/sign-in')]);
    // Compressed, a first visit is below 100 kB.
    const sizes = await Promise.all(
      ['/', '/ui/assets/style.css', '/ui/assets/page.js', '/ui/assets/lightweight-charts.js'].map(async (path) => {
        const answer = await fetch(`${url}${path}`, { headers: { 'accept-encoding': 'gzip' } });
        await answer.arrayBuffer();
        return Number(answer.headers.get('content-length'));
      }),
    );
    expect(sizes.every((size) => size > 0)).toBe(true);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(100_000);
  } finally {
    await service.stop();
  }
});

test('with an address for operators the dashboard is there, and callers find nothing of it', async () => {
  const service = await startServiceProcess('http', { ...env, CHANDLER_OPERATIONS_LISTEN: '127.0.0.1:0' });
  try {
    const { operationsUrl } = (await service.said(/^serving .* at .*health|^serving \/health/)) as unknown as {
      operationsUrl: string;
    };
    const { url } = (await service.said(/^serving \/v1/)) as unknown as { url: string };
    await expect.poll(() => typesOf(operationsUrl), { timeout: 60_000 }).toEqual(THERE);
    expect(await typesOf(url)).toEqual(PATHS.map(() => '404 text/plain'));
    // The documentation of the API is at the address for callers.
    expect(await linksFrom(operationsUrl)).toEqual([]);
  } finally {
    await service.stop();
  }
});
