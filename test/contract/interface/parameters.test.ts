import { describe, expect, it } from 'vitest';
import { parseOhlcvParameters, quotes } from '../../../src/contract/interface/endpoint-parameters.ts';
import { ohlcvParameters, ohlcvPath } from '../../../src/contract/interface/paths.ts';

const parse = (query: string) => parseOhlcvParameters(new URLSearchParams(query), NOW);
const day = (n: number) => Date.UTC(2022, 0, n);
const NOW = Date.UTC(2022, 5, 1, 12);

it('an end may be NOW', () => {
  expect(parse('start=2022-01-19&end=now')).toMatchObject({ ok: true, value: { to: NOW, limit: 366 } });
  expect(parse('start=2020-01-19&end=NOW')).toMatchObject({ ok: false });
});

describe('the parameters of an OHLCV request', () => {
  it.each(['2022-01-19', '2022-01-19T00:00:00Z', String(day(19) / 1000), '2022-01-19T02:00:00%2B02:00'])(
    'may have %s as start',
    (start) => {
      expect(parse(`start=${start}`)).toMatchObject({
        ok: true,
        value: { from: day(19), to: day(19), limit: 1, interval: '24h', quote: 'usd' },
      });
    },
  );

  it('request `limit` candles from the start when there is no end', () => {
    expect(parse('start=2022-01-19&limit=3')).toMatchObject({ value: { from: day(19), to: day(21), limit: 3 } });
    expect(parse('start=2022-01-19&limit=3&interval=1h')).toMatchObject({ value: { to: day(19) + 2 * 3_600_000 } });
  });

  it('are not cut to one candle when there is an end', () => {
    expect(parse('start=2022-01-01&end=2022-01-11')).toMatchObject({
      value: { from: day(1), to: day(11), limit: 366 },
    });
    expect(parse('start=2022-01-01&end=2022-01-11&limit=2')).toMatchObject({ value: { to: day(11), limit: 2 } });
  });

  it('begin with the first candle at or after the start, and keep the start itself', () => {
    const start = day(19) + 1000;
    expect(parse(`start=${start / 1000}`)).toMatchObject({ value: { start, from: day(20), to: day(20) } });
  });

  it('may span a leap year, and no more', () => {
    expect(parse('start=2020-01-01&end=2021-01-01')).toMatchObject({ ok: true });
    expect(parse('start=2020-01-01&end=2021-01-02')).toMatchObject({ ok: false });
  });

  it.each([
    ['', 'invalid parameters: start is required'],
    ['start=soon', /^invalid parameters: start must be a date \(2018-02-15\), .* got "soon"$/],
    ['start=2022-02-30', /start must be a date/],
    ['start=2022-01-19&end=x', /end must be a date/],
    ['start=2022-01-19&end=2022-01-18', 'invalid parameters: end must not be before start, got "2022-01-18"'],
    ['start=2022-01-19&limit=367', 'invalid parameters: limit must be a whole number from 1 to 366, got "367"'],
    ['start=2022-01-19&limit=0', /limit/],
    ['start=2022-01-19&limit=-1', /limit/],
    ['start=2022-01-19&limit=1.5', /limit/],
    ['start=2022-01-19&interval=1d', 'invalid parameters: interval must be one of 5m 15m 30m 1h 6h 12h 24h, got "1d"'],
    ['start=2022-01-19&quote=eur', 'invalid parameters: quote must be usd or btc, got "eur"'],
  ])('get an error that says what is wrong with %j', (query, message) => {
    const parsed = parse(query);
    expect(parsed).toEqual({
      ok: false,
      message: typeof message === 'string' ? message : expect.stringMatching(message),
      parameter: expect.any(String),
    });
    if (!parsed.ok) expect(parsed.message).toContain(`invalid parameters: ${parsed.parameter} `);
  });

  it('mean the same to the client and to the service', () => {
    const question = { from: day(1), to: day(1) + 5 * 300_000, interval: '5m', quote: 'btc', limit: 366 } as const;
    expect(parseOhlcvParameters(new URLSearchParams(ohlcvParameters(question)), NOW)).toEqual({
      ok: true,
      value: { ...question, start: day(1) },
    });
  });

  it('belong to a path that no id can leave', () => {
    expect(ohlcvPath('a/../b')).toBe('/coins/a%2F..%2Fb/ohlcv/historical');
  });
});

describe('the quotes of tickers', () => {
  it('are USD by default, and at most three', () => {
    expect(quotes.parse(null)).toEqual({ ok: true, value: ['USD'] });
    expect(quotes.parse('btc, eth')).toEqual({ ok: true, value: ['BTC', 'ETH'] });
    expect(quotes.parse('USD,BTC,ETH,EUR')).toEqual({
      ok: false,
      message: 'Max number of quotes is 3',
      parameter: 'quotes',
    });
    expect(quotes.parse('USD,XAU')).toEqual({
      ok: false,
      message: expect.stringMatching(/^invalid parameters: quotes must be one or more of .* got "XAU"$/),
      parameter: 'quotes',
    });
  });
});
