import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { rpcErrorSchema, rpcIdSchema, rpcRequestSchema } from '../../../src/contract/interface/json-rpc.ts';
import { readToolCall, TOOL_NAMES, TOOLS, type ToolName } from '../../../src/contract/interface/tools.ts';
import { rpcResponseSchema } from '../../support/rpc-response.ts';

/** The table in section 4.2 of the API document: arguments, the required ones with an exclamation mark. */
const DOCUMENTED: Record<ToolName, string> = {
  getGlobal: '',
  getCoins: 'limit',
  getCoinById: 'coinId!',
  getCoinEvents: 'coinId! limit',
  getCoinExchanges: 'coinId! limit',
  getCoinMarkets: 'coinId! quotes limit',
  getTickers: 'quotes limit',
  getTickersById: 'coinId! quotes',
  getPeopleById: 'personId!',
  getTags: 'additionalFields limit',
  getTagById: 'tagId! additionalFields',
  getExchanges: 'quotes limit',
  getExchangeByID: 'exchangeId! quotes',
  getExchangeMarkets: 'exchangeId! quotes limit',
  getPlatforms: 'limit',
  getContracts: 'platformId! limit',
  getTickerByContract: 'platformId! contractAddress!',
  priceConverter: 'baseCurrencyId! quoteCurrencyId! amount',
  search: 'q! categories modifier limit',
};
const read = (name: string, given: unknown) => readToolCall(TOOLS, name, given);

