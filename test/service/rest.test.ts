import { describe, expect, it } from 'vitest';
import { createScaledClock } from '../../src/clock.ts';
import { parseHistoryLimit } from '../../src/contract/answer/errors.ts';
import { completeAsOf, NO_DATA, type Provenance, withProvenance } from '../../src/contract/answer/provenance.ts';
import type { Access } from '../../src/contract/plan/access.ts';
import type { PlanName } from '../../src/contract/plan/plans.ts';
import type { MarketData } from '../../src/contract/record/market-data.ts';
import { DAY } from '../../src/core/interval.ts';
import { createService } from '../../src/service/service.ts';
import { createMadeUpMarket } from '../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../src/simulator/made-up/made-up-world.ts';
import { createPlanLimits } from '../../src/simulator/plan-limits.ts';
import { openAccess } from './conformance.ts';

const now = Date.UTC(2024, 5, 1, 12, 3, 20);
const clock = createScaledClock({ speed: 0, startAt: now });
const market = createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 30 }), clock });

function serviceOver(data: MarketData, access: Access = openAccess) {
  const service = createService({
    data,
    access,
    clock,
    onError: (error) => {
      throw error;
    },
  });
  return (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    service(new Request(`http://service/v1${path}`, { headers, method }));
}

/** A source with provenance, whose answers are current until the test calls `changed`. */
function standing(data: MarketData, provenance: Provenance) {
  const answers = new Map<string, object>();
  let asked = 0;
  const source = new Proxy(data, {
    get: (target, name: Exclude<keyof MarketData, 'hasProvenance'>) => async (query: never) => {
      const key = name + JSON.stringify(query);
      asked++;
      const kept = answers.get(key);
      if (kept) return kept;
      const made = (await target[name](query)) as object | null;
      if (made === null) return null;
      answers.set(key, withProvenance(structuredClone(made), provenance));
      return answers.get(key);
    },
  });
  return { source, changed: () => answers.clear(), asked: () => asked };
}

const OHLCV = '/coins/btc-bitcoin/ohlcv/historical?start=2024-05-01&end=2024-05-09';
const PATHS = [OHLCV, '/tickers', '/tickers/btc-bitcoin', '/coins/btc-bitcoin', '/tags?additional_fields=coins'];

describe('an answer of a source with provenance', () => {
  const provenance = completeAsOf(Date.UTC(2024, 5, 1, 12, 1));

  it('has its provenance in headers: full, partial or none', async () => {
    const standings: [Provenance, string, string | null][] = [
      [provenance, 'full', '2024-06-01T12:01:00Z'],
      [
        { ...provenance, coverage: 'partial', firstMissing: Date.UTC(2024, 4, 3) },
        'partial; first-missing=2024-05-03T00:00:00Z',
        '2024-06-01T12:01:00Z',
      ],
      [{ ...provenance, coverage: 'partial' }, 'partial', '2024-06-01T12:01:00Z'],
      [NO_DATA, 'none', null],
    ];
    for (const [one, coverage, asOf] of standings) {
      const get = serviceOver(standing(market, one).source);
      for (const path of PATHS) {
        const { headers } = await get(path);
        expect([headers.get('x-chandler-coverage'), headers.get('x-chandler-as-of')]).toEqual([coverage, asOf]);
      }
    }
    const { headers } = await serviceOver(market)(OHLCV);
    expect([headers.get('x-chandler-coverage'), headers.get('etag')]).toEqual([null, null]);
    expect(headers.get('access-control-expose-headers')).toContain('X-Chandler-Coverage');
  });

  it('has an ETag that changes with it, and is not sent to a client that has it', async () => {
    const { source, changed } = standing(market, provenance);
    const get = serviceOver(source);
    for (const path of PATHS) {
      const first = await get(path);
      const etag = first.headers.get('etag')!;
      expect(etag).toMatch(/^W\/"[\w-]+"$/);
      for (const known of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
        const again = await get(path, { 'If-None-Match': known });
        expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
        expect(again.headers.get('cache-control')).toMatch(/^public, max-age=60/);
        expect(again.headers.get('x-chandler-coverage')).toBe('full');
        expect(again.headers.get('content-type')).toBeNull();
      }
      const other = await get(path, { 'If-None-Match': 'W/"other"' });
      expect([other.status, await other.text()]).toEqual([200, await first.text()]);
    }
    const etag = async () => (await get('/tickers/btc-bitcoin')).headers.get('etag');
    const before = await etag();
    changed();
    expect(await etag()).toBe(before);
    const dearer = { ...market, ticker: async () => withProvenance({ id: 'btc-bitcoin' } as never, provenance) };
    expect((await serviceOver(dearer)('/tickers/btc-bitcoin')).headers.get('etag')).not.toBe(before);
  });

  it('is separate for callers of different plans, and for different queries', async () => {
    let plan: PlanName = 'free';
    const { source, asked } = standing(market, provenance);
    const get = serviceOver(source, { ...openAccess, admit: () => ({ kind: 'admitted', plan }) });
    const keys = async (path: string) => {
      const body = (await (await get(path)).json()) as object | object[];
      return Object.keys(Array.isArray(body) ? body[0]! : body);
    };
    for (const path of ['/tickers', '/tickers/btc-bitcoin']) {
      plan = 'free';
      expect(await keys(path)).not.toContain('circulating_supply');
      plan = 'pro';
      expect(await keys(path)).toContain('circulating_supply');
      expect(await keys('/ticker/btc-bitcoin')).toContain('price_usd');
      plan = 'free';
      expect(await keys(path)).not.toContain('circulating_supply');
    }
    expect(await keys('/tags?additional_fields=coins')).toContain('coins');
    expect(await keys('/tags')).not.toContain('coins');
    expect(await keys('/tags?additional_fields=icos,coins')).toEqual(expect.arrayContaining(['coins', 'icos']));
    expect(asked()).toBe(11);
  });

  it('has the same headers on HEAD as on GET', async () => {
    const get = serviceOver(standing(market, provenance).source);
    const [head, whole] = [await get(OHLCV, {}, 'HEAD'), await get(OHLCV)];
    expect([head.status, await head.text()]).toEqual([200, '']);
    expect(Object.fromEntries(head.headers)).toEqual(Object.fromEntries(whole.headers));
  });
});

describe('ticker history', () => {
  const ask = async (plan: PlanName, interval: string, start: number) => {
    const get = serviceOver(market, createPlanLimits({ clock, plan }));
    const answer = await get(`/tickers/btc-bitcoin/historical?interval=${interval}&start=${start / 1_000}&limit=1`);
    return [answer.status, answer.status === 200 ? null : ((await answer.json()) as { error: string }).error];
  };

  it.each<[PlanName, string, number]>([
    ['free', '1d', 365 * DAY],
    ['free', '1h', DAY],
    ['starter', '12h', 30 * DAY],
    ['starter', '5m', 7 * DAY],
    ['business', '45m', 365 * DAY],
  ])('of the plan %s at %s reaches back to its limit, and no further', async (plan, interval, depth) => {
    const limit = Math.ceil((now - depth) / 1_000) * 1_000;
    expect(await ask(plan, interval, limit)).toEqual([200, null]);
    const [status, error] = await ask(plan, interval, limit - 1_000);
    expect(status).toBe(402);
    expect(error).toMatch(/^Getting (daily|hourly|minute) historical data before 20\d\d-.* \+0000 UTC is not allowed/);
    expect(parseHistoryLimit(String(error))!.notBefore).toBeGreaterThanOrEqual(now - depth);
  });

  it('has no minutes on the free plan, and no limit on the largest plan', async () => {
    expect(await ask('free', '5m', now - 60_000)).toEqual([
      402,
      'Getting minute historical data is not allowed in this plan. Check plans on coinpaprika.com/api',
    ]);
    expect(await ask('enterprise', '5m', 0)).toEqual([200, null]);
    expect(await ask('pro', '365d', 0)).toEqual([200, null]);
  });
});

it('pages of prices exist only for paid plans, as upstream', async () => {
  const answer = await serviceOver(market, createPlanLimits({ clock, plan: 'free' }))('/tickers/simple');
  expect([answer.status, await answer.text()]).toEqual([404, '404 page not found']);
  expect(answer.headers.get('content-type')).toBe('text/plain');
});

it('a path without data in this service gives 404 in JSON: not available here', async () => {
  const answer = await serviceOver(market)('/coins/btc-bitcoin/twitter');
  expect([answer.status, await answer.json()]).toEqual([404, { error: 'not available here' }]);
});

it.each(['/fiats', '/coins/a/b/c'])('%s is an unknown route', async (path) => {
  const answer = await serviceOver(market)(path);
  expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
    404,
    'text/plain',
    '404 page not found',
  ]);
});

