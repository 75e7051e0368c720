import { describe, expect, it } from 'vitest';
import { ohlcvParameters, ohlcvPath } from '../src/contract/interface/paths.ts';
import { readOhlcvRows, writeOhlcvRows } from '../src/contract/record/ohlcv.ts';
import { DAY } from '../src/core/interval.ts';
import { createSimulator, type SimulatorOptions } from '../src/simulate.ts';
import { frozenClock } from './service/conformance.ts';

const now = Date.UTC(2024, 5, 1, 12, 3, 20);
const today = Date.UTC(2024, 5, 1);

function simulator(options: Partial<SimulatorOptions> = {}) {
  const sim = createSimulator({
    market: 'made-up',
    clock: frozenClock(now),
    coins: 12,
    onError: (error) => {
      throw error;
    },
    ...options,
  });
  const get = (path: string, headers: Record<string, string> = {}) =>
    sim.fetch(new Request(`http://simulator${path}`, { headers }));
  return { sim, get };
}

const historical = (from: number, to: number, interval: '24h' | '1h' = '24h') =>
  `/v1${ohlcvPath('btc-bitcoin')}?${new URLSearchParams(ohlcvParameters({ from, to, interval, quote: 'usd', limit: 366 }))}`;

describe('the simulator', () => {
  it('limits a caller without a key to the free plan', async () => {
    const { get } = simulator();
    expect((await get(historical(today, today))).status).toBe(200);
    const refused = await get(historical(today - DAY, today));
    expect([refused.status, await refused.json()]).toEqual([
      402,
      { error: expect.stringContaining('before 2024-05-31 12:03:20') },
    ]);
    expect((await get(historical(today, today, '1h'))).status).toBe(402);
  });

  it('gives a key the plan it was made with', async () => {
    const { get } = simulator({ limits: { keys: { abc: 'ultimate' } } });
    const headers = { Authorization: 'Bearer abc' };
    expect((await get(historical(today - 300 * DAY, today), headers)).status).toBe(200);
    expect(await (await get('/v1/users/me', headers)).json()).toMatchObject({
      plan: 'ultimate',
      usage: { current_month: { requests_made: 1 } },
    });
  });

  it('answers with the data of its market', async () => {
    const { get, sim } = simulator({ unlimited: true });
    const from = today - 365 * DAY;
    const truth = await sim.data.ohlcv({
      coinId: 'btc-bitcoin',
      interval: '24h',
      quote: 'usd',
      from,
      to: today,
      limit: 366,
    });
    expect(truth).toHaveLength(366);
    expect(await (await get(historical(from, today))).text()).toBe(writeOhlcvRows(truth!));
  });

  it('can play the recorded market', async () => {
    const { get } = simulator({ market: 'recorded', unlimited: true });
    const day = Date.UTC(2019, 0, 1);
    expect(await (await get(historical(day, day))).json()).toEqual([
      {
        time_open: '2019-01-01T00:00:00Z',
        time_close: '2019-01-01T23:59:59Z',
        open: expect.any(Number),
        high: expect.any(Number),
        low: expect.any(Number),
        close: expect.any(Number),
        volume: expect.any(Number),
        market_cap: null,
      },
    ]);
  });

  it('serves stale answers with the values of their time', async () => {
    const { get, sim } = simulator({ unlimited: true, faults: { seed: 1, rates: { stale: 1 }, mostInARow: 99 } });
    const answer = await get(historical(today, today));
    const age = Number(answer.headers.get('age'));
    const read = readOhlcvRows(await answer.json());
    const row = read.ok ? read.rows[0] : undefined;
    expect(row).toMatchObject({ ok: true, closeTime: Math.ceil((now - age * 1000) / 60_000) * 60_000 });
    expect(sim.counters().accounts).toMatchObject([{ requests: 1 }]);
  });

  it('counts every request, however it ended, and shows the counts to other processes', async () => {
    const { get, sim } = simulator({ unlimited: true, faults: { seed: 1, rates: { reset: 1 }, mostInARow: 1 } });
    await expect(get(historical(today, today))).rejects.toThrow('fetch failed');
    await get(historical(today, today));
    await get('/v1/users/me');
    await get('/v1/nothing');
    await get('/elsewhere');
    const counters = await (await get('/simulator')).json();
    expect(counters).toMatchObject({
      requests: { total: 4, ohlcv: 2, account: 1, other: 1 },
      accounts: [{ account: 'anonymous@here', requests: 3, admitted: 3 }],
      faults: { reset: 1 },
    });
    expect(counters).toEqual(JSON.parse(JSON.stringify(sim.counters())));
  });
});

describe('the simulator in its strict mode', () => {
  it('reports what is left of the month, and accepts one auth scheme for a key', async () => {
    const { get } = simulator({ limits: { keys: { abc: 'starter' }, scheme: 'bare' } });
    const answer = await get('/v1/coins', { Authorization: 'abc' });
    const told = ['limit', 'remaining', 'reset'].map((name) => Number(answer.headers.get(`ratelimit-${name}`)));
    expect(told).toEqual([400_000, 399_999, Math.ceil((Date.UTC(2024, 6, 1) - now) / 1_000)]);
    const bearer = await get('/v1/coins', { Authorization: 'Bearer abc' });
    expect([bearer.status, bearer.headers.get('ratelimit-limit')]).toEqual([403, null]);
    const { headers } = await simulator({ unlimited: true }).get('/v1/coins');
    expect(headers.get('ratelimit-limit')).toBeNull();
  });

  it('requires a rationale for tool calls, and its list of tools says so', async () => {
    const { sim } = simulator({ unlimited: true, requireRationale: true });
    const post = async (method: string, params: object) => {
      const init = { method: 'POST', headers: { 'Content-Type': 'application/json' } };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
      return (await (await sim.fetch(new Request('http://simulator/json-rpc', { ...init, body }))).json()) as {
        error?: object;
        result?: { tools: { inputSchema: { required: string[] } }[] };
      };
    };
    const call = (given: object) => post('tools/call', { name: 'getGlobal', arguments: given });
    expect(await call({})).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('rationale must be') },
    });
    expect(await call({ rationale: 'too short' })).toMatchObject({ error: { code: -32602 } });
    expect((await call({ rationale: 'to see how large the market is' })).error).toBeUndefined();
    const { result } = await post('tools/list', {});
    expect(result!.tools.every(({ inputSchema }) => inputSchema.required.includes('rationale'))).toBe(true);
  });
});