describe('the tools', () => {
  it('are the 19 of the API document, with its arguments', () => {
    expect(TOOL_NAMES).toEqual(Object.keys(DOCUMENTED));
    for (const name of TOOL_NAMES) {
      const schema = z.toJSONSchema(TOOLS[name].arguments, { io: 'input' });
      const required = schema.required ?? [];
      const shown = Object.keys(schema.properties ?? {}).map((key) => (required.includes(key) ? `${key}!` : key));
      expect(shown.join(' '), name).toBe(DOCUMENTED[name]);
    }
  });

  it('describe each argument', () => {
    for (const name of TOOL_NAMES) {
      for (const argument of Object.values(z.toJSONSchema(TOOLS[name].arguments, { io: 'input' }).properties ?? {})) {
        expect(argument).toHaveProperty('description');
        expect(argument).toHaveProperty('type');
      }
    }
  });

  it('use the default of an argument that is missing or null', () => {
    const byDefault = { quotes: ['USD'], limit: 50 };
    expect(read('getTickers', undefined)).toEqual({
      kind: 'call',
      call: { name: 'getTickers', arguments: byDefault },
    });
    expect(read('getTickers', { quotes: null, limit: null })).toMatchObject({ call: { arguments: byDefault } });
    expect(read('search', { q: 'bit' })).toMatchObject({
      call: {
        arguments: {
          q: 'bit',
          categories: ['currencies', 'exchanges', 'icos', 'people', 'tags'],
          modifier: false,
          limit: 50,
        },
      },
    });
    expect(read('priceConverter', { baseCurrencyId: 'btc-bitcoin', quoteCurrencyId: 'usd-us-dollars' })).toMatchObject({
      call: { arguments: { amount: 0 } },
    });
  });

  it.each([
    [50.9, 50],
    [0, 1],
    [-7, 1],
    [0.3, 1],
    [251, 250],
    [1e300, 250],
  ])('take a limit of %d as %d', (given, understood) => {
    expect(read('getCoins', { limit: given })).toMatchObject({ call: { arguments: { limit: understood } } });
  });

  it('split lists at commas, and keep each element once', () => {
    expect(read('getTickers', { quotes: 'usd, BTC,usd' })).toMatchObject({
      call: { arguments: { quotes: ['USD', 'BTC'] } },
    });
    expect(read('getTags', { additionalFields: 'icos,coins' })).toMatchObject({
      call: { arguments: { additionalFields: ['icos', 'coins'] } },
    });
    expect(read('search', { q: 'x', categories: 'tags,people', modifier: 'symbol' })).toMatchObject({
      call: { arguments: { categories: ['tags', 'people'], modifier: true } },
    });
  });

  it('ignore arguments that they do not have', () => {
    expect(read('getCoinById', { coinId: 'btc-bitcoin', rationale: 'because it was asked for' })).toEqual({
      kind: 'call',
      call: { name: 'getCoinById', arguments: { coinId: 'btc-bitcoin' } },
    });
  });

  it.each([
    ['getCoinById', {}, 'coinId', 'invalid parameters: coinId is required'],
    ['getCoinById', { coinId: null }, 'coinId', 'invalid parameters: coinId is required'],
    [
      'getCoinById',
      { coinId: 7 },
      'coinId',
      'invalid parameters: coinId must be the id of a coin, such as "btc-bitcoin", got number 7',
    ],
    ['search', { q: ' \t' }, 'q', 'invalid parameters: q must be a text to look for, got string " \\t"'],
    ['getCoins', { limit: '5' }, 'limit', 'invalid parameters: limit must be a number, got string "5"'],
    ['getTickers', { quotes: ['USD'] }, 'quotes', 'invalid parameters: quotes must be a string, got array of 1'],
    ['getTickers', { quotes: 'USD,BTC,ETH,EUR' }, 'quotes', 'Max number of quotes is 3'],
    [
      'getTags',
      { additionalFields: 'coins,logo' },
      'additionalFields',
      'invalid parameters: additionalFields must be one or more of coins, icos, got string "logo"',
    ],
    [
      'search',
      { q: 'x', modifier: 'name' },
      'modifier',
      'invalid parameters: modifier must be symbol or symbol_search, got string "name"',
    ],
    [
      'getPeopleById',
      { personId: ' ' },
      'personId',
      'invalid parameters: personId must be the id of a person, such as "vitalik-buterin", got string " "',
    ],
    ['search', { q: 'a\u0000b' }, 'q', 'invalid parameters: q must be a text to look for, got string "a\\u0000b"'],
    [
      'priceConverter',
      { baseCurrencyId: 'btc-bitcoin', quoteCurrencyId: 'usd-us-dollars', amount: -1 },
      'amount',
      'invalid parameters: amount must be a number of at least 0, got number -1',
    ],
    [
      'priceConverter',
      { baseCurrencyId: 'btc-bitcoin', quoteCurrencyId: 'usd-us-dollars', amount: 1e308 },
      'amount',
      'invalid parameters: amount must be at most 1e100, got number 1e+308',
    ],
    ['getGlobal', [], null, 'invalid parameters: arguments must be an object, got array of 0'],
  ])('reject %s of %j and name the argument', (name, given, argument, message) => {
    expect(read(name, given)).toEqual({ kind: 'invalid', argument, message });
  });

  it('never throw, whatever the arguments, and reject unknown tool names', () => {
    fc.assert(
      fc.property(fc.constantFrom(...TOOL_NAMES), fc.object(), (name, given) => {
        const result = read(name, given);
        if (result.kind === 'invalid') expect(result.message).toMatch(/^(invalid parameters: \w+ |Max number)/);
      }),
    );
    for (const name of ['toString', '__proto__', 'constructor', 'getglobal', '']) {
      expect(read(name, {})).toEqual({ kind: 'unknown tool' });
    }
  });
});

describe('JSON-RPC envelopes', () => {
  it.each(['a', '', 0, -1, 1.5, 2 ** 53 - 1, null])('echo the id %j', (id) => {
    expect(rpcIdSchema.parse(id)).toBe(id);
  });
  it.each([2 ** 53, 1e300, Number.POSITIVE_INFINITY, true, {}, []])('reject the id %j', (id) => {
    expect(rpcIdSchema.safeParse(id).success).toBe(false);
  });
  it('distinguish a missing id from a null one', () => {
    expect(rpcRequestSchema.parse({ jsonrpc: '2.0', method: 'ping' })).not.toHaveProperty('id');
    expect(rpcRequestSchema.parse({ jsonrpc: '2.0', id: null, method: 'ping' })).toHaveProperty('id', null);
  });
  it('must contain a result or an error', () => {
    expect(rpcResponseSchema.parse({ jsonrpc: '2.0', id: 1, result: {} })).toHaveProperty('result');
    expect(rpcResponseSchema.parse({ jsonrpc: '2.0', id: 1, error: { code: -1, message: 'no' } })).toHaveProperty(
      'error',
    );
    expect(rpcResponseSchema.safeParse({ jsonrpc: '2.0', id: 1 }).success).toBe(false);
    expect(rpcErrorSchema.safeParse({ code: '1', message: 'no' }).success).toBe(false);
  });
});
