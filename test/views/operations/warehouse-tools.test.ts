import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { intervalLimitText } from '../../../src/contract/answer/errors.ts';
import { HOSTED_TOOLS } from '../../../src/contract/interface/hosted-tools.ts';
import { toolListSchema } from '../../../src/contract/interface/json-rpc.ts';
import { TOOL_NAMES } from '../../../src/contract/interface/tools.ts';
import { WAREHOUSE_TOOLS } from '../../../src/contract/interface/warehouse-tools.ts';
import { readRecord } from '../../../src/contract/record/records.ts';
import { DAY } from '../../../src/core/interval.ts';
import { createWarehouseTools } from '../../../src/views/operations/warehouse-tools.ts';
import { createStatementRunner, type StatementRunner } from '../../../src/views/sql/statement.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { countingAccess, rpcService, sender } from '../../support/rpc-service.ts';
import { day as answeredDay, newDailySeries, storeAnswer } from '../../support/stored-answers.ts';
import { seedSeries } from '../../support/warehouse.ts';

const FROM = Date.UTC(2024, 0, 1);
const day = (n: number) => FROM + (n - 1) * DAY;
let database: TestDatabase;
let runner: StatementRunner;
let post: ReturnType<typeof sender>;
let asFree: ReturnType<typeof sender>;
beforeAll(async () => {
  database = await createTestDatabase();
  const wanted = [{ from: day(1), to: day(11) }];
  const candles = [1, 2, 3, 7, 8].map(day);
  await seedSeries(database.sql, {
    coinId: 'btc-bitcoin',
    interval: '24h',
    wanted,
    covered: [
      { from: day(1), to: day(4) },
      { from: day(7), to: day(9) },
    ],
    candles,
  });
  await seedSeries(database.sql, { coinId: 'eth-ethereum', interval: '24h', wanted, covered: wanted, candles: [] });
  runner = createStatementRunner({ url: database.url });
  const warehouse = createWarehouseTools({ sql: database.sql, clock: systemClock, runSql: runner.run });
  post = sender(rpcService({ warehouse }));
  const { access } = countingAccess({
    admit: () => ({ kind: 'admitted', plan: 'free' }),
    refuseHistory: (_plan, interval) => (interval === '24h' ? null : intervalLimitText(interval)),
  });
  asFree = sender(rpcService({ warehouse, access }));
});
afterAll(async () => {
  await runner?.close();
  await database?.drop();
});

const call = (name: string, given: unknown) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: given },
});
const outputOf = async (name: keyof typeof WAREHOUSE_TOOLS, given: unknown = {}) => {
  const { json } = await post(call(name, given));
  expect(json.error).toBeUndefined();
  const output = JSON.parse(json.result.content[0].text);
  expect(readRecord(WAREHOUSE_TOOLS[name].output, output)).toMatchObject({ ok: true });
  return output;
};

