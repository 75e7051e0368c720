import { describe, expect, it } from 'vitest';
import type { Access, Caller } from '../../src/contract/plan/access.ts';
import { createService } from '../../src/service/service.ts';
import { createMadeUpMarket } from '../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../src/simulator/made-up/made-up-world.ts';
import { createRecordedMarket } from '../../src/simulator/recorded/recorded.ts';
import { describeService, frozenClock, openAccess } from './conformance.ts';

const now = Date.UTC(2024, 5, 1, 12, 3, 20);
const clock = frozenClock(now);
const data = createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 30 }), clock });

describeService('the made-up market', async () => ({
  data,
  clock,
  coinId: 'btc-bitcoin',
  firstDay: Date.UTC(2024, 4, 1),
}));
describeService('the recorded market', async () => ({
  data: createRecordedMarket({ clock }),
  clock,
  coinId: 'eth-ethereum',
  firstDay: Date.UTC(2019, 10, 1),
  catalogue: 'bare',
}));

function serviceWith(
  access: Partial<Access> = {},
  onError = (error: unknown): void => {
    throw error;
  },
  market = data,
) {
  const service = createService({ data: market, access: { ...openAccess, ...access }, clock, onError });
  return (path: string, init?: RequestInit) =>
    service(new Request(`http://service${path}`, init), { address: '10.0.0.7' });
}

describe('the service', () => {
  const get = serviceWith();

  it('answers an unknown route with text, not JSON', async () => {
    for (const path of ['/v1/nothing', '/v1/coins/btc-bitcoin/ohlcv/tomorrow', '/elsewhere']) {
      const answer = await get(path);
      expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
        404,
        'text/plain',
        '404 page not found',
      ]);
    }
  });

  it('may be read by any web page, and answers its preflight', async () => {
    expect((await get('/v1/coins')).headers.get('access-control-allow-origin')).toBe('*');
    const preflight = await get('/v1/coins', { method: 'OPTIONS' });
    expect([preflight.status, preflight.headers.get('access-control-allow-headers')]).toEqual([
      204,
      'Authorization, Content-Type, If-None-Match',
    ]);
  });

  it('answers HEAD like GET without the body, and POST like GET', async () => {
    const head = await get('/v1/global', { method: 'HEAD' });
    expect([head.status, await head.text(), head.headers.get('content-type')]).toEqual([
      200,
      '',
      'application/json; charset=UTF-8',
    ]);
    expect(await (await get('/v1/global', { method: 'POST', body: '{}' })).json()).toEqual(
      await (await get('/v1/global')).json(),
    );
  });

  it('ends the bodies of the main service with a newline', async () => {
    expect(await (await get('/v1/global')).text()).toMatch(/\}\n$/);
  });

  it('redirects OHLCV paths that end with a slash, to a relative address that keeps the query', async () => {
    const answer = await get('/v1/coins/btc-bitcoin/ohlcv/historical/?start=2024-05-01&limit=2');
    expect([answer.status, answer.headers.get('location')]).toEqual([
      301,
      '/v1/coins/btc-bitcoin/ohlcv/historical?start=2024-05-01&limit=2',
    ]);
    expect(await answer.text()).toBe(
      '<a href="/v1/coins/btc-bitcoin/ohlcv/historical?start=2024-05-01&amp;limit=2">Moved Permanently</a>.\n\n',
    );
  });

  it('dates its answers by the clock', async () => {
    expect((await get('/v1/global')).headers.get('date')).toBe('Sat, 01 Jun 2024 12:03:20 GMT');
  });

  it('allows shared caches to keep public answers only', async () => {
    const cacheOf = async (path: string, key?: string) =>
      (await get(path, { headers: key ? { Authorization: key } : {} })).headers.get('cache-control');
    expect(await cacheOf('/v1/coins')).toMatch(/^public, max-age=60/);
    expect(await cacheOf('/v1/coins', 'secret')).toBe('private, max-age=60');
    expect(await cacheOf('/v1/tickers/nono-nowhere')).toBe('no-store');
    expect(await cacheOf('/v1/users/me')).toBe('no-store');
    expect((await get('/v1/coins')).headers.get('vary')).toContain('Authorization');
  });

  it('returns the open candle of today up to the minute, and yesterday as the latest', async () => {
    const row = async (path: string) =>
      ((await (await get(`/v1/coins/btc-bitcoin/ohlcv/${path}`)).json()) as Record<string, unknown>[])[0];
    const today = await row('today');
    expect(today).toMatchObject({ time_open: '2024-06-01T00:00:00Z', time_close: '2024-06-01T12:04:00Z' });
    expect(await row('latest')).toMatchObject({
      time_open: '2024-05-31T00:00:00Z',
      time_close: '2024-05-31T23:59:59Z',
    });
    expect(await row('historical?start=2024-06-01')).toEqual(today);
    expect(await row('historical?start=2024-06-01&interval=1h&limit=13&end=2024-06-01T12:00:00Z')).toMatchObject({
      time_close: '2024-06-01T00:59:59Z',
    });
  });

  it('hides what the free plan does not include', async () => {
    const free = serviceWith({ admit: () => ({ kind: 'admitted', plan: 'free' }) });
    expect(await (await free('/v1/tickers/btc-bitcoin')).json()).not.toHaveProperty('circulating_supply');
    expect(await (await get('/v1/tickers/btc-bitcoin')).json()).toHaveProperty('circulating_supply', 19_500_000);
    const many = createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 3_000 }), clock });
    const shown = await serviceWith(
      { admit: () => ({ kind: 'admitted', plan: 'free' }) },
      undefined,
      many,
    )('/v1/tickers');
    expect(await shown.json()).toHaveLength(2_000);
  });

  it('distinguishes a mistake of the client from one of its own', async () => {
    const seen: unknown[] = [];
    const broken = { ...data, coins: () => Promise.reject(new Error('disk on fire')) };
    const answer = await serviceWith(
      {},
      (error) => {
        seen.push(error);
      },
      broken,
    )('/v1/coins');
    expect([answer.status, await answer.json()]).toEqual([500, { error: 'An unexpected server error has occurred' }]);
    expect(seen).toEqual([expect.objectContaining({ message: 'disk on fire' })]);
  });
});