it.each([
  ['free', null, 402],
  ['free', 'a-key', 402],
  ['starter', 'a-key', 200],
  ['enterprise', 'a-key', 200],
] as const)('the changelog of ids needs a paid plan: %s', async (plan, key, status) => {
  const access = createPlanLimits({ clock, plan: 'free', keys: { 'a-key': plan } });
  const headers: Record<string, string> = key === null ? {} : { Authorization: `Bearer ${key}` };
  const answer = await serviceOver(market, access)('/changelog/ids', headers);
  expect(answer.status).toBe(status);
  const text = 'Getting changes of ids is not allowed in this plan. Check plans on coinpaprika.com/api';
  if (status === 402) expect(await answer.json()).toEqual({ error: text });
  // A parser of history limits reads one without a date.
  expect(parseHistoryLimit(text)).toEqual({ notBefore: null });
});

it.each([
  ['free', null, 402],
  ['starter', 'a-key', 402],
  ['pro', 'a-key', 402],
  ['business', 'a-key', 200],
  ['ultimate', 'a-key', 200],
  ['enterprise', 'a-key', 200],
  ['business', 'another-key', 403],
] as const)(
  'the ids of a coin at other providers need the plan business or a larger one: %s',
  async (plan, key, status) => {
    const access = createPlanLimits({ clock, plan: 'free', keys: { 'a-key': plan } });
    const headers: Record<string, string> = key === null ? {} : { Authorization: key };
    const answer = await serviceOver(market, access)('/coins/mappings?coinpaprika=btc-bitcoin', headers);
    expect(answer.status).toBe(status);
    const text = 'Getting mappings of ids is not allowed in this plan. Check plans on coinpaprika.com/api';
    if (status === 402) expect(await answer.json()).toEqual({ error: text });
    expect(parseHistoryLimit(text)).toEqual({ notBefore: null });
  },
);

