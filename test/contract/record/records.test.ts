import { describe, expect, it } from 'vitest';
import {
  accountInfoSchema,
  coinsSchema,
  exchangesSchema,
  globalSchema,
  readRecord,
  tickersSchema,
} from '../../../src/contract/record/records.ts';
import { BTC } from '../../support/sample-records.ts';

const quote = { price: 107077.69661924685, volume_24h: 23175936198.924427, market_cap: 2129051326372 };
const ticker = { id: 'btc-bitcoin', name: 'Bitcoin', symbol: 'BTC', rank: 1, quotes: { USD: quote } };

describe('the reader of records', () => {
  it('accepts unknown fields', () => {
    expect(readRecord(coinsSchema, [{ ...BTC, rev: 7 }])).toEqual({ ok: true, value: [BTC] });
  });

  it.each([null, '', undefined])('reads %j in place of a number as a missing one', (value) => {
    const read = readRecord(tickersSchema, [
      { ...ticker, beta_value: value, quotes: { USD: { ...quote, ath_price: value } } },
    ]);
    expect(read).toMatchObject({
      ok: true,
      value: [{ beta_value: null, quotes: { USD: { ath_price: null, price: quote.price } } }],
    });
  });

  it('keeps only the quotes that are present', () => {
    const read = readRecord(tickersSchema, [{ ...ticker, quotes: { BTC: quote, ETH: quote } }]);
    expect(read.ok && Object.keys(read.value[0]!.quotes)).toEqual(['BTC', 'ETH']);
  });

  it.each([
    [coinsSchema, [BTC, BTC, BTC, { ...BTC, rank: '12' }], '[3].rank: expected number, got string "12"'],
    [coinsSchema, [{ ...BTC, id: 4 }], '[0].id: expected string, got number 4'],
    [coinsSchema, [{ ...BTC, is_active: undefined }], '[0].is_active: expected boolean, got nothing'],
    [coinsSchema, { error: 'no' }, 'body: expected array, got object'],
    [coinsSchema, ['btc-bitcoin'], '[0]: expected an object, got string "btc-bitcoin"'],
    [
      tickersSchema,
      [{ ...ticker, quotes: { USD: { price: true } } }],
      '[0].quotes.USD.price: expected number, got boolean true',
    ],
    [globalSchema, [], 'body: expected an object, got array of 0'],
    [accountInfoSchema, { plan: 'pro', usage: {} }, 'usage.current_month: expected object, got nothing'],
    [
      exchangesSchema,
      [{ id: 'x', name: 'X', fiats: [{ name: 1 }] }],
      '[0].fiats[0].name: expected string, got number 1',
    ],
  ])('names the field that has the wrong type (%#)', (schema, body, problem) => {
    expect(readRecord(schema, body)).toEqual({ ok: false, problem });
  });

  it('reads an account without limits', () => {
    const body = {
      plan: 'enterprise',
      plan_status: 'active',
      usage: { message: 'unlimited plan', current_month: { requests_made: -1, requests_left: -1 } },
    };
    expect(readRecord(accountInfoSchema, body)).toMatchObject({
      ok: true,
      value: { usage: { current_month: { requests_left: -1 } } },
    });
  });

  it('reads a global overview whose last_updated is in unix seconds', () => {
    const body = { market_cap_usd: 2559344984924, volume_24h_percent_to_ath: 9999.99, last_updated: 1634927806 };
    expect(readRecord(globalSchema, body)).toMatchObject({
      ok: true,
      value: { last_updated: 1634927806, volume_24h_usd: null },
    });
  });
});
