import { describe, expect, test } from 'vitest';
import {
  choice,
  integer,
  list,
  parseInterval,
  parsePositiveInteger,
  parseQuote,
} from '../../../src/cli/input/options.ts';
import { UsageError } from '../../../src/cli/shell/exit.ts';

describe('parsers of options', () => {
  test('accept valid values', () => {
    expect(parsePositiveInteger('12')).toBe(12);
    expect(integer(0, 65_535)('0')).toBe(0);
    expect(parseInterval('5m')).toBe('5m');
    expect(parseQuote('USD')).toBe('usd');
    expect(choice(['free', 'pro'])('pro')).toBe('pro');
    expect(list(parseQuote)('usd, btc', undefined)).toEqual(['usd', 'btc']);
    expect(list(parseQuote)('btc', ['usd'])).toEqual(['usd', 'btc']);
  });

  test.each<[string, () => unknown, RegExp]>([
    ['zero', () => parsePositiveInteger('0'), /above 0/],
    ['a negative number', () => parsePositiveInteger('-3'), /above 0/],
    ['a fraction', () => parsePositiveInteger('1.5'), /whole number/],
    ['nothing', () => parsePositiveInteger(''), /whole number/],
    ['exponents', () => parsePositiveInteger('1e3'), /whole number/],
    ['a port that is none', () => integer(0, 65_535)('65536'), /from 0 to 65535/],
    ['an interval upstream does not have', () => parseInterval('7m'), /5m, 15m, 30m, 1h, 6h, 12h, 24h/],
    ['a day by its usual name', () => parseInterval('1d'), /did you mean 24h/],
    ['a misspelt quote', () => parseQuote('usdd'), /did you mean usd\?/],
    ['a misspelt choice', () => choice(['free', 'pro'])('fre'), /did you mean free/],
  ])('refuse %s', (_, parse, message) => {
    expect(parse).toThrow(UsageError);
    expect(parse).toThrow(message);
  });
});