it('unknown parameters are ignored, and the first of two equal ones counts', async () => {
  const get = serviceOver(market);
  expect((await get(`${OHLCV}&quotes=EUR&junk=%00`)).status).toBe(200);
  expect(await (await get(`${OHLCV}&limit=2&limit=junk`)).json()).toHaveLength(2);
});

it('no data is read for an impossible id', async () => {
  const untouched = new Proxy(market, {
    get: (_, name) => () => {
      throw new Error(`${String(name)} was asked`);
    },
  });
  const get = serviceOver(untouched);
  for (const id of ['a%00b', 'a%20b', `a${'b'.repeat(200)}`, '%E2%80%A8', '%0d%0aset-cookie:x']) {
    for (const path of ['/tickers/{id}', '/coins/{id}/markets', '/people/{id}', '/contracts/eth-ethereum/{id}']) {
      const answer = await get(path.replace('{id}', id));
      expect([path, id, answer.status]).toEqual([path, id, 404]);
    }
    const candles = await get(`/coins/${id}/ohlcv/latest`);
    expect([candles.status, await candles.text()]).toEqual([200, '[]']);
  }
});

it('no browser treats an answer as a page: REST, tools and documents, good and bad', async () => {
  const service = createService({ data: market, access: openAccess, clock, onError: () => undefined });
  for (const path of [
    '/v1/tickers/btc-bitcoin',
    '/v1/coins/nono-nowhere',
    '/nowhere',
    '/rpc',
    '/docs',
    '/openapi.json',
  ]) {
    const { headers } = await service(new Request(`http://service${path}`));
    expect(headers.get('x-content-type-options'), path).toBe('nosniff');
  }
  const { headers } = await service(new Request('http://service/v1/tickers/btc-bitcoin'));
  expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'");
});
