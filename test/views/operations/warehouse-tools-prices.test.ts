/** The tools that name a series also take price series; the tools about candles do not. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { tickerHistoryLimitText } from '../../../src/contract/answer/errors.ts';
import { toolListSchema } from '../../../src/contract/interface/json-rpc.ts';
import { createWarehouseTools } from '../../../src/views/operations/warehouse-tools.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { countingAccess, rpcService, sender } from '../../support/rpc-service.ts';
import { day, newDailySeries, storeAnswer } from '../../support/stored-answers.ts';

const COIN = 'a-coin';
let database: TestDatabase;
let post: ReturnType<typeof sender>;
let asFree: ReturnType<typeof sender>;
beforeAll(async () => {
  database = await createTestDatabase();
  const { sql } = database;
  const prices = await newDailySeries(sql, COIN, 'prices-1d');
  await newDailySeries(sql, COIN);
  await storeAnswer(sql, prices, [0, 10], 20, { interval: 'prices-1d' });
  await storeAnswer(sql, prices, [3, 4], 30, { interval: 'prices-1d', priceTimes: 2 });
  await sql`update market.series set wanted = ${[{ from: day(0), to: day(12) }]}::tstzmultirange, created_at = ${day(15)}`;
  const warehouse = createWarehouseTools({ sql, clock: systemClock });
  post = sender(rpcService({ warehouse }));
  const { access } = countingAccess({
    admit: () => ({ kind: 'admitted', plan: 'free' }),
    refuseTickerHistory: (_plan, resolution) =>
      resolution === 'daily' ? null : tickerHistoryLimitText(resolution, null),
  });
  asFree = sender(rpcService({ warehouse, access }));
});
afterAll(() => database?.drop());

const call = async (via: typeof post, name: string, given: unknown) =>
  (await via({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } })).json;
const outputOf = async (name: string, given: unknown) => {
  const json = await call(post, name, given);
  expect(json.error).toBeUndefined();
  return JSON.parse(json.result.content[0].text);
};

describe('the tools of a warehouse', () => {
  it('say what is covered of a price series, and what is missing', async () => {
    const series = { coin_id: COIN, quote: 'usd', interval: 'prices-1d' };
    const asked = { coinId: COIN, interval: 'prices-1d' };
    expect(await outputOf('getCoverage', asked)).toMatchObject([
      { ...series, slots_wanted: 12, slots_covered: 10, slots_missing: 2 },
    ]);
    expect(await outputOf('getGaps', asked)).toMatchObject([
      {
        ...series,
        gap_from: '2024-01-11T00:00:00Z',
        gap_to: '2024-01-13T00:00:00Z',
        slots: 2,
        reason: 'not asked yet',
      },
    ]);
    expect(await outputOf('getCoverage', { coinId: COIN })).toHaveLength(2);
    expect(await outputOf('getCoverage', { coinId: COIN, interval: 'prices-1h' })).toEqual([]);
  });

  it('tell the story of a price', async () => {
    const story = await outputOf('explainCandle', { coinId: COIN, interval: 'prices-1d', time: '2024-01-04T15:30Z' });
    expect(story).toMatchObject({
      ...{ coin_id: COIN, quote: 'usd', interval: 'prices-1d' },
      ...{ time_open: '2024-01-04T00:00:00Z', time_close: '2024-01-04T23:59:59Z' },
    });
    expect(story.events.map(({ event }: { event: string }) => event)).toEqual([
      'wanted',
      'final',
      'revised',
      'now',
      'next',
    ]);
    const text = story.events.map(({ detail }: { detail: string }) => detail).join('\n');
    expect(text).toMatch(/price/);
    expect(text).not.toMatch(/candle|high|low/);
  });

  it('tell it to callers whose plan may read such prices', async () => {
    const given = { coinId: COIN, time: '2024-01-04' };
    expect((await call(asFree, 'explainCandle', { ...given, interval: 'prices-1d' })).error).toBeUndefined();
    expect((await call(asFree, 'explainCandle', { ...given, interval: 'prices-5m' })).error).toMatchObject({
      message: expect.stringMatching(/^402: Getting minute historical data is not allowed in this plan/),
      data: { status: 402 },
    });
  });

  it.each([
    ['getOHLCV', { start: '2024-01-01', interval: 'prices-1d' }],
    ['getCoinOHLCVHistorical', { start: '2024-01-01', interval: 'prices-1d' }],
    ['getTickersHistoricalById', { start: '2024-01-01', interval: 'prices-1d' }],
    ['getCoverage', { interval: 'prices-24h' }],
    ['getGaps', { interval: '1d' }],
    ['explainCandle', { interval: 'prices', time: '2024-01-01' }],
  ])('reject an interval: %s, %j', async (name, given) => {
    const json = await call(post, name, { coinId: COIN, ...given });
    expect(json.error).toMatchObject({ code: -32602, data: { status: 400, argument: 'interval' } });
  });

  it('say in their descriptions which of them take prices', async () => {
    const { json } = await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const names = toolListSchema
      .parse(json.result)
      .tools.filter((tool) => JSON.stringify(tool.inputSchema).includes('prices-1d'))
      .map((tool) => tool.name);
    expect(names).toEqual(['getCoverage', 'getGaps', 'explainCandle']);
  });
});
