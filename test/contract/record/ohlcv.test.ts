import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readOhlcvRows, writeOhlcvRows } from '../../../src/contract/record/ohlcv.ts';

const row = {
  time_open: '2022-01-19T00:00:00Z',
  time_close: '2022-01-19T23:59:59Z',
  open: 3167.8487468375165,
  high: 3175.3029356248053,
  low: 3059.8966046627097,
  close: 3097.194511711747,
  volume: 15131525568,
  market_cap: 369279876785,
};
const openTime = Date.UTC(2022, 0, 19);

describe('the reader of OHLCV rows', () => {
  it('reads a row as the upstream sends it', () => {
    expect(readOhlcvRows([row])).toEqual({
      ok: true,
      rows: [
        {
          ok: true,
          openTime,
          closeTime: openTime + 86_399_000,
          open: row.open,
          high: row.high,
          low: row.low,
          close: row.close,
          volume: row.volume,
          marketCap: row.market_cap,
          coinId: null,
          row,
        },
      ],
    });
  });

  it.each([{ volume: null }, { volume: '' }, { volume: undefined }])('reads %j as a missing number', (change) => {
    expect(readOhlcvRows([{ ...row, ...change }])).toMatchObject({
      rows: [{ ok: true, volume: null, close: row.close }],
    });
  });

  it('accepts exponents, unknown fields, and rows that name their coin', () => {
    const body = JSON.parse(`[{"time_open":"2022-01-19T00:00:00Z","open":9.51e-06,"rev":1,"coin_id":"pepe-pepe"}]`);
    expect(readOhlcvRows(body)).toMatchObject({
      rows: [{ ok: true, open: 0.00000951, closeTime: null, coinId: 'pepe-pepe' }],
    });
  });

  it.each([
    [{ ...row, open: '12' }, '[1].open: expected number, got string "12"'],
    [{ ...row, market_cap: {} }, '[1].market_cap: expected number, got object'],
    [{ ...row, time_open: undefined }, '[1].time_open: expected RFC 3339 time, got nothing'],
    [
      { ...row, time_open: '2022-02-30T00:00:00Z' },
      '[1].time_open: expected RFC 3339 time, got string "2022-02-30T00:00:00Z"',
    ],
    [{ ...row, time_open: 1642550400 }, '[1].time_open: expected RFC 3339 time, got number 1642550400'],
    [{ ...row, time_close: 'soon' }, '[1].time_close: expected RFC 3339 time, got string "soon"'],
    [{ ...row, id: 7 }, '[1].id: expected string, got number 7'],
    [null, '[1]: expected object, got null'],
    [[row], '[1]: expected object, got array of 1'],
  ])('keeps the valid rows and says what is wrong with an invalid one (%#)', (bad, problem) => {
    expect(readOhlcvRows([row, bad, row])).toMatchObject({
      ok: true,
      rows: [{ ok: true }, { ok: false, problem, row: bad }, { ok: true }],
    });
  });

  it.each([[{ error: 'id not found' }], ['<html>'], [null]])('rejects %j as an answer', (body) => {
    expect(readOhlcvRows(body)).toMatchObject({
      ok: false,
      problem: expect.stringContaining('expected array of candles'),
    });
  });
});

describe('the writer of OHLCV rows', () => {
  const number = fc.option(fc.oneof(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }), fc.maxSafeNat()));
  const candle = fc.record({
    openTime: fc.integer({ min: 0, max: 4e9 }).map((s) => s * 1000),
    closeTime: fc.integer({ min: 0, max: 4e9 }).map((s) => s * 1000),
    open: number,
    high: number,
    low: number,
    close: number,
    volume: number,
    marketCap: number,
  });

  it('writes what JSON.stringify would, and the reader returns every number bit for bit', () => {
    fc.assert(
      fc.property(fc.array(candle, { maxLength: 5 }), (candles) => {
        const text = writeOhlcvRows(candles);
        expect(JSON.stringify(JSON.parse(text))).toBe(text);
        const read = readOhlcvRows(JSON.parse(text));
        expect(read.ok && read.rows.map(({ row: _, ok: __, ...rest }) => rest)).toEqual(
          candles.map((c) => ({ ...c, coinId: null })),
        );
      }),
    );
  });

  it('keeps the upstream order of keys', () => {
    const candle = {
      openTime,
      closeTime: openTime,
      open: 1e-12,
      high: 2,
      low: 0,
      close: null,
      volume: 5,
      marketCap: null,
    };
    expect(writeOhlcvRows([candle])).toBe(
      '[{"time_open":"2022-01-19T00:00:00Z","time_close":"2022-01-19T00:00:00Z","open":1e-12,"high":2,"low":0,"close":null,"volume":5,"market_cap":null}]',
    );
  });
});
