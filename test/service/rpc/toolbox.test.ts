/** The registry of tools without JSON-RPC and MCP: what it lists, and how a call ends. */
import { beforeEach, describe, expect, it } from 'vitest';
import { notFound } from '../../../src/contract/answer/not-found.ts';
import { completeAsOf, NO_DATA, withProvenance } from '../../../src/contract/answer/provenance.ts';
import { HOSTED_TOOLS } from '../../../src/contract/interface/hosted-tools.ts';
import { TOOL_NAMES } from '../../../src/contract/interface/tools.ts';
import { StatementError, type WarehouseTools } from '../../../src/contract/interface/warehouse-tools.ts';
import type { Admission, Caller } from '../../../src/contract/plan/access.ts';
import { createToolbox, type ToolboxDeps } from '../../../src/service/rpc/toolbox.ts';
import { createMadeUpMarket } from '../../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../../src/simulator/made-up/made-up-world.ts';
import { openAccess } from '../conformance.ts';

const NOON = Date.UTC(2024, 5, 1, 12);
const clock = { now: () => NOON, sleep: async () => undefined };
const data = createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 5 }), clock });
const caller: Caller = { key: null, scheme: null, address: '192.0.2.1' };
const warehouse: WarehouseTools = { coverage: async () => [], gaps: async () => [], explain: async () => 'no series' };
const errors: [unknown, string][] = [];
let admitted = 0;
let admission: Admission;
beforeEach(() => {
  errors.length = 0;
  admitted = 0;
  admission = { kind: 'admitted', plan: 'enterprise' };
});

const toolbox = (deps: Partial<ToolboxDeps> = {}) => {
  const onError = (error: unknown, where: string) => void errors.push([error, where]);
  return createToolbox({ data, access: openAccess, clock, onError, ...deps });
};
const call = (name: string | null, given: unknown = {}, deps: Partial<ToolboxDeps> = {}) =>
  toolbox(deps).call(caller, name, given, async () => {
    admitted++;
    return admission;
  });

describe('the list of tools', () => {
  const namesOf = (deps: Partial<ToolboxDeps>) => toolbox(deps).tools.map(({ name }) => name);

  it('has the 19 of the API document, the other twelve of the hosted server, those of a warehouse if there is one, and SQL only where it is allowed', () => {
    const more = ['getOHLCV', 'getCoverage', 'getGaps', 'explainCandle'];
    const ours = [...TOOL_NAMES, ...Object.keys(HOSTED_TOOLS)];
    expect(namesOf({})).toEqual(ours);
    expect([TOOL_NAMES.length, ours.length]).toEqual([19, 31]);
    expect(namesOf({ warehouse })).toEqual([...ours, ...more]);
    const runSql = async () => ({ columns: [], rows: [], truncated: false });
    expect(namesOf({ warehouse: { ...warehouse, runSql } })).toEqual([...ours, ...more, 'runSql']);
  });

  it('describes every argument as JSON Schema, and says which are required', () => {
    const tools = new Map(toolbox().tools.map((tool) => [tool.name, tool]));
    expect(tools.get('getCoinById')!.inputSchema).toMatchObject({
      properties: { coinId: { type: 'string' } },
      required: ['coinId'],
    });
    expect(tools.get('getCoins')!.inputSchema.required).toEqual([]);
    for (const { inputSchema, outputSchema, annotations } of tools.values()) {
      expect(inputSchema.type).toBe('object');
      expect([inputSchema, outputSchema].some((schema) => '$schema' in schema)).toBe(false);
      expect(annotations.readOnlyHint).toBe(true);
    }
  });
});

