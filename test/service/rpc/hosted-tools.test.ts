/** The tools of the vendor's hosted server that the API document lacks: each returns what REST returns. */
import { expect, it } from 'vitest';
import { HOSTED_TOOLS } from '../../../src/contract/interface/hosted-tools.ts';
import type { Caller } from '../../../src/contract/plan/access.ts';
import type { PlanName } from '../../../src/contract/plan/plans.ts';
import { readRecord } from '../../../src/contract/record/records.ts';
import { createToolbox } from '../../../src/service/rpc/toolbox.ts';
import { createService } from '../../../src/service/service.ts';
import { createMadeUpMarket } from '../../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../../src/simulator/made-up/made-up-world.ts';
import { createPlanLimits } from '../../../src/simulator/plan-limits.ts';
import { frozenClock } from '../conformance.ts';

const clock = frozenClock(Date.UTC(2024, 5, 1, 12, 3, 20));
const data = createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 30 }), clock });
const onError = (error: unknown) => {
  throw error;
};
const HOLDER: Caller = { key: 'k', scheme: 'bearer', address: '192.0.2.1' };

function over(plan: PlanName) {
  const access = createPlanLimits({ clock, plan, keys: { k: plan }, overrides: { pacePerSecond: null } });
  const toolbox = createToolbox({ data, access, clock, onError });
  const service = createService({ data, access, clock, onError });
  return {
    call: (name: string, given: object = {}, caller = HOLDER) => toolbox.call(caller, name, given, access.admit),
    get: async (path: string) => {
      const headers = { Authorization: 'Bearer k' };
      return (await service(new Request(`http://x/v1${path}`, { headers }))).json();
    },
  };
}

const { call, get } = over('enterprise');
const [contract] = (await data.contracts('eth-ethereum'))!;
const AT = { platformId: 'eth-ethereum', contractAddress: contract!.address };
const RANGE = { start: '2024-05-01', end: '2024-05-20' };
const BTC = { coinId: 'btc-bitcoin' };

it.each<[keyof typeof HOSTED_TOOLS, object, string]>([
  ['getCoinOHLCVLatest', BTC, '/coins/btc-bitcoin/ohlcv/latest'],
  ['getCoinOHLCVToday', { ...BTC, quote: 'BTC' }, '/coins/btc-bitcoin/ohlcv/today?quote=btc'],
  [
    'getCoinOHLCVHistorical',
    { ...BTC, ...RANGE },
    '/coins/btc-bitcoin/ohlcv/historical?start=2024-05-01&end=2024-05-20&limit=50',
  ],
  [
    'getTickersHistoricalById',
    { ...BTC, ...RANGE, interval: '1d' },
    '/tickers/btc-bitcoin/historical?start=2024-05-01&end=2024-05-20&interval=1d&limit=50',
  ],
  [
    'getHistoricalTickerByContract',
    { ...AT, ...RANGE, interval: '1d' },
    `/tickers/${contract!.id}/historical?start=2024-05-01&end=2024-05-20&interval=1d&limit=50`,
  ],
  ['getChangelogIDs', {}, '/changelog/ids'],
  ['getMappings', { coingecko: 'bitcoin', rationale: 'x' }, '/coins/mappings?coingecko=bitcoin'],
])('%s returns what REST returns', async (name, given, path) => {
  const outcome = await call(name, given);
  expect(outcome).toMatchObject({ kind: 'answered' });
  const { output } = outcome as { output: object };
  expect(output).toEqual(await get(path));
  expect(readRecord(HOSTED_TOOLS[name].output, output)).toMatchObject({ ok: true });
});

it('getCoinOHLCVLatest shows the day that has ended as late as REST does', async () => {
  const access = createPlanLimits({ clock, plan: 'enterprise', overrides: { pacePerSecond: null } });
  const latest = async (latestTurnsAfterMs: number) => {
    const deps = { data, access, clock, onError, latestTurnsAfterMs };
    const outcome = await createToolbox(deps).call({ ...HOLDER, key: null }, 'getCoinOHLCVLatest', BTC, access.admit);
    const path = 'http://x/v1/coins/btc-bitcoin/ohlcv/latest';
    expect(outcome).toMatchObject({ output: await (await createService(deps)(new Request(path))).json() });
    return (outcome as { output: { time_open: string }[] }).output.map((candle) => candle.time_open);
  };
  expect(await latest(0)).toEqual(['2024-05-31T00:00:00Z']);
  expect(await latest(13 * 3_600_000)).toEqual(['2024-05-30T00:00:00Z']);
});

it('keyInfo, status and getCapabilities describe the key, the server and its tools', async () => {
  expect(await call('keyInfo')).toMatchObject({ output: { plan: 'enterprise', usage: {} } });
  expect(await call('keyInfo', {}, { ...HOLDER, key: null })).toMatchObject({ kind: 'failed', data: { status: 403 } });
  expect(await call('status')).toMatchObject({ output: { status: 'ok', time: '2024-06-01T12:03:20Z' } });
  const { output } = (await over('starter').call('getCapabilities')) as { output: { tools: string[] } };
  expect(output).toMatchObject({ plan: 'starter', intervals: ['24h'], history_days: 30 });
  expect(output.tools).toEqual(expect.arrayContaining(['getGlobal', ...Object.keys(HOSTED_TOOLS)]));
});

it('resolveId finds ids by a part of a name', async () => {
  const found = (await call('resolveId', { type: 'coin', query: 'bitcoin' })) as {
    output: { matches: { id: string }[] };
  };
  expect(found.output).toMatchObject({ type: 'coin', query: 'bitcoin' });
  expect(found.output.matches.map(({ id }) => id)).toContain('btc-bitcoin');
  for (const type of ['exchange', 'people', 'tags'])
    expect(await call('resolveId', { type, query: 'a' })).toMatchObject({
      output: { type, matches: expect.any(Array) },
    });
  expect(await call('resolveId', { type: 'icos', query: 'a' })).toMatchObject({
    kind: 'failed',
    message: expect.stringContaining('type must be coin, exchange, people or tags, got string "icos"'),
  });
});

it('the tools refuse what the plan does not include, as REST does, and say what this server cannot answer', async () => {
  const free = over('free');
  const history = { ...BTC, start: '2024-01-01' };
  expect(await free.call('getCoinOHLCVHistorical', history)).toMatchObject({ kind: 'failed', data: { status: 402 } });
  expect(await free.call('getTickersHistoricalById', history)).toMatchObject({ kind: 'failed', data: { status: 402 } });
  expect(await free.call('getChangelogIDs')).toMatchObject({ kind: 'failed', data: { status: 402 } });
  expect(await free.call('getCoinOHLCVLatest', BTC)).toMatchObject({ kind: 'answered' });
  expect(await over('pro').call('getMappings', { coinpaprika: 'btc-bitcoin' })).toMatchObject({
    kind: 'failed',
    data: { status: 402 },
  });
  expect(await call('getMappings', BTC)).toMatchObject({ message: expect.stringContaining('exactly one of') });
  expect(await call('getMappings', { isin: 'a b' })).toMatchObject({ kind: 'failed', data: { status: 404 } });
  expect(await call('submitFeedback', { goal: 'x' })).toMatchObject({
    message: expect.stringContaining('tell its operator'),
  });
  expect(await call('getCoinOHLCVHistorical', BTC)).toMatchObject({
    message: expect.stringContaining('start is required'),
  });
  expect(await call('getChangelogIDs', { page: 0 })).toMatchObject({
    message: expect.stringContaining('page must be at least 1, got number 0'),
  });
});