describe('admission to the service', () => {
  it.each([
    [undefined, { key: null, scheme: null }],
    ['Bearer abc', { key: 'abc', scheme: 'bearer' }],
    ['bearer  abc', { key: 'abc', scheme: 'bearer' }],
    ['abc', { key: 'abc', scheme: 'bare' }],
  ])('reads Authorization: %s', async (authorization, expected) => {
    const callers: Caller[] = [];
    const get = serviceWith({
      admit: (caller) => {
        callers.push(caller);
        return { kind: 'admitted', plan: 'free' };
      },
    });
    await get('/v1/coins', { headers: authorization ? { Authorization: authorization } : {} });
    expect(callers).toEqual([{ ...expected, address: '10.0.0.7' }]);
  });

  it('comes first, once per request, and recognises a request about the account', async () => {
    const asked: string[] = [];
    const get = serviceWith({
      admit: (_, about) => {
        asked.push(about);
        return { kind: 'rejected', status: 429, message: 'slowly', retryAfterSeconds: 3 };
      },
    });
    for (const path of ['/v1/coins/x/ohlcv/historical?start=junk', '/v1/users/me', '/v1/key/info', '/v1/tickers']) {
      const answer = await get(path);
      expect([answer.status, answer.headers.get('retry-after'), await answer.json()]).toEqual([
        429,
        '3',
        { error: 'slowly' },
      ]);
    }
    expect(asked).toEqual(['data', 'account', 'account', 'data']);
  });

  it('is not requested for an unknown path or method, which costs nothing', async () => {
    let asked = 0;
    const get = serviceWith({
      admit: () => {
        asked++;
        return { kind: 'rejected', status: 429, message: 'slowly', retryAfterSeconds: 3 };
      },
    });
    const answers = await Promise.all([
      get('/v1/nothing'),
      get('/v1/tickers', { method: 'DELETE' }),
      get('/v1/coins/btc-bitcoin', { method: 'PUT', body: '{}' }),
      get('/docs', { method: 'PUT', body: '{}' }),
      get('/openapi.json', { method: 'DELETE' }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([404, 405, 405, 405, 405]);
    const allowed = answers.map(({ headers }) => headers.get('allow'));
    expect(allowed).toEqual([
      null,
      ...Array(2).fill('GET, HEAD, POST, OPTIONS'),
      ...Array(2).fill('GET, HEAD, OPTIONS'),
    ]);
    expect(await answers[1]!.json()).toEqual({ error: 'DELETE is not possible here: use GET' });
    expect(asked).toBe(0);
  });

  it('answers 402 with its text beyond the history limit, judged by the given start', async () => {
    const starts: number[] = [];
    const get = serviceWith({
      refuseHistory: (_, __, start) => {
        starts.push(start);
        return 'not in this plan';
      },
    });
    const answer = await get('/v1/coins/btc-bitcoin/ohlcv/historical?start=1717156801');
    expect([answer.status, await answer.json()]).toEqual([402, { error: 'not in this plan' }]);
    expect(starts).toEqual([1_717_156_801_000]);
  });

  it('describes the account of a key under both paths, and returns nothing without a valid key', async () => {
    const info = {
      plan: 'pro',
      plan_started_at: null,
      plan_status: 'active',
      portal_url: null,
      usage: { message: 'limited plan', current_month: { requests_made: 3, requests_left: 7 } },
    };
    const get = serviceWith({ account: (caller) => (caller.key === 'abc' ? info : null) });
    for (const path of ['/v1/users/me', '/v1/key/info']) {
      expect(await (await get(path, { headers: { Authorization: 'abc' } })).json()).toEqual(info);
      expect((await get(path, { headers: { Authorization: 'abcd' } })).status).toBe(403);
      expect(await (await get(path)).json()).toEqual({ error: 'api key is required' });
    }
  });
});