describe('a call', () => {
  it('returns the data, and their provenance if the source has one', async () => {
    expect(await call('getCoins', { limit: 2 })).toMatchObject({
      kind: 'answered',
      output: (await data.coins()).slice(0, 2),
      provenance: null,
    });
    const coins = async () => withProvenance([...(await data.coins())], completeAsOf(NOON));
    expect(await call('getCoins', {}, { data: { ...data, coins } })).toMatchObject({
      provenance: { 'chandler/coverage': 'full', 'chandler/as-of': '2024-06-01T12:00:00Z' },
    });
    expect(admitted).toBe(2);
  });

  it('costs one request whatever its outcome, and reads no data when it is refused', async () => {
    const coin = async () => {
      throw new Error('the data were read');
    };
    const refused = { status: 429, message: 'too fast', retryAfterSeconds: 3 } as const;
    admission = { kind: 'rejected', ...refused };
    expect(await call('getCoinById', { coinId: 'btc-bitcoin' }, { data: { ...data, coin } })).toEqual({
      kind: 'failed',
      code: -32000,
      message: '429: too fast',
      data: { status: 429, retryAfterSeconds: 3 },
    });
    expect([admitted, errors]).toEqual([1, []]);
  });

  it.each([
    ['getCoin', 'did you mean'],
    ['getOHLCV', 'name must be one of the tools of tools/list'],
    [null, 'name must be one of the tools of tools/list'],
    ['__proto__', 'name must be one of the tools of tools/list'],
  ])('of %j names no tool', async (name, text) => {
    const outcome = await call(name);
    expect(outcome).toMatchObject({ kind: 'unknown tool', message: expect.stringContaining(text) });
    expect(admitted).toBe(1);
  });

  it('with an invalid argument gets an error with the argument, the rule and the value', async () => {
    expect(await call('getCoinById', { coinId: 7 })).toMatchObject({
      kind: 'failed',
      code: -32602,
      data: { status: 400, argument: 'coinId' },
      message: expect.stringMatching(/^400: invalid parameters: coinId must be the id of a coin.*, got number 7$/),
    });
    expect(await call('getOHLCV', { coinId: 'btc-bitcoin', start: 'soon' }, { warehouse })).toMatchObject({
      code: -32602,
      data: { status: 400, argument: 'start' },
    });
    expect(await call('getCoins', ['a list'])).toMatchObject({ code: -32602, data: { status: 400 } });
  });

  it('of an unknown id fails with 404, and with the provenance of that answer', async () => {
    expect(await call('getCoinById', { coinId: 'no-such' })).toMatchObject({ code: -32000, data: { status: 404 } });
    const coin = async () => notFound(NO_DATA);
    const source = { ...data, coin } as unknown as ToolboxDeps['data'];
    expect(await call('getCoinById', { coinId: 'no-such' }, { data: source })).toMatchObject({
      data: { status: 404, 'chandler/coverage': 'none' },
    });
  });

  it('never rejects: an unexpected error is reported and gives 500, an unavailable source 503 with a waiting time', async () => {
    const error = new Error('unexpected');
    const failing = { ...data, global: () => Promise.reject(error) };
    expect(await call('getGlobal', {}, { data: failing })).toMatchObject({ code: -32603, data: { status: 500 } });
    expect(errors).toEqual([[error, 'tools/call getGlobal']]);
    expect(await call('getGlobal', {}, { data: failing, isUnavailable: () => true })).toMatchObject({
      code: -32000,
      data: { status: 503, retryAfterSeconds: 5 },
    });
  });

  it('of SQL needs a plan without limits on reading, and says what is wrong with a statement', async () => {
    const runSql = async ({ statement }: { statement: string }) => {
      if (statement === 'wrong') throw new StatementError('syntax error');
      return { columns: ['n'], rows: [[1]], truncated: false };
    };
    const deps = { warehouse: { ...warehouse, runSql } };
    expect(await call('runSql', { statement: 'select 1' }, deps)).toMatchObject({
      kind: 'answered',
      output: { rows: [[1]] },
    });
    expect(await call('runSql', { statement: 'wrong' }, deps)).toMatchObject({
      message: '400: syntax error',
      data: { status: 400 },
    });
    admission = { kind: 'admitted', plan: 'free' };
    expect(await call('runSql', { statement: 'select 1' }, deps)).toMatchObject({ data: { status: 402 } });
  });
});