describe('the tools of a warehouse', () => {
  it('are listed beside the others, and SQL only where it is allowed', async () => {
    const namesOf = async (via: typeof post) => {
      const { json } = await via({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
      return toolListSchema.parse(json.result).tools.map((tool) => tool.name);
    };
    expect(await namesOf(post)).toEqual([
      ...TOOL_NAMES,
      ...Object.keys(HOSTED_TOOLS),
      'getOHLCV',
      'getCoverage',
      'getGaps',
      'explainCandle',
      'runSql',
    ]);
    const without = sender(rpcService({ warehouse: createWarehouseTools({ sql: database.sql, clock: systemClock }) }));
    expect(await namesOf(without)).toEqual([
      ...TOOL_NAMES,
      ...Object.keys(HOSTED_TOOLS),
      'getOHLCV',
      'getCoverage',
      'getGaps',
      'explainCandle',
    ]);
    const { json } = await without(call('runSql', { statement: 'select 1' }));
    expect(json.error).toMatchObject({ code: -32602, message: expect.stringMatching(/name must be one of the tools/) });
  });

  it('say what is covered', async () => {
    expect(await outputOf('getCoverage', { coinId: 'btc-bitcoin', interval: '24h', quote: 'usd' })).toEqual([
      {
        coin_id: 'btc-bitcoin',
        symbol: 'BTC',
        quote: 'usd',
        interval: '24h',
        wanted_from: '2024-01-01T00:00:00Z',
        wanted_to: '2024-01-11T00:00:00Z',
        slots_wanted: 10,
        slots_covered: 5,
        slots_missing: 5,
        slots_unsettled: 0,
        percent_complete: 50,
        covered: [
          { from: '2024-01-01T00:00:00Z', to: '2024-01-04T00:00:00Z' },
          { from: '2024-01-07T00:00:00Z', to: '2024-01-09T00:00:00Z' },
        ],
      },
    ]);
    expect(await outputOf('getCoverage')).toHaveLength(2);
    expect(await outputOf('getCoverage', { limit: 1 })).toHaveLength(1);
    expect(await outputOf('getCoverage', { interval: '5m' })).toEqual([]);
  });

  it('say what is missing, and why', async () => {
    const gap = { coin_id: 'btc-bitcoin', symbol: 'BTC', quote: 'usd', interval: '24h', reason: 'not asked yet' };
    expect(await outputOf('getGaps')).toEqual([
      {
        ...gap,
        gap_from: '2024-01-04T00:00:00Z',
        gap_to: '2024-01-07T00:00:00Z',
        slots: 3,
        detail: null,
        next_ask_at: null,
      },
      {
        ...gap,
        gap_from: '2024-01-09T00:00:00Z',
        gap_to: '2024-01-11T00:00:00Z',
        slots: 2,
        detail: null,
        next_ask_at: null,
      },
    ]);
    expect(await outputOf('getGaps', { limit: 1 })).toHaveLength(1);
    expect(await outputOf('getGaps', { coinId: 'eth-ethereum' })).toEqual([]);
  });

  it('return the candles of REST, with the same history limits', async () => {
    const given = { coinId: 'btc-bitcoin', start: '2024-05-01', end: '2024-05-03' };
    const candles = await outputOf('getOHLCV', given);
    expect(candles.map((candle: { time_open: string }) => candle.time_open.slice(0, 10))).toEqual([
      '2024-05-01',
      '2024-05-02',
      '2024-05-03',
    ]);
    expect(await outputOf('getOHLCV', { ...given, limit: 2 })).toHaveLength(2);
    expect((await asFree(call('getOHLCV', { ...given, interval: '1h' }))).json.error).toMatchObject({
      code: -32000,
      message: expect.stringMatching(
        /^402: Getting historical OHLCV data with interval 1h is not allowed in this plan/,
      ),
    });
    for (const [wrong, message] of [
      [{ ...given, end: 'soon' }, /^400: invalid parameters: end must be a date/],
      [{ ...given, limit: 367 }, /^400: invalid parameters: limit must be a whole number/],
      [{ coinId: 'btc-bitcoin' }, /^400: invalid parameters: start is required/],
      [{ ...given, coinId: 'no-nowhere' }, /^404: id not found/],
    ] as const) {
      expect((await post(call('getOHLCV', wrong))).json.error.message).toMatch(message);
    }
  });

  it('tell the story of a candle as market.story does, without requests, accounts and who wanted it', async () => {
    const { sql } = database;
    const id = await newDailySeries(sql, 'sol-solana');
    try {
      await sql`update market.series set created_at = ${answeredDay(15)} where id = ${id}`;
      await storeAnswer(sql, id, [0, 10], 20);
      await storeAnswer(sql, id, [0, 10], 30, { times: 2 });
      const given = { coinId: 'sol-solana', interval: '24h', time: '2024-01-06T15:30:00+02:00' };
      const story = await outputOf('explainCandle', given);
      expect(story).toMatchObject({
        ...{ coin_id: 'sol-solana', quote: 'usd', interval: '24h' },
        ...{ time_open: '2024-01-06T00:00:00Z', time_close: '2024-01-06T23:59:59Z' },
      });
      const told =
        await sql`select event, detail from market.story('sol-solana', '24h', ${answeredDay(5)}::timestamptz)`;
      const next = { event: 'next', detail: 'Chandler does not request it automatically: it has its final answer.' };
      expect(story.events.map(({ event, detail }: typeof next) => ({ event, detail }))).toEqual([...told, next]);
      expect(told.map(({ event }) => event)).toEqual(['wanted', 'final', 'revised', 'now']);
      expect(JSON.stringify(story)).not.toContain('anonymous@test');
      for (const time of ['2024-01-06', `${answeredDay(5) / 1000}`])
        expect((await outputOf('explainCandle', { ...given, time })).events).toHaveLength(5);
      const before = await outputOf('explainCandle', { ...given, time: '0001-01-01' });
      expect(before.events.at(-1).detail).toBe('Chandler does not request it: no backfill and no rule wants it.');
      const missing = await outputOf('explainCandle', { ...given, time: '2024-02-01' });
      expect(missing.events.at(-1)).toMatchObject({
        event: 'next',
        detail: 'It is missing: not asked yet. The next backfill or refresh requests it.',
      });
    } finally {
      await sql`delete from market.series where id = ${id}`;
    }
  });

  it('tell no story of a candle that the plan may not read, that has no series, or that has not opened', async () => {
    const given = { coinId: 'btc-bitcoin', interval: '1h', time: '2024-01-02T03:04Z' };
    const errorOf = async (via: typeof post, wrong: object) =>
      (await via(call('explainCandle', { ...given, ...wrong }))).json.error;
    expect(await errorOf(asFree, {})).toMatchObject({
      code: -32000,
      message: expect.stringMatching(
        /^402: Getting historical OHLCV data with interval 1h is not allowed in this plan/,
      ),
      data: { status: 402 },
    });
    expect(await errorOf(asFree, { interval: '24h' })).toBeUndefined();
    for (const wrong of [{}, { coinId: 'no-nowhere' }, { interval: '24h', quote: 'btc' }]) {
      expect(await errorOf(post, wrong)).toEqual({
        code: -32000,
        message: '404: there is no such series; getCoverage lists the series of a coin',
        data: { status: 404 },
      });
    }
    expect(await errorOf(post, { time: '2999-01-01' })).toEqual({
      code: -32602,
      message: '400: invalid parameters: time must not lie in the future, got "2999-01-01"',
      data: { status: 400, argument: 'time' },
    });
  });

  it('run a statement for callers that may read everything, and say what is wrong with it', async () => {
    const statement = 'select coin_id, count(*) as n from candles group by 1';
    expect(await outputOf('runSql', { statement })).toEqual({
      columns: ['coin_id', 'n'],
      rows: [['btc-bitcoin', 5]],
      truncated: false,
    });
    expect(await outputOf('runSql', { statement: 'select n from generate_series(1, 5) n', limit: 2 })).toMatchObject({
      rows: [[1], [2]],
      truncated: true,
    });
    expect((await post(call('runSql', { statement: 'drop table market.candle' }))).json.error).toEqual({
      code: -32000,
      message: '400: syntax error at or near "drop"',
      data: { status: 400 },
    });
    expect((await asFree(call('runSql', { statement }))).json.error.message).toBe(
      '402: Running SQL is not allowed in this plan',
    );
    expect((await post(call('runSql', {}))).json.error).toMatchObject({
      code: -32602,
      data: { argument: 'statement' },
    });
  });

  it.each([
    ['getCoverage', { interval: '1d' }, 'interval'],
    ['getGaps', { quote: 'eur' }, 'quote'],
    ['getGaps', { coinId: 7 }, 'coinId'],
    ['explainCandle', { interval: '24h', time: '2024-01-01' }, 'coinId'],
    ['explainCandle', { coinId: 'btc-bitcoin', time: '2024-01-01' }, 'interval'],
    ['explainCandle', { coinId: 'btc-bitcoin', interval: '24h' }, 'time'],
    ['explainCandle', { coinId: 'btc-bitcoin', interval: '24h', time: 1_704_067_200 }, 'time'],
    ['explainCandle', { coinId: 'btc-bitcoin', interval: '24h', time: '2024-02-30' }, 'time'],
    ['explainCandle', { coinId: 'btc-bitcoin', interval: '1d', time: '2024-01-01' }, 'interval'],
    ['explainCandle', { coinId: 'btc-bitcoin', interval: '24h', time: '2024-01-01', quote: 'eur' }, 'quote'],
    ['runSql', { statement: 'x'.repeat(20_001) }, 'statement'],
    ['getOHLCV', { coinId: 'btc-bitcoin', start: '-30d' }, 'start'],
    ['getOHLCV', { coinId: 'btc-bitcoin', start: '2024-05-01', end: '2024-04-01' }, 'end'],
    ['getOHLCV', { coinId: 'btc-bitcoin', start: '2024-05-01', limit: 367 }, 'limit'],
    ['getOHLCV', { coinId: 'btc-bitcoin', start: '2024-05-01', interval: '1d' }, 'interval'],
    ['getOHLCV', { coinId: 'btc-bitcoin', start: '2024-05-01', quote: 'eur' }, 'quote'],
  ])('reject %s of %.40j and name the argument', async (name, given, argument) => {
    const { json } = await post(call(name, given));
    expect(json.error).toMatchObject({ code: -32602, data: { status: 400, argument } });
  });

  it.each(["x'; drop table market.candle; --", 'BTC', 'a\0b', '\ud800'])(
    'find no candle, series, gap or story of a coin called %j',
    async (coinId) => {
      const asked = { coinId, start: '2024-01-01' };
      expect((await post(call('getOHLCV', asked))).json.error).toMatchObject({ message: '404: id not found' });
      for (const name of ['getCoverage', 'getGaps']) {
        const { json } = await post(call(name, { coinId }));
        expect(JSON.parse(json.result.content[0].text)).toEqual([]);
      }
      const story = await post(call('explainCandle', { coinId, interval: '24h', time: '2024-01-01' }));
      expect(story.json.error.message).toMatch(/^404: there is no such series/);
    },
  );
});
